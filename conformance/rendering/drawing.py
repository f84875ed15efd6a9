"""Drawings: figures as the numbers of SVG elements, no text among them."""

from __future__ import annotations

from dataclasses import dataclass

from mlx_assay.conformance.rendering.figure import SHADES, Column, Grid

PITCH, BAR, HEIGHT = 34, 24, 96
"""Of the histogram, in pixels: from bar to bar, a bar's width, and the height of the highest."""
LEAST = 2
"""Pixels of a bar that is not empty."""


@dataclass(frozen=True)
class Bars:
    """A histogram: its width, one path of all bars, and the middle of each bar's upper edge."""

    width: int
    path: str
    tops: list[tuple[int, int]]


@dataclass(frozen=True)
class Cells:
    """A map of `width` by `height` pixels, drawn in units of cells: a path a shade, and one each for the lines."""

    width: int
    height: int
    paths: list[tuple[int, str]]
    thin: str
    thick: str


def bars(columns: list[Column]) -> Bars:
    """Where the bars stand."""
    path, tops = "", []
    for number, column in enumerate(columns):
        height = max(round(column.height * HEIGHT), LEAST)
        middle = number * PITCH + PITCH // 2
        path += f"M{middle - BAR // 2} {HEIGHT}v-{height}h{BAR}v{height}z"
        tops.append((middle, HEIGHT - height - 3))
    return Bars(max(len(columns) * PITCH, PITCH), path, tops)


def cells(grid: Grid) -> Cells:
    """Runs of cells of one shade as strokes of one unit's width."""
    strokes = ["" for _ in range(SHADES + 1)]
    for row, shades in enumerate(grid.shades):
        start = 0
        for column in range(1, grid.columns + 1):
            if column == grid.columns or shades[column] != shades[start]:
                strokes[shades[start]] += f"M{start} {row}h{column - start}"
                start = column
    paths = [(shade, path) for shade, path in enumerate(strokes) if shade and path]
    across, down = _pixels(grid.columns, 576), _pixels(grid.rows, 216)
    lines = [f"M{column} 0v{grid.rows}" for column in grid.lines if column not in grid.thick]
    return Cells(
        grid.columns * across,
        grid.rows * down,
        paths,
        "".join(lines),
        "".join(f"M{column} 0v{grid.rows}" for column in grid.thick),
    )


def _pixels(count: int, room: int) -> int:
    return max(min(room // count, 18), 6)
