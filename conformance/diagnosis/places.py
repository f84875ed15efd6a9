"""Where differing places lie: tails, tiles, lanes, strides, rows, runs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mlx_assay.conformance.diagnosis.axis import Axis, axes
from mlx_assay.conformance.diagnosis.claim import Claim, everywhere, unlikely
from mlx_assay.conformance.diagnosis.evidence import Evidence, distinct

TILES = tuple(1 << power for power in range(3, 13))
"""Sizes of tiles, of threadgroups and of what a loop takes at once."""
WORD = 32
"""Lanes of a simdgroup, and ids of a mask's word."""
PERIODS = (4, 8, 16, 32, 33, 64, 128, 256, 512, 1024)
LIMITS = (8, 15, 16, 24, 31, 32)
"""Powers of two beyond which a counter, an index or a float's integer is too narrow."""
FEW = 8
MANY = 4
"""Whole tiles that are listed, at most."""
MOSTLY = 0.9
"""Share of an axis from which on a part of it is nearly all."""
RUN = 3
"""Neighbours that make a run."""


def where(evidence: Evidence) -> Iterator[Claim]:
    """Every claim on places, columns before rows before elements in memory."""
    count, total = evidence.count, evidence.total
    if total < 2:
        return
    told = False
    for found in (_block(evidence), _checkered(evidence)):
        if found:
            yield Claim(found[0], found[1], everywhere(evidence))
            return
    for axis in axes(evidence):
        if (told and axis.noun == "element") or axis.touched.size == axis.extent:
            continue
        for claim in _of(axis, evidence):
            told = True
            yield claim
    if count == 1:
        yield Claim("one-place", f"one place of {total}", everywhere(evidence))
    elif count == total:
        yield Claim("everywhere", f"every one of {total} places", everywhere(evidence))
    elif count >= 0.9 * total:
        yield Claim("everywhere", f"nearly every place, {count} of {total}", everywhere(evidence))


def _of(axis: Axis, evidence: Evidence) -> Iterator[Claim]:
    sizes = sorted({*TILES, *_launched(evidence)})
    for found in (
        _edge(axis),
        _tail(axis, sizes),
        _tile(axis, sizes),
        _stride(axis) or _lanes(axis),
        _few(axis),
        _run(axis),
    ):
        if found:
            yield Claim(found[0], found[1], everywhere(evidence))


def _launched(evidence: Evidence) -> Iterator[int]:
    """Whole numbers among the arguments that may be the size of a block."""
    for value in evidence.arguments.values():
        if type(value) is int and 8 <= value <= TILES[-1]:
            yield value


Found = tuple[str, str] | None


def _block(evidence: Evidence) -> Found:
    """A rectangle of some rows and some columns, filled."""
    if evidence.rows < 2:
        return None
    columns, rows = list(axes(evidence))[:2]
    for axis in (rows, columns):
        length = axis.most - axis.least + 1
        if not 1 < length < MOSTLY * axis.extent or axis.touched.size != length:
            return None
    high, wide = rows.touched.size, columns.touched.size
    if evidence.count < 0.95 * high * wide:
        return None
    where = f"{rows.named(rows.least, rows.most)}, {columns.named(columns.least, columns.most)}"
    return "tile", f"one block of {high} rows by {wide} columns: {where}"


def _checkered(evidence: Evidence) -> Found:
    """Every other column of a row, and the others of the next."""
    columns = evidence.columns
    if min(evidence.rows, columns) < 2 or columns % 2:
        return None
    odd = (evidence.places // columns + evidence.places % columns) % 2
    rows, parity = distinct(evidence.places // columns % 2).size, int(odd[0])
    if rows < 2 or bool((odd != parity).any()) or not unlikely(0.5, odd.size, 8):
        return None
    return "stride", f"as on a checkerboard: where row and column add up to an {'odd' if parity else 'even'} number"


def _edge(axis: Axis) -> Found:
    """One line at the output's edge, such as the last column of several rows."""
    if axis.touched.size > 1 or axis.noun == "element" or axis.extent < 3 or axis.least not in (0, axis.extent - 1):
        return None
    if not unlikely(1 / axis.extent, axis.x.size, 2) and not (axis.filled(1) and axis.width >= 4):
        return None
    side = "first" if axis.least == 0 else "last"
    kind = f"{side}-{'row' if axis.noun == 'row' else 'column'}"
    if kind == "last-column":
        return kind, f"the last {axis.noun} alone, {axis.least} of {axis.extent}{_behind(axis, axis.least, TILES)}"
    return kind, f"the {side} {axis.noun} alone"


def _behind(axis: Axis, start: int, sizes: tuple[int, ...]) -> str:
    whole = [size for size in sizes if size < axis.extent and axis.extent % size and start % size == 0]
    return f", behind the last whole {whole[-1]}" if whole and axis.extent - start < whole[-1] else ""


def _tail(axis: Axis, sizes: list[int]) -> Found:
    """All behind the last whole block of some size; the largest size that begins the tail there is named."""
    starts = {axis.extent - axis.extent % size: size for size in sizes if axis.extent > size and axis.extent % size}
    fitting = [start for start in starts if start <= axis.least]
    if not fitting:
        return None
    start = max(fitting)
    part = (axis.extent - start) / axis.extent
    full = axis.filled(axis.extent - start)
    if part > 0.5 or not (unlikely(part, axis.x.size, len(sizes)) or (full and part < 0.1)):
        return None
    what = axis.named(start, axis.extent - 1) if full else f"among {axis.named(start, axis.extent - 1)}"
    return (
        "tail" if full else "within-tail",
        f"the tail: {what}, behind the last whole {starts[start]} of {axis.extent}",
    )


def _tile(axis: Axis, sizes: list[int]) -> Found:
    """Whole tiles, of the largest size that is filled; else the smallest tile that holds all."""
    for size in reversed(sizes):
        if axis.extent <= size:
            continue
        tiles, total = distinct(axis.touched // size), -(-axis.extent // size)
        covered = int(np.minimum(size, axis.extent - tiles * size).sum())
        whole = axis.touched.size >= 0.95 * covered and axis.filled(covered) and axis.count >= 4
        # Tiles up to the end, and tiles that come back, are told better as a place to start from, and as lanes.
        open_ended = tiles.size > 1 and int(tiles[-1]) == total - 1 and int(tiles[-1] - tiles[0]) == tiles.size - 1
        if whole and tiles.size < total and tiles.size <= MANY and not open_ended:
            word = "a whole tile" if tiles.size == 1 else "whole tiles"
            return "tile", f"{word} of {size} {axis.noun}s: {_span(axis, tiles, size, total)}"
    for size in sizes:
        tiles, total = distinct(axis.touched // size), -(-axis.extent // size)
        if tiles.size == 1 and unlikely(size / axis.extent, axis.x.size, total * len(sizes)):
            return (
                "within-tile",
                f"within one tile of {size} {axis.noun}s: {_span(axis, tiles, size, total)}",
            )
    return None


def _span(axis: Axis, tiles: np.ndarray, size: int, total: int) -> str:
    of = f"tile{'s' * (tiles.size > 1)} {_listed(tiles)} of tiles 0 to {total - 1}"
    if tiles.size > 1:
        return of
    first = int(tiles[0]) * size
    return f"{axis.named(first, min(first + size, axis.extent) - 1)}, {of}"


def _listed(numbers: np.ndarray) -> str:
    shown = ", ".join(str(int(number)) for number in numbers[:FEW])
    return f"{shown} and {numbers.size - FEW} more" if numbers.size > FEW else shown


def _stride(axis: Axis) -> Found:
    """Coordinates that are a step apart: one lane of each simdgroup, one parity, every n-th."""
    apart = np.diff(axis.touched)
    step = int(np.gcd.reduce(apart)) if apart.size else 0
    if step < 2 or axis.touched.size < 3 or not unlikely(1 / step, axis.touched.size - 1, 8 * step):
        return None
    first = axis.least
    if step == WORD:
        return "lane", f"lane {first % WORD} of each simdgroup of 32: every 32nd {axis.noun} from {first} on"
    if step == 2:
        return "stride", f"{'odd' if first % 2 else 'even'} {axis.noun}s alone"
    return "stride", f"every {_ordinal(step)} {axis.noun} from {first} on"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _lanes(axis: Axis) -> Found:
    """Some lanes of each period: the byte of a mask's word, half of a simdgroup, the last part of a tile."""
    best: tuple[float, int, np.ndarray] | None = None
    for period in PERIODS:
        if axis.extent < 2 * period or distinct(axis.touched // period).size < 3:
            continue
        lanes = distinct(axis.touched % period)
        if 1 < lanes.size <= period // 2:
            score = axis.touched.size * math.log(lanes.size / period) + _choices(period, int(lanes.size))
            if score < math.log(1e-3) and (best is None or score < 1.5 * best[0]):
                best = (score, period, lanes)
    if best is None:
        return None
    _, period, lanes = best
    each = "simdgroup" if period == WORD else f"{period} {axis.noun}s"
    if period == WORD and distinct(lanes // 8).size == 1 and lanes.size > 2:
        byte = int(lanes[0]) // 8
        return "lane", f"byte {byte} of each word of 32: {axis.noun}s {8 * byte} to {8 * byte + 7} modulo 32"
    return "lane", f"lanes {_ranges(lanes)} of each {each}"


def _choices(period: int, chosen: int) -> float:
    return math.lgamma(period + 1) - math.lgamma(chosen + 1) - math.lgamma(period - chosen + 1)


def _ranges(numbers: np.ndarray) -> str:
    cuts = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[np.append(0, cuts + 1)], numbers[np.append(cuts, numbers.size - 1)]
    told = [str(a) if a == b else f"{a} to {b}" for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True)]
    return ", ".join(told[:4]) + (" and more" if len(told) > 4 else "")


def _few(axis: Axis) -> Found:
    """A few rows or columns of many, with several differing places each."""
    lines = int(axis.touched.size)
    if axis.noun == "element" or lines > min(FEW, axis.extent // 3):
        return None
    if axis.x.size * math.log(lines / axis.extent) + _choices(axis.extent, lines) >= math.log(1e-3):
        return None
    word = axis.noun if lines == 1 else f"{axis.noun}s"
    kind = "rows" if axis.noun == "row" else "columns"
    return kind, f"{word} {_listed(axis.touched)} alone, of {axis.extent}"


def _run(axis: Axis) -> Found:
    """Neighbours without a gap; from a power of two to the end, the place from which on all is wrong."""
    first, last, length = axis.least, axis.most, axis.most - axis.least + 1
    power = next((power for power in LIMITS if first >> power == 1 and axis.extent > 1 << power), None)
    slack = (axis.extent - (1 << power)) // 16 if power is not None else 0
    if power is not None and first - (1 << power) <= slack and last >= axis.extent - 1 - slack:
        part = (axis.extent - (1 << power)) / axis.extent
        if part < MOSTLY and unlikely(part, axis.x.size, len(LIMITS)):
            return "beyond", f"from {axis.noun} {1 << power} on (2^{power})"
    if axis.touched.size != length or length < RUN or not axis.filled(length):
        return None
    if length >= MOSTLY * axis.extent or not unlikely(length / axis.extent, axis.x.size, axis.extent):
        return None
    if last == axis.extent - 1:
        return ("beyond" if first & (first - 1) == 0 else "run"), f"from {axis.noun} {first} on, of {axis.extent}"
    return "run", f"one run: {axis.named(first, last)} of {axis.extent}"
