"""Figures: a histogram of distances and a map of places, as numbers that any rendering can draw."""

from __future__ import annotations

from dataclasses import dataclass

from mlx_assay.conformance.record import Bar, Map, Pattern
from mlx_assay.conformance.rendering.encoding import shortened

LARGEST_MAP = 2**16
"""Cells of a map that is read at all."""
SHADES = 4
SIMDGROUP = 32
TILE = 1024
"""Elements after which the map has a thin and a thick line: the lanes of a simdgroup, and the tile of a row kernel."""


@dataclass(frozen=True)
class Detail:
    """How much is shown of a difference: places, bars of the histogram, rows and columns of the map."""

    places: int
    bars: int
    rows: int
    columns: int


FINE = Detail(places=8, bars=16, rows=32, columns=64)
COARSE = Detail(places=2, bars=8, rows=8, columns=32)


@dataclass(frozen=True)
class Column:
    """A bar of the histogram: what its distances are called, how many places, and its height from 0 to 1."""

    label: str
    count: int
    height: float


@dataclass(frozen=True)
class Grid:
    """A map of `rows` by `columns` cells, each of so many elements.

    `shades` are 0 for no difference up to SHADES for all of a cell's places; `lines` are the columns before which a
    line stands, and the elements from one to the next.
    """

    rows: int
    columns: int
    row_extent: int
    column_extent: int
    shades: list[list[int]]
    lines: tuple[int, ...]
    period: int
    thick: tuple[int, ...]


def histogram(pattern: Pattern, most: int) -> list[Column]:
    """At most so many bars, from the lowest distance to the greatest, neighbours put together where they are more."""
    bars = sorted((bar for bar in pattern.histogram if bar.count > 0), key=lambda bar: (bar.least, bar.most))
    size = -(-len(bars) // most) or 1
    merged = [_merged(bars[start : start + size]) for start in range(0, len(bars), size)]
    greatest = max((bar.count for bar in merged), default=1)
    return [Column(_range(bar), bar.count, bar.count / greatest) for bar in merged]


def _merged(bars: list[Bar]) -> Bar:
    return Bar(bars[0].least, max(bar.most for bar in bars), sum(bar.count for bar in bars))


def _range(bar: Bar) -> str:
    if bar.least == bar.most:
        return shortened(bar.least)
    return f"{shortened(bar.least)} to {shortened(bar.most)}"


def grid(pattern: Pattern, detail: Detail) -> Grid | None:
    """The map, cells put together where there are too many; None where there is none, or one that is not sound."""
    given = pattern.map
    if given is None or not _sound(given):
        return None
    down, across = -(-given.rows // detail.rows), -(-given.columns // detail.columns)
    rows, columns = -(-given.rows // down), -(-given.columns // across)
    sums = [[0] * columns for _ in range(rows)]
    for place, count in enumerate(given.counts):
        if count > 0:
            sums[place // given.columns // down][place % given.columns // across] += count
    extents = given.row_extent * down, given.column_extent * across
    capacity = extents[0] * extents[1]
    shades = [[min(-(-count * SHADES // capacity), SHADES) for count in row] for row in sums]
    period = SIMDGROUP if _fits(SIMDGROUP, extents[1], columns) else 0
    lines = _lines(period, extents[1], columns)
    thick = _lines(TILE, extents[1], columns) if _fits(TILE, extents[1], columns) else ()
    return Grid(rows, columns, *extents, shades, lines, period, thick)


def _sound(given: Map) -> bool:
    numbers = given.rows, given.columns, given.row_extent, given.column_extent
    return all(number > 0 for number in numbers) and given.rows * given.columns == len(given.counts) <= LARGEST_MAP


def _fits(period: int, extent: int, columns: int) -> bool:
    """Whether lines fall between cells, two cells apart at least, and within the map."""
    return period % extent == 0 and period // extent >= 2 and period // extent < columns


def _lines(period: int, extent: int, columns: int) -> tuple[int, ...]:
    return tuple(range(period // extent, columns, period // extent)) if period else ()
