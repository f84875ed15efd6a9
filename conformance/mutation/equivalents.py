"""Mutants that compute what the kernel computes, each with the reason why; one that is gone or killed is a fault."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

SHORTEST_REASON = 40
"""Characters: a reviewer must be able to check the reason."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ids of mutants and the one reason for all of them."""

    reason: str
    ids: list[str]


class Equivalents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    equivalent: list[Entry] = []


class StaleError(ValueError):
    """An entry for a mutant that is not there, or that stands twice, or a reason that says nothing."""


def path() -> Path:
    """The file that holds the reasons."""
    return Path(str(files("mlx_assay.conformance.mutation"))) / "equivalents.toml"


def decode(text: str) -> dict[str, str]:
    """From id to reason. StaleError: no such file, an id twice, a reason of a few words."""
    try:
        read = msgspec.convert(tomllib.loads(text), Equivalents)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise StaleError(f"Expected tables [[equivalent]] with reason and ids but got: {error}") from None
    found: dict[str, str] = {}
    for entry in read.equivalent:
        if len(entry.reason.strip()) < SHORTEST_REASON:
            raise StaleError(f"Expected a reason that can be checked but got {entry.reason!r}: say why no bit changes")
        for mutant_id in entry.ids:
            if mutant_id in found:
                raise StaleError(f"Expected each id once but {mutant_id} stands twice")
            found[mutant_id] = entry.reason.strip()
    return found


@cache
def equivalents() -> Mapping[str, str]:
    """The reasons of this installation."""
    return decode(path().read_text("utf-8"))


def check(known: Mapping[str, str], ids: Collection[str]) -> None:
    """StaleError: a reason for a mutant that is not there."""
    if stale := sorted(set(known) - set(ids)):
        raise StaleError(
            f"Expected reasons for mutants that are there but {len(stale)} are gone: {', '.join(stale[:5])}: "
            "remove them from equivalents.toml, or write the new id where only the line has changed"
        )
