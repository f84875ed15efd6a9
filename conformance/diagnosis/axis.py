"""One way to number the differing places: by column, by row, or through the whole output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlx_assay.conformance.diagnosis.evidence import Evidence, distinct


@dataclass(frozen=True)
class Axis:
    """Coordinates `x`, each below `extent`, of the places that are looked at, and what such a coordinate is called.

    `count` are all differing places; `width` is how many places one coordinate has among the lines that are touched.
    """

    noun: str
    x: np.ndarray
    extent: int
    count: int
    width: int

    @cached_property
    def touched(self) -> np.ndarray:
        """The coordinates that have a differing place, rising, each once."""
        return distinct(self.x)

    @property
    def least(self) -> int:
        """The first coordinate."""
        return int(self.touched[0])

    @property
    def most(self) -> int:
        """The last coordinate."""
        return int(self.touched[-1])

    def filled(self, coordinates: int) -> bool:
        """Whether nearly every place differs of so many coordinates."""
        return self.count >= 0.95 * coordinates * self.width

    def named(self, first: int, last: int) -> str:
        """`column 1024` or `columns 1024 to 1030`, and `the last column` where it is that."""
        if first == last:
            ends = {0: "first", self.extent - 1: "last"}
            if first in ends and self.extent > 1:
                return f"the {ends[first]} {self.noun}, {first}"
            return f"{self.noun} {first}"
        return f"{self.noun}s {first} to {last}"


def axes(evidence: Evidence) -> Iterator[Axis]:
    """Columns; of more than one row also rows, and places as they lie in memory."""
    places, columns, rows = evidence.places, evidence.columns, evidence.rows
    column, row = places % columns, places // columns
    yield Axis(evidence.noun, column, columns, evidence.count, int(distinct(row).size))
    if rows > 1:
        yield Axis("row", row, rows, evidence.count, int(distinct(column).size))
        yield Axis("element", places, evidence.total, evidence.count, 1)
