"""Review: what waits is shown case by case, in bits and ULP, and each case is accepted or rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from mlx_assay.conformance.judging.compare import hex_bits
from mlx_assay.conformance.regeneration.answers import Answered
from mlx_assay.conformance.regeneration.drift import Drift, drifts
from mlx_assay.fixtures.goldens import store
from mlx_assay.fixtures.goldens.catalogue import groups
from mlx_assay.fixtures.goldens.group import EXPECTED
from mlx_assay.fixtures.goldens.store import FOLDER, Recording

Say = Callable[[str], object]
Ask = Callable[[str], str]
PROMPT = "accept, reject, accept all that follow, reject all that follow, quit [a/r/A/R/q]? "
KEYS = ("a", "r", "A", "R", "q")
PREVIEW = 3
"""Calls and encodings of a new case that are shown."""


class Quit(Exception):
    """The person left: what was not decided waits on."""


@dataclass
class Keyboard:
    """Asks for each case, until one key answers for all that follow."""

    ask: Ask
    standing: bool | None = None

    def accepts(self) -> bool:
        """Whether a case is accepted; Quit at q and at the end of input."""
        if self.standing is not None:
            return self.standing
        while True:
            try:
                pressed = self.ask(PROMPT).strip()
            except EOFError:
                raise Quit from None
            if pressed == "q":
                raise Quit
            if pressed in KEYS:
                if pressed in "AR":
                    self.standing = pressed == "A"
                return pressed in "aA"


@dataclass(frozen=True)
class Waiting:
    """A group with what waits for it: the recorded one, or None, and the new."""

    old: Recording | None
    new: Recording

    def drifts(self) -> list[Drift]:
        """The cases to decide upon."""
        today = {
            entry.id: Answered(entry, {f"{entry.id}#{name}": array for name, array in self.new.of(entry.id).items()})
            for entry in self.new.document.cases
        }
        return drifts(groups()[self.new.document.group], self.old, today)


def waiting(root: Path = FOLDER) -> Iterator[Waiting]:
    """Every group with `.new` files; store.Damage names what is wrong with them or with what they would replace."""
    for path in store.documents(root, pending=True):
        new = store.load(path)
        yield Waiting(store.recorded(root, new.document.group, new.document.key), new)


def review(found: Waiting, keyboard: Keyboard, say: Say, root: Path = FOLDER) -> tuple[int, int]:
    """Decides upon the cases of a group and puts the accepted ones in place; returns how many of either."""
    document = found.new.document
    say(f"{store.folder_of(document.key)}/{document.group}: {document.why}")
    say(f"  {document.oracle} {document.release}, {document.device} device, {document.recorded}")
    accepted: set[str] = set()
    rejected: set[str] = set()
    for drift in found.drifts():
        for line in _shown(drift, found):
            say(line)
        (accepted if keyboard.accepts() else rejected).add(drift.case)
    if accepted:
        _settle(found, accepted, root)
    store.discard(root, document.group, document.key)
    say(f"  {len(accepted)} accepted, {len(rejected)} rejected")
    return len(accepted), len(rejected)


def _shown(drift: Drift, found: Waiting) -> Iterable[str]:
    if drift.case == found.new.document.group:
        yield f"{drift.case}: what is said of the group as a whole changed"
        return
    entry = found.new.document.entries().get(drift.case) or (found.old and found.old.document.entries()[drift.case])
    assert entry
    yield f"{drift.case}: {drift.cause}"
    yield f"    {entry.why} [{', '.join(entry.flags)}]"
    if drift.cause == "added":
        tensors = found.new.of(drift.case)
        for call in entry.calls[:PREVIEW]:
            answer = tensors.get(f"{call.label}/{EXPECTED}")
            yield f"    {call.label}: {call.expected if answer is None else preview(answer)}"
        yield f"    {len(entry.calls)} calls"
    yield from (f"    {line}" for line in drift.lines)


def preview(answer: np.ndarray) -> str:
    """Dtype, shape and the first encodings."""
    flat = np.ascontiguousarray(answer).reshape(-1)
    return (
        f"{answer.dtype}{list(answer.shape)} {' '.join(hex_bits(flat[place]) for place in range(flat.size)[:PREVIEW])}"
    )


def _settle(found: Waiting, accepted: set[str], root: Path) -> None:
    """Accepted cases as they are now, all others as they were."""
    new = {entry.id: entry for entry in found.new.document.cases if entry.id in accepted}
    old = found.old.document.entries() if found.old else {}
    entries = {case: entry for case, entry in old.items() if case not in accepted} | new
    tensors = _tensors(found.old, set(entries) - set(new)) | _tensors(found.new, set(new))
    document = msgspec.structs.replace(found.new.document, cases=list(entries.values()))
    store.write(root, document, tensors, pending=False)


def _tensors(recording: Recording | None, cases: set[str]) -> dict[str, np.ndarray]:
    if recording is None:
        return {}
    return {name: array for name, array in recording.tensors.items() if name.partition("#")[0] in cases}
