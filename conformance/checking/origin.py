"""Where a kernel's text stands: its lines, found again in the files that hold them.

A kernel's text reaches metal_kernel as a string, and rarely as the literal stands: stripped, formatted, put together of
several. So lines are looked for, not literals: runs of neighbouring lines that stand in a file in the same order, the
heaviest run first; what lies between two runs is counted off where the file has as many lines there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

LARGEST_FILE = 1 << 20
"""Bytes of a file that is searched."""

MOST_LINES = 5000
"""Lines of a text that are looked for."""

LIGHTEST_RUN = 8
"""Characters that a run of lines must have, lest every `}` be found somewhere."""

ALIKE = 0.6
"""How much of a line must stand in another, of 1, for it to be the other with something filled in."""

LONGEST = 300
"""Characters of a line that are compared with another's."""


class Line(NamedTuple):
    """A line of a file, from 1."""

    path: Path
    number: int
    text: str


class _Run(NamedTuple):
    weight: int
    begin: int
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Region:
    """Neighbouring lines of a file that may hold a kernel's text; `first` is the number of the first of them."""

    path: Path
    first: int
    lines: tuple[str, ...]


def regions(path: Path) -> list[Region]:
    """The literals of a Python file, or the whole of another; none for one that cannot be read or is too large."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return []
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".py":
            return [Region(path, 1, tuple(text.split("\n")))]
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    lines = text.split("\n")
    return [Region(path, first, tuple(lines[first - 1 : last])) for first, last in _literals(tree)]


def _literals(tree: ast.AST) -> list[tuple[int, int]]:
    """First and last line of each text literal, adjacent ones together; docstrings and other bare texts are none."""
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    spans = sorted(
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if id(node) not in bare
    )
    merged: list[tuple[int, int]] = []
    for first, last in spans:
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def locate(text: str, places: Iterable[Region]) -> list[Line | None]:
    """For each line of `text` the line of a file where it stands, None for one that is nowhere (or blank).

    The region that holds most of the text comes first; others fill in what it lacks.
    """
    wanted = [_plain(line) for line in text.split("\n")[:MOST_LINES]]
    scored = []
    for region in places:
        runs = _chosen(_runs(wanted, region), wanted)
        if runs:
            scored.append((sum(run.weight for run in runs), region, runs))
    found: list[Line | None] = [None] * len(wanted)
    for _, region, runs in sorted(scored, key=lambda one: -one[0]):
        numbers = _between(wanted, runs, region)
        for index, number in numbers.items():
            if found[index] is None:
                found[index] = Line(region.path, number, region.lines[number - region.first])
    return found


def _plain(line: str) -> str:
    """A line without what formatting changes: blanks around it, doubled braces, doubled backslashes."""
    return line.strip().replace("{{", "{").replace("}}", "}").replace("\\\\", "\\")


def _runs(wanted: Sequence[str], region: Region) -> list[_Run]:
    """The longest runs of wanted lines that stand one below another in the region."""
    there = [_plain(line) for line in region.lines]
    exact: dict[str, list[int]] = {}
    for place, held in enumerate(there):
        exact.setdefault(held, []).append(place)
    # Only where a literal begins or ends does a line hold more than the kernel's.
    quoted = [place for place, held in enumerate(there) if "'" in held or '"' in held]
    found: list[_Run] = []
    ended: dict[int, int] = {}
    for begin, line in enumerate(wanted):
        if not line:
            continue
        for place in sorted({*exact.get(line, ()), *(place for place in quoted if line in there[place])}):
            # A run that began earlier on the same diagonal holds this one.
            if ended.get(place - begin, -1) >= begin:
                continue
            run = _follow(wanted, there, begin, place)
            ended[place - begin] = begin + len(run) - 1
            weight = sum(len(wanted[begin + step]) for step in range(len(run)))
            if weight >= LIGHTEST_RUN or len(wanted) == 1:
                found.append(_Run(weight, begin, tuple(region.first + number for number in run)))
    return found


def _follow(wanted: Sequence[str], there: Sequence[str], begin: int, place: int) -> list[int]:
    run = []
    for step in range(min(len(wanted) - begin, len(there) - place)):
        line, held = wanted[begin + step], there[place + step]
        if line not in held or (not line and held.strip("'\"(), ")):
            break
        run.append(place + step)
    while run and not wanted[begin + len(run) - 1]:
        run.pop()
    return run


def _chosen(runs: Iterable[_Run], wanted: Sequence[str]) -> list[_Run]:
    """The heaviest runs that do not claim a wanted line twice."""
    taken: set[int] = set()
    kept = []
    for run in sorted(runs, key=lambda one: (-one.weight, one.begin, one.numbers)):
        claimed = {run.begin + step for step in range(len(run.numbers)) if wanted[run.begin + step]}
        if not claimed & taken:
            taken |= claimed
            kept.append(run)
    return kept


def _between(wanted: Sequence[str], runs: Sequence[_Run], region: Region) -> dict[int, int]:
    """Line numbers by wanted line; a gap between two runs is counted off where the file's gap is as long.

    Before the first run and behind the last one, lines that are alike are taken for the same.
    """
    numbers: dict[int, int] = {}
    for run in runs:
        numbers |= {run.begin + step: number for step, number in enumerate(run.numbers)}
    indexes = sorted(numbers)
    for one, other in pairwise(indexes):
        if other - one > 1 and numbers[other] - numbers[one] == other - one:
            numbers |= {one + step: numbers[one] + step for step in range(1, other - one)}
    _extend(numbers, wanted, region, indexes[-1], 1)
    _extend(numbers, wanted, region, indexes[0], -1)
    return {index: number for index, number in numbers.items() if wanted[index]}


def _extend(numbers: dict[int, int], wanted: Sequence[str], region: Region, index: int, step: int) -> None:
    while 0 <= index + step < len(wanted):
        index, number = index + step, numbers[index] + step
        place = number - region.first
        if not 0 <= place < len(region.lines):
            return
        one, other = wanted[index], _plain(region.lines[place])
        if one and _shared(one, other) < ALIKE * len(one):
            return
        numbers[index] = number


def _shared(one: str, other: str) -> int:
    """Characters of one that stand in the other in the same order, neighbours at least two by two."""
    blocks = SequenceMatcher(None, one[:LONGEST], other[:LONGEST], autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks if block.size > 1)
