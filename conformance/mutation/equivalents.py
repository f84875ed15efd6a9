"""Mutants that compute what the kernel computes, and places that no case comes by: each with a reason, none stale."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

SHORTEST_REASON = 40
"""Characters: a reviewer must be able to check the reason."""


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ids of mutants and the one reason for all of them."""

    reason: str
    ids: list[str]


class Outside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a file, with all that is indented below it, where no mutants are made, and why."""

    reason: str
    file: str
    line: str


class Reasons(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    equivalent: list[Equivalent] = []
    outside: list[Outside] = []


class StaleError(ValueError):
    """An entry for what is not there, or that stands twice, or a reason that says nothing."""


def path() -> Path:
    """The file that holds the reasons."""
    return Path(str(files("mlx_assay.conformance.mutation"))) / "equivalents.toml"


def decode(text: str) -> Reasons:
    """StaleError: no such file, an id twice, a reason of a few words."""
    try:
        read = msgspec.convert(tomllib.loads(text), Reasons)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise StaleError(
            f"Expected tables [[equivalent]] of reason and ids, and [[outside]] of reason, file and line: {error}"
        ) from None
    for reason in [*(entry.reason for entry in read.equivalent), *(entry.reason for entry in read.outside)]:
        if len(reason.strip()) < SHORTEST_REASON:
            raise StaleError(f"Expected a reason that can be checked but got {reason!r}: say why no bit changes")
    ids = [mutant_id for entry in read.equivalent for mutant_id in entry.ids]
    if twice := sorted({mutant_id for mutant_id in ids if ids.count(mutant_id) > 1}):
        raise StaleError(f"Expected each id once but {twice[0]} stands twice")
    return read


@cache
def reasons() -> Reasons:
    """The reasons of this installation."""
    return decode(path().read_text("utf-8"))


def by_id(read: Reasons) -> Mapping[str, str]:
    """From an equivalent mutant's id to its reason."""
    return {mutant_id: " ".join(entry.reason.split()) for entry in read.equivalent for mutant_id in entry.ids}


def check(known: Mapping[str, str], ids: Collection[str]) -> None:
    """StaleError: a reason for a mutant that is not there."""
    if stale := sorted(set(known) - set(ids)):
        raise StaleError(
            f"Expected reasons for mutants that are there but {len(stale)} are gone: {', '.join(stale[:5])}: "
            "remove them from equivalents.toml, or write the new id where only the line has changed"
        )


def spans(read: Reasons, file: str, text: str) -> list[tuple[int, int]]:
    """Where a file's text has no mutants. StaleError: a line that the file does not hold, or holds twice."""
    return [_span(entry, text) for entry in read.outside if entry.file == file]


def _span(entry: Outside, text: str) -> tuple[int, int]:
    rows = text.splitlines(keepends=True)
    found = [number for number, row in enumerate(rows) if row.strip() == entry.line]
    if len(found) != 1:
        raise StaleError(
            f"Expected the line {entry.line!r} once in {entry.file} but it stands there {len(found)} times: "
            "mend the entry [[outside]] of equivalents.toml"
        )
    first = found[0]
    last = first + 1
    while last < len(rows) and _below(rows[last], _indent(rows[first])):
        last += 1
    return sum(map(len, rows[:first])), sum(map(len, rows[:last]))


def _below(row: str, indent: int) -> bool:
    """Whether a row is of the block of one that stands further out; a closing parenthesis ends a signature only."""
    return not row.strip() or _indent(row) > indent or row.strip().startswith(")")


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())
