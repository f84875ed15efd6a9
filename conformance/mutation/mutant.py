"""A mutant: a built-in kernel with one fault, named so that the name lasts as long as the line it stands in."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from mlx_assay.conformance.mutation.catalogue import METAL, PYTHON
from mlx_assay.conformance.mutation.equivalents import Reasons, reasons, spans
from mlx_assay.conformance.mutation.launchers import Module
from mlx_assay.conformance.mutation.operator import Edit
from mlx_assay.conformance.mutation.source import Source, sources
from mlx_assay.conformance.mutation.tokens import Code

DIGEST = 10
"""Hexadecimal digits of an id's digest."""


@dataclass(frozen=True)
class Place:
    """Where an edit stands: file, line and column from 1, and the line before and after."""

    file: str
    line: int
    column: int
    before: str
    after: str

    @classmethod
    def of(cls, source: Source, edit: Edit) -> Place:
        """The place of an edit; where it spans lines, they are one behind the other."""
        text, changed = source.text, edit.apply(source.text)
        start = text.rfind("\n", 0, edit.start) + 1
        end = text.find("\n", edit.end)
        end = len(text) if end < 0 else end
        new_end = end + len(changed) - len(text)
        before, after = (" ".join(part.split()) for part in (text[start:end], changed[start:new_end]))
        return cls(source.name, text.count("\n", 0, edit.start) + 1, edit.start - start + 1, before, after)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Mutant:
    """One fault in one text. `operation` is the one that names it, `operations` are all that the text serves.

    `same_code`: whether the same machine code shows that it is the kernel it was made of.
    """

    id: str
    operator: str
    place: Place
    source: Source
    edit: Edit
    same_code: bool

    @property
    def operation(self) -> str:
        """The operation that the id begins with."""
        return self.source.operations[0]

    @property
    def text(self) -> str:
        """The whole text with its fault."""
        return self.edit.apply(self.source.text)

    @property
    def diff(self) -> str:
        """The fault as a unified diff without context."""
        # A text may end without a newline, and its last line would run into the changed one.
        old, new = ([f"{line}\n" for line in text.splitlines()] for text in (self.source.text, self.text))
        return "".join(difflib.unified_diff(old, new, self.source.name, self.source.name, n=0))


def mutants_of(source: Source, edits: Iterable[tuple[str, Edit, bool]] | None = None) -> Iterator[Mutant]:
    """Every mutant of a text, in the order of the catalogue; of two that are the same text, the first.

    `edits` are those of other operators: a name, an edit, and whether the same machine code shows an equivalent.
    """
    seen: set[str] = {source.text}
    times: dict[str, int] = {}
    for name, edit, same_code in _edits(source) if edits is None else edits:
        changed = edit.apply(source.text)
        if changed in seen:
            continue
        seen.add(changed)
        place = Place.of(source, edit)
        key = f"{source.name}\n{name}\n{place.before}\n{place.after}"
        times[key] = times.get(key, 0) + 1
        digest = hashlib.sha256(f"{key}\n{times[key]}".encode()).hexdigest()[:DIGEST]
        stem = source.name.rpartition("/")[2]
        yield Mutant(f"{source.operations[0]}/{name}/{stem}/{digest}", name, place, source, edit, same_code)


def _edits(source: Source) -> Iterator[tuple[str, Edit, bool]]:
    if source.metal:
        code = Code(source.text)
        for operator in METAL:
            for edit in operator.edits(code, source.text):
                yield operator.name, edit, operator.same_code
        return
    module = Module(source.text)
    for launcher in PYTHON:
        for edit in launcher.edits(module, source.text):
            yield launcher.name, edit, False


@cache
def all_mutants() -> Mapping[str, Mutant]:
    """Every mutant of the built-in kernels, by id. ValueError: two have one id. StaleError: of equivalents.toml."""
    return by_id(((source, mutants_of(source)) for source in sources().values()), reasons())


def by_id(made: Iterable[tuple[Source, Iterable[Mutant]]], known: Reasons) -> dict[str, Mutant]:
    """Mutants by id, without those in texts that the reasons leave out. ValueError: two have one id. StaleError."""
    found: dict[str, Mutant] = {}
    for source, mutants in made:
        outside = spans(known, source.name, source.text)
        for mutant in mutants:
            if any(start <= mutant.edit.start < end for start, end in outside):
                continue
            if mutant.id in found:
                raise ValueError(f"Expected each id once but {mutant.id} stands twice")
            found[mutant.id] = mutant
    return found


def chosen(operations: Iterable[str], operators: Iterable[str], files: Iterable[str] | None) -> list[Mutant]:
    """Mutants of texts that serve any of the operations, by any of the operators, in any of the files; none: of all."""
    return among(all_mutants(), operations, operators, files)


def among(
    mutants: Mapping[str, Mutant], served: Iterable[str], operators: Iterable[str], files: Iterable[str] | None
) -> list[Mutant]:
    """Those whose text serves any of `served`, by any of the operators, in any of the files; none given: of all."""
    wanted, kinds = set(served), set(operators)
    within = None if files is None else set(files)
    return [
        mutant
        for mutant in mutants.values()
        if (not wanted or wanted & set(mutant.source.operations))
        and (not kinds or mutant.operator in kinds)
        and (within is None or mutant.source.name in within)
    ]
