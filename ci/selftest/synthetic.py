"""Synthetic kinds: as many cases as a test of scale asks for, of operations there are, without inputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from mlx_assay.fixtures import kind as kinds_module
from mlx_assay.fixtures.case import Subcase
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.kind import Kind, parameter_grid

OPERATIONS = ("apply_token_bitmask", "logit_softcap", "normalized_argmax", "trellis_decode")
DTYPES = ("bfloat16", "float32")
KINDS = 25
VOCABULARIES = (33, 1025, 4097, 8193)
A_ROW = len(OPERATIONS) * len(DTYPES) * KINDS * len(VOCABULARIES)
"""Cases of one number of rows."""


def make(draw: Draw, dtype: str, **parameters: Any) -> Iterator[Subcase]:
    """No subcases: nothing here is judged."""
    yield from ()


def kinds(count: int) -> Mapping[tuple[str, str], Kind]:
    """Kinds of `count` cases, a multiple of A_ROW, in both tiers."""
    if count % A_ROW:
        raise ValueError(f"Expected a multiple of {A_ROW} cases but got {count}")
    grid = parameter_grid(rows=range(1, count // A_ROW + 1), vocab=VOCABULARIES)
    made = [
        Kind(operation, f"scale/kind-{number:02d}", "Scale", ("scale", f"tag-{number}"), DTYPES, make, grid)
        for operation in OPERATIONS
        for number in range(KINDS)
    ]
    return {(kind.operation, kind.name): kind for kind in made}


def install(count: int) -> None:
    """Puts them in the place of this suite's own, in this process, wherever those are known by now."""
    before, made = kinds_module.kinds, kinds(count)
    for name, module in list(sys.modules.items()):
        if name.startswith("mlx_assay.") and getattr(module, "kinds", None) is before:
            module.kinds = lambda: made  # type: ignore[attr-defined]
