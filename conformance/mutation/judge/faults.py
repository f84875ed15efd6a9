"""Mutants of what judges: every place of the table's texts at which an operator applies."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from mlx_assay.conformance.mutation import equivalents
from mlx_assay.conformance.mutation.catalogue import METAL
from mlx_assay.conformance.mutation.equivalents import Reasons
from mlx_assay.conformance.mutation.judge.operators import OPERATORS
from mlx_assay.conformance.mutation.judge.texts import TEXTS, Judging
from mlx_assay.conformance.mutation.judge.workbench import repository
from mlx_assay.conformance.mutation.launchers import Module
from mlx_assay.conformance.mutation.mutant import Mutant, among, by_id, mutants_of
from mlx_assay.conformance.mutation.operator import Edit
from mlx_assay.conformance.mutation.source import Source
from mlx_assay.conformance.mutation.tokens import Code


def names() -> list[str]:
    """Every operator that is applied to what judges."""
    return [*(operator.name for operator in OPERATORS), *(operator.name for operator in METAL)]


def reasons() -> Reasons:
    """Why some of them compute the same."""
    path = Path(str(files("mlx_assay.conformance.mutation.judge"))) / "equivalents.toml"
    return equivalents.decode(path.read_text("utf-8"))


def part(text: str, line: str) -> tuple[int, int]:
    """Where a function or a class of C++ stands, from its first line to its closing brace. ValueError: not once."""
    if text.count(f"\n{line}\n") != 1:
        raise ValueError(f"Expected the line {line!r} once but it stands there {text.count(line)} times: mend texts.py")
    start = text.index(f"\n{line}\n") + 1
    depth, at = 0, start
    while True:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if depth == 0 and text[at - 1] == "}":
            return start, at


def _edits(judging: Judging, text: str) -> Iterator[tuple[str, Edit, bool]]:
    if not judging.compiled:
        module = Module(text)
        for operator in OPERATORS:
            for edit in operator.edits(module, text):
                yield operator.name, edit, False
        return
    within = [part(text, line) for line in judging.parts] or [(0, len(text))]
    for start, end in within:
        code = Code(text[start:end])
        for metal in METAL:
            for edit in metal.edits(code, code.text):
                yield metal.name, Edit(edit.start + start, edit.end + start, edit.new), False


@cache
def all_faults() -> Mapping[str, Mutant]:
    """Every one of them by id, in the order of the table. ValueError: two have one id."""
    root = repository()
    texts = [Source(one.name, (root / one.name).read_text("utf-8"), (one.area, one.stem)) for one in TEXTS]
    made = zip(TEXTS, texts, strict=True)
    return by_id(((source, mutants_of(source, _edits(judging, source.text))) for judging, source in made), reasons())


def chosen(areas: Iterable[str], operators: Iterable[str], changed: Iterable[str] | None) -> list[Mutant]:
    """Those of any of the areas or files, by any of the operators, in any of the texts; none given: of all."""
    return among(all_faults(), areas, operators, changed)


def sampled(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, from each text in turn and chosen by the seed, in their order."""
    chance = random.Random(seed)
    groups: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        groups.setdefault(mutant.source.name, []).append(mutant)
    for group in groups.values():
        chance.shuffle(group)
    turns = max(map(len, groups.values()), default=0)
    drawn = [group[turn] for turn in range(turns) for group in groups.values() if turn < len(group)][:count]
    kept = {mutant.id for mutant in drawn}
    return [mutant for mutant in mutants if mutant.id in kept]
