"""The environment: interpreter, machine, and the versions of every package that a verdict depends on."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from mlx_assay.conformance.reporting.report import Environment, OracleState

PACKAGES = (
    "mlx-assay",
    "mlx",
    "mlx-cpu",
    "mlx-metal",
    "mlx-lm",
    "xgrammar",
    "torch",
    "numpy",
    "ml_dtypes",
    "mpmath",
    "llvmlite",
    "transformers",
    "msgspec",
    "hypothesis",
    "pytest",
    "pytest-xdist",
    "ziglang",
)
FETCHED = "mlx-metal"
"""The distribution whose kernels the oracle stock-metal reads from a wheel that is not installed."""


def packages() -> dict[str, str]:
    """Versions of PACKAGES by distribution, those that are not installed left out; nothing is imported."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def fetched(oracles: Mapping[str, OracleState]) -> dict[str, str]:
    """The release of FETCHED that was asked for its kernels, where it was; what is installed is in `packages`."""
    state = oracles.get("stock-metal")
    return {FETCHED: state.version.split()[0]} if state and state.version else {}


def graph_compiler() -> str:
    """What MLX fuses compiled graphs with: Metal's compiler on a Mac, the g++ of the PATH elsewhere, if there is one.

    Without it mx.compile gives right answers and no fused kernel, and says nothing.
    """
    return "metal" if platform.system() == "Darwin" else shutil.which("g++") or ""


def environment() -> Environment:
    """What can be told without importing MLX; device and oracles are added by who knows them."""
    return Environment(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=platform.platform(),
        machine=platform.machine(),
        packages=packages(),
        graph_compiler=graph_compiler(),
    )


def here() -> tuple[str, str]:
    """This machine's own executor and MLX's default device; "unknown" where MLX cannot be imported."""
    try:
        import mlx.core as mx

        from mlx_assay.impl import executors

        return str(executors.current()), str(mx.default_device())
    except (ImportError, OSError, RuntimeError):
        return "unknown", "unknown"
