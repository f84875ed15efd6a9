"""Every oracle by its module's name, whether it can be used here, and what is missing where it cannot."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any, Protocol, cast

import mlx_assay.oracles


class Oracle(Protocol):
    """What every oracle's module has, beside functions named like operations."""

    NAME: str
    REQUIRES: tuple[str, str]
    """The library that it stands on, and the command that mends its absence."""

    def version(self) -> str:
        """The reference's release; raises ImportError where its library is absent."""

    def self_test(self) -> None:
        """Raises OracleFault where the oracle gives a wrong answer."""


def _names() -> tuple[str, ...]:
    """Modules of this package that have a NAME and a self-test; none imports its library before it is used."""
    found = []
    for module in pkgutil.iter_modules(mlx_assay.oracles.__path__, "mlx_assay.oracles."):
        if module.name != __name__:
            loaded = importlib.import_module(module.name)
            if hasattr(loaded, "NAME") and hasattr(loaded, "self_test"):
                found.append(module.name.rpartition(".")[2])
    return tuple(found)


NAMES = _names()
"""Modules of mlx_assay.oracles that are oracles; an oracle's NAME is the same with dashes."""


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
        library, mend = load(module).REQUIRES
        return f"{library} cannot be imported ({error}): {mend}"
    return None
