"""Figures in characters, for terminals, logs and Markdown: ASCII alone, whatever the encoding."""

from __future__ import annotations

from mlx_assay.conformance.rendering.encoding import Word, runs
from mlx_assay.conformance.rendering.explanation import Compared
from mlx_assay.conformance.rendering.figure import SIMDGROUP, Column, Detail, Grid

PLAIN = Detail(places=5, bars=16, rows=16, columns=64)
LONGEST_BAR = 40
INK = ".:+*#"
"""A map's characters, from no place that differs to all of a cell."""


def histogram(columns: list[Column]) -> list[str]:
    """A line a bar, the longest of LONGEST_BAR signs."""
    width = max((len(column.label) for column in columns), default=0)
    return [
        f"{column.label:>{width}} {'#' * max(round(column.height * LONGEST_BAR), 1)} {column.count}"
        for column in columns
    ]


def chart(grid: Grid) -> list[str]:
    """A line a row of cells, with a bar before each group of cells that a simdgroup's lanes are."""
    lines = []
    for shades in grid.shades:
        parts, start = [], 0
        for end in (*grid.lines, grid.columns):
            parts.append("".join(INK[shade] for shade in shades[start:end]))
            start = end
        lines.append("|".join(parts))
    return lines


def legend(grid: Grid) -> str:
    """What a sign of the map stands for."""
    bar = f", | each {SIMDGROUP} elements" if grid.lines else ""
    cell = f"a sign is {grid.row_extent} by {grid.column_extent} elements"
    return f"{cell}: . none differs, : + * some, # all{bar}"


def places(compared: list[Compared]) -> list[str]:
    """Two lines a place: the index, bits in groups, encoding and value; signs under bits that differ."""
    width = max((len(one.index) for one in compared), default=0)
    lines = []
    for one in compared:
        got, want = _line(one.got, one.want), _line(one.want, one.got)
        behind = f"  {one.apart}" if one.apart else ""
        lines += [f"{one.index:<{width}} got  {got}", f"{'':<{width}} want {want}{behind}"]
        if marks := _marks(one.want, one.got):
            lines.append(f"{'':<{width}}      {marks}".rstrip())
    return lines


def _line(word: Word, other: Word) -> str:
    """Integers have no groups worth a look: their encoding and value say it."""
    if len(word.groups) != 3:
        return " ".join(filter(None, (word.text, word.value)))
    size = max(len(word.value), len(other.value))
    return f"{' '.join(word.groups)}  {word.text}  {word.value:>{size}}"


def _marks(word: Word, other: Word) -> str:
    if len(word.groups) != 3:
        return ""
    return " ".join(
        "".join(("^" if differs else " ") * len(bits) for bits, differs in group)
        for group in runs(word.groups, other.groups)
    )
