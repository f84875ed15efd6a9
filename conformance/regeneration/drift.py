"""Drift: what differs between a recording and today's answers, and whether a version accounts for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mlx_assay.conformance.judging.compare import PLACES, hex_bits
from mlx_assay.conformance.judging.ulp import distances, encodings, has_distance
from mlx_assay.conformance.regeneration.answers import Answered
from mlx_assay.fixtures.goldens.document import Entry
from mlx_assay.fixtures.goldens.group import Group
from mlx_assay.fixtures.goldens.store import Recording, tensor_name

Cause = Literal["added", "removed", "generator", "oracle", "words"]
"""A case came or went, its inputs or its answers changed, or only what is said of it or of the whole group."""


@dataclass(frozen=True)
class Drift:
    """One case that differs; `accounted` says whether a raised version explains it. `lines` show bits and ULP."""

    case: str
    cause: Cause
    accounted: bool
    lines: tuple[str, ...]


def drifts(group: Group, recording: Recording | None, today: Mapping[str, Answered], whole: bool = True) -> list[Drift]:
    """Every case that differs from the recording, in the order of ids.

    Where `whole` is false, today's answers are those of some cases, and others are not missed.
    """
    known = recording.document.entries() if recording else {}
    found = [_drift(group, known.get(case), answer, recording) for case, answer in today.items()]
    if recording and said(group) != {name: getattr(recording.document, name) for name in said(group)}:
        found.append(Drift(group.name, "words", True, ()))
    if whole:
        found += [Drift(case, "removed", True, ()) for case in known if case not in today]
    return sorted((drift for drift in found if drift), key=lambda drift: drift.case)


def said(group: Group) -> dict[str, object]:
    """What a document says of its group as a whole."""
    return {
        "why": group.why,
        "operation": group.operation,
        "form": group.form,
        "scope": group.scope,
        "oracle": group.oracle.replace("_", "-"),
        "answer": group.answer,
        "settings": dict(group.settings),
    }


def _drift(group: Group, old: Entry | None, new: Answered, recording: Recording | None) -> Drift | None:
    if old is None or recording is None:
        return Drift(new.entry.id, "added", True, ())
    if old == new.entry:
        return None
    was = {call.label: call for call in old.calls}
    now = {call.label: call for call in new.entry.calls}
    generated = group.generator != old.generator
    if was.keys() != now.keys() or any(was[label].inputs != now[label].inputs for label in was):
        return Drift(old.id, "generator", generated, tuple(_lines(old, new, recording)))
    if any(was[label].expected != now[label].expected for label in was):
        return Drift(old.id, "oracle", group.version != old.oracle, tuple(_lines(old, new, recording)))
    return Drift(old.id, "words", True, ())


def _lines(old: Entry, new: Answered, recording: Recording) -> list[str]:
    """The diff of one case: calls that came or went, then bits, call by call."""
    was = {call.label: call for call in old.calls}
    now = {call.label: call for call in new.entry.calls}
    lines = [f"{label}: no longer called" for label in sorted(was.keys() - now.keys())]
    lines += [f"{label}: called anew" for label in sorted(now.keys() - was.keys())]
    for label in sorted(was.keys() & now.keys()):
        before, after = was[label], now[label]
        if before.plain != after.plain:
            lines.append(f"{label}: {before.plain} became {after.plain}")
        if before.inputs == after.inputs and before.expected == after.expected:
            continue
        prefix = tensor_name(old.id, label, "")
        named = [name for name in recording.tensors if name.startswith(prefix)]
        named += [name for name in new.tensors if name.startswith(prefix) and name not in named]
        if not named:
            part = "inputs" if before.inputs != after.inputs else "answers"
            pair = (getattr(before, "inputs" if part == "inputs" else "expected"),
                    getattr(after, "inputs" if part == "inputs" else "expected"))  # fmt: skip
            lines.append(f"{label}: the digest of its {part} was {pair[0]}, is {pair[1]}")
        for name in sorted(named):
            told = difference(recording.tensors.get(name), new.tensors.get(name))
            lines += [f"{label}/{name.removeprefix(prefix)}{line}" for line in told]
    return lines


def difference(old: np.ndarray | None, new: np.ndarray | None) -> list[str]:
    """How two arrays differ: no line where their encodings are equal; else dtype and shape, or bits and ULP."""
    if old is None or new is None:
        return [": it came" if old is None else ": it went"]
    if old.dtype != new.dtype or old.shape != new.shape:
        return [f": {old.dtype}{list(old.shape)} became {new.dtype}{list(new.shape)}"]
    was, now = np.ascontiguousarray(old).reshape(-1), np.ascontiguousarray(new).reshape(-1)
    at = np.flatnonzero(encodings(was) != encodings(now))
    lines = []
    for place in at[:PLACES]:
        index = [int(axis) for axis in np.unravel_index(place, old.shape)] if old.shape else []
        lines.append(f"{index}: recorded {hex_bits(was[place])} now {hex_bits(now[place])}{_apart(was, now, place)}")
    if len(at) > PLACES:
        lines.append(f": {len(at)} of {was.size} places differ, {PLACES} are shown")
    return lines


def _apart(was: np.ndarray, now: np.ndarray, place: int) -> str:
    if not has_distance(was.dtype):
        return ""
    far = int(distances(was[place : place + 1], now[place : place + 1])[0])
    return " (NaN on one side)" if far < 0 else f" ({far} ULP)"
