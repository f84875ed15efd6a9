"""Every oracle by its module's name, whether it can be used here, and what is missing where it cannot."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, Protocol, cast

NAMES = (
    "stock_mlx",
    "mlx_lm_softcap",
    "precise_softcap",
    "xgrammar_mlx",
    "xgrammar_inplace",
    "torch_reference",
    "numpy_reference",
)
"""Modules of mlx_assay.oracles that are oracles; an oracle's NAME is the same with dashes."""

REQUIRES = {
    "stock_mlx": ("mlx", "pip install 'mlx[cpu]' on Linux, 'mlx' on macOS"),
    "mlx_lm_softcap": ("mlx_lm", "pip install 'mlx-assay[mlx-lm]'"),
    "precise_softcap": ("mpmath", "pip install 'mlx-assay[precise]'"),
    "xgrammar_mlx": ("xgrammar", "pip install 'mlx-assay[xgrammar]'"),
    "xgrammar_inplace": ("xgrammar", "pip install 'mlx-assay[xgrammar]'"),
    "torch_reference": ("torch", "pip install 'mlx-assay[torch]'"),
    "numpy_reference": ("ml_dtypes", "pip install ml_dtypes"),
}
"""The library that each oracle stands on, and the command that mends its absence."""


class Oracle(Protocol):
    """What every oracle's module has, beside functions named like operations."""

    NAME: str

    def version(self) -> str:
        """The reference's release; raises ImportError where its library is absent."""

    def self_test(self) -> None:
        """Raises OracleFault where the oracle gives a wrong answer."""


@cache
def load(name: str) -> Any:
    """The module of an oracle, by its module's name or its NAME; KeyError where there is none of that name."""
    module = name.replace("-", "_")
    if module not in NAMES:
        raise KeyError(f"Expected an oracle, one of {', '.join(NAMES)}, but got {name!r}")
    return importlib.import_module(f"mlx_assay.oracles.{module}")


def availability(name: str) -> str | None:
    """None where an oracle's library can be imported here, else the reason and the mend."""
    module = name.replace("-", "_")
    try:
        cast(Oracle, load(module)).version()
    except ImportError as error:
        library, mend = REQUIRES[module]
        return f"{library} cannot be imported ({error}): {mend}"
    return None
