"""Where a kernel's text stands: its lines, found again in the files that hold them.

A kernel's text reaches metal_kernel as a string, and rarely as the literal stands: stripped, formatted, put together of
several. So lines are looked for, not literals: runs of neighbouring lines that stand in a file in the same order, the
heaviest run first; what lies between two runs is counted off where the file has as many lines there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from mlx_assay.conformance.checking import literals

LARGEST_FILE = 1 << 20
"""Bytes of a file that is searched."""

MOST_LINES = 5000
"""Lines of a text that are looked for."""

LIGHTEST_RUN = 8
"""Characters that a run of lines must have, lest every `}` be found somewhere."""

LIGHTEST_FILLED = 4
"""Characters that a line must have beside what is filled in."""

ALIKE = 0.6
"""How much of a line must stand in another, of 1, for it to be the other with something filled in."""

AT_THE_CALL = 16
"""Characters by which literals may hold less of a text that stand in the very call."""

LONGEST = 300
"""Characters of a line that are compared with another's."""

_FILLED = re.compile(r"\0|\{\w*(?:![rsa])?(?::[^{}]*)?\}|%[dsifgxr]\b")
"""What a program fills in: a hole of a formatted literal, {name} of a template, %d."""


class Line(NamedTuple):
    """A line of a file, from 1."""

    path: Path
    number: int
    text: str


class _Run(NamedTuple):
    weight: int
    begin: int
    places: tuple[int, ...]


@dataclass(frozen=True)
class Region:
    """Neighbouring lines that may hold a kernel's text: as they are worth, and each one's number and text in a file."""

    path: Path
    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    texts: tuple[str, ...]
    around: tuple[tuple[int, int], ...] = ()

    def distance(self, number: int) -> int | None:
        """The lines of the least piece of the program that holds this and another line; None: the module alone."""
        return min((last - first for first, last in self.around if first <= number <= last), default=None)


def regions(path: Path) -> list[Region]:
    """The literals of a Python file, or the whole of another; none for one that cannot be read or is too large."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return []
        text = path.read_text(encoding="utf-8")
        rows = text.split("\n")
        if path.suffix != ".py":
            return [Region(path, tuple(rows), tuple(range(1, len(rows) + 1)), tuple(rows))]
        found = literals.pieces(text)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [
        Region(
            path,
            tuple(one.lines),
            tuple(one.numbers),
            tuple(rows[number - 1] for number in one.numbers),
            tuple(one.around),
        )
        for one in found
    ]


def locate(
    text: str, places: Iterable[Region], near: Mapping[str, Sequence[int]] | None = None, strict: bool = False
) -> list[Line | None]:
    """For each line of `text` the line of a file where it stands, None for one that is nowhere (or blank).

    The region that holds most of the text in the fewest pieces comes first, of equal ones that nearest to the lines of
    `near` (by file, those of the call); others fill in what it lacks.
    `strict`: lines must show where they are filled in.
    """
    wanted = [_plain(line) for line in text.split("\n")[:MOST_LINES]]
    scored = []
    for region in places:
        runs = _chosen(_runs(wanted, region), wanted)
        if runs:
            between = _between(wanted, runs, region)
            if strict:
                between = {
                    at: place for at, place in between.items() if _Held.of(region.lines[place]).becomes(wanted[at])
                }
            score = _weight(wanted, runs, between, region) - LIGHTEST_RUN * (len(runs) - 1)
            distance = _distance(region, near or {})
            scored.append((-score - AT_THE_CALL * (distance == 0), distance, region, between))
    found: list[Line | None] = [None] * len(wanted)
    for _, _, region, between in sorted(scored, key=lambda one: one[:2]):
        for index, place in between.items():
            if found[index] is None:
                found[index] = Line(region.path, region.numbers[place], region.texts[place])
    return found


def _weight(wanted: Sequence[str], runs: Sequence[_Run], between: Mapping[int, int], region: Region) -> int:
    """Characters of the text that the region holds, those of lines that are only alike too."""
    certain = {run.begin + step for run in runs for step in range(len(run.places))}
    alike = (_shared(wanted[one], _plain(region.lines[place])) for one, place in between.items() if one not in certain)
    return sum(run.weight for run in runs) + sum(alike)


def _distance(region: Region, near: Mapping[str, Sequence[int]]) -> float:
    """Lines between a region and the nearest line of its file."""
    first, last = min(region.numbers, default=0), max(region.numbers, default=0)
    return min((max(first - line, line - last, 0) for line in near.get(str(region.path), ())), default=math.inf)


def _plain(line: str) -> str:
    """A line without what formatting changes: blanks around it, doubled braces, doubled backslashes."""
    return line.strip().replace("{{", "{").replace("}}", "}").replace("\\\\", "\\")


@dataclass(frozen=True)
class _Held:
    """A region's line without what formatting changes; `pattern` matches what it may become where parts are filled in.

    `weight` is how many characters of it stay what they are.
    """

    text: str
    pattern: re.Pattern[str] | None
    weight: int

    @classmethod
    def of(cls, line: str) -> _Held:
        text = _plain(line)
        parts = _FILLED.split(text)
        weight = sum(map(len, parts))
        if len(parts) == 1 or sum(len(part.strip()) for part in parts) < LIGHTEST_FILLED:
            return cls(text, None, weight)
        return cls(text, re.compile(".*?".join(map(re.escape, parts))), weight)

    def becomes(self, line: str) -> bool:
        return line == self.text or (self.pattern is not None and self.pattern.fullmatch(line) is not None)


def _runs(wanted: Sequence[str], region: Region) -> list[_Run]:
    """The longest runs of wanted lines that stand one below another in the region."""
    there = [_Held.of(line) for line in region.lines]
    exact: dict[str, list[int]] = {}
    for place, held in enumerate(there):
        exact.setdefault(held.text, []).append(place)
    filled = [place for place, held in enumerate(there) if held.pattern is not None]
    found: list[_Run] = []
    ended: dict[int, int] = {}
    for begin, line in enumerate(wanted):
        if not line:
            continue
        for place in sorted({*exact.get(line, ()), *(place for place in filled if there[place].becomes(line))}):
            # A run that began earlier on the same diagonal holds this one.
            if ended.get(place - begin, -1) >= begin:
                continue
            run = _follow(wanted, there, begin, place)
            ended[place - begin] = begin + len(run) - 1
            weight = sum(there[number].weight for number in run)
            if weight >= LIGHTEST_RUN or len(wanted) == 1:
                found.append(_Run(weight, begin, tuple(run)))
    return found


def _follow(wanted: Sequence[str], there: Sequence[_Held], begin: int, place: int) -> list[int]:
    run = []
    for step in range(min(len(wanted) - begin, len(there) - place)):
        if not there[place + step].becomes(wanted[begin + step]):
            break
        run.append(place + step)
    while run and not wanted[begin + len(run) - 1]:
        run.pop()
    return run


def _chosen(runs: Iterable[_Run], wanted: Sequence[str]) -> list[_Run]:
    """The heaviest runs that do not claim a wanted line twice."""
    taken: set[int] = set()
    kept = []
    for run in sorted(runs, key=lambda one: (-one.weight, one.begin, one.places)):
        claimed = {run.begin + step for step in range(len(run.places)) if wanted[run.begin + step]}
        if not claimed & taken:
            taken |= claimed
            kept.append(run)
    return kept


def _between(wanted: Sequence[str], runs: Sequence[_Run], region: Region) -> dict[int, int]:
    """Places in the region by wanted line; a gap between two runs is counted off where the file's gap is as long.

    Before the first run and behind the last one, lines that are alike are taken for the same.
    """
    places: dict[int, int] = {}
    for run in runs:
        places |= {run.begin + step: place for step, place in enumerate(run.places)}
    indexes = sorted(places)
    for one, other in pairwise(indexes):
        if other - one > 1 and places[other] - places[one] == other - one:
            places |= {one + step: places[one] + step for step in range(1, other - one)}
    _extend(places, wanted, region, indexes[-1], 1)
    _extend(places, wanted, region, indexes[0], -1)
    return {index: number for index, number in places.items() if wanted[index]}


def _extend(places: dict[int, int], wanted: Sequence[str], region: Region, index: int, step: int) -> None:
    while 0 <= index + step < len(wanted):
        index, place = index + step, places[index] + step
        if not 0 <= place < len(region.lines):
            return
        one, other = wanted[index], _plain(region.lines[place])
        if one and _shared(one, other) < ALIKE * len(one):
            return
        places[index] = place


def _shared(one: str, other: str) -> int:
    """Characters of one that stand in the other in the same order, neighbours at least two by two."""
    blocks = SequenceMatcher(None, one[:LONGEST], other[:LONGEST], autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks if block.size > 1)
