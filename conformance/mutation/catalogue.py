"""All operators, for Metal text and for the Python around it."""

from __future__ import annotations

from mlx_assay.conformance.mutation import (
    addressing,
    arithmetic,
    comparison,
    control,
    launchers,
    rounding,
    threads,
)
from mlx_assay.conformance.mutation.launchers import Module
from mlx_assay.conformance.mutation.operator import Operator
from mlx_assay.conformance.mutation.tokens import Code

METAL: tuple[Operator[Code], ...] = (
    *comparison.OPERATORS,
    *arithmetic.OPERATORS,
    *addressing.OPERATORS,
    *threads.OPERATORS,
    *rounding.OPERATORS,
    *control.OPERATORS,
)
PYTHON: tuple[Operator[Module], ...] = launchers.OPERATORS


def names() -> list[str]:
    """Every operator's name, in the order of the catalogue."""
    return [*(operator.name for operator in METAL), *(operator.name for operator in PYTHON)]
