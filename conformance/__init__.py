"""Contracts, judge, plugin, reports and command line; and, for a downstream's own tests, `run_conformance`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlx_assay.conformance.downstream import Conformance, ConformanceError, run_conformance

__all__ = ["Conformance", "ConformanceError", "run_conformance"]


def __getattr__(name: str) -> Any:
    """Imports what is asked for: pytest loads this package wherever mlx-assay is installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mlx_assay.conformance import downstream

    return getattr(downstream, name)
