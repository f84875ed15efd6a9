"""A measured figure beside the number that it is to reach."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal

COMPARE = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Figure:
    """`value` in `unit`, and the bound it is held to; no bound where a figure only explains another."""

    name: str
    value: float
    unit: str
    relation: Literal["<=", ">=", ""] = ""
    bound: float = 0.0

    @property
    def reached(self) -> bool:
        """Whether the bound holds; true where there is none."""
        return not self.relation or bool(COMPARE[self.relation](self.value, self.bound))

    def __str__(self) -> str:
        goal = (
            f"  goal {self.relation} {self.bound:g}: {'reached' if self.reached else 'MISSED'}" if self.relation else ""
        )
        value = f"{self.value:,.0f}" if self.value == int(self.value) else f"{self.value:,.1f}"
        return f"{self.name:<52}{value:>12} {self.unit:<14}{goal}".rstrip()
