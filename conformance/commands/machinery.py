"""The command lines of the verbs on what the suite stands on: `doctor` and `cache`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import verb


def add(verbs: Any) -> None:
    """Both verbs."""
    _add_cache(verbs)
    doctor = verb(verbs, "doctor", "name each part that is missing or broken, and the command that mends it", "")
    doctor.set_defaults(call=_doctor)


def _add_cache(verbs: Any) -> None:
    cache = verb(
        verbs,
        "cache",
        "tell where compiled kernels are kept and how much room they take",
        "examples:\n  mlx-assay cache\n  mlx-assay cache --json\n  mlx-assay cache --clear\n\n"
        "MLX_ASSAY_CACHE names another folder, MLX_ASSAY_CACHE_LIMIT another limit, as 64M or 2G.\n\n"
        "exit codes: 0 it can be used, 3 it cannot",
    )
    cache.add_argument("--clear", action="store_true", help="remove every compiled kernel")
    cache.add_argument("--json", action="store_true", help="as JSON")
    cache.set_defaults(call=_cache)


def _cache(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.cache import cache

    return cache(arguments.clear, arguments.json)


def _doctor(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.doctor import doctor

    return doctor()
