"""Holding: one group against its recording on this machine, and everything in the folder against itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mlx_assay.conformance.regeneration.answers import answered, release
from mlx_assay.conformance.regeneration.drift import Drift, drifts
from mlx_assay.conformance.regeneration.machine import Absent, key
from mlx_assay.fixtures import recorded
from mlx_assay.fixtures.goldens import store
from mlx_assay.fixtures.goldens.catalogue import groups
from mlx_assay.fixtures.goldens.group import Group
from mlx_assay.fixtures.goldens.store import FOLDER, SIZE_LIMIT, Damage

State = Literal["holds", "fault", "incomplete", "elsewhere", "waits"]
"""Held; wrong; not judged for want of a library; recorded on other machines alone, so that nothing is asserted;
written anew, and to be reviewed."""
SHOWN = 6
"""Lines of a diff that are printed."""


@dataclass(frozen=True)
class Held:
    """What came of one group, or of the folder."""

    subject: str
    state: State
    lines: tuple[str, ...] = ()
    cases: int = 0


def hold(group: Group, root: Path = FOLDER) -> Held:
    """Computes a group again and compares; an oracle that drifted from its golden is an oracle fault."""
    try:
        mine = key(group)
        recording = store.recorded(root, group.name, mine)
        if recording is None and mine:
            return Held(group.name, "elsewhere", (f"nothing is recorded for {store.folder_of(mine)}",))
        if recording is None:
            mend = f"mlx-assay fixtures regen {group.name}, then review"
            return Held(group.name, "fault", (f"Expected a golden of {group.name} but there is none: {mend}",))
        release(group)
        today = answered(group, group.members())
    except Absent as error:
        return Held(group.name, "incomplete", (str(error),))
    except (Damage, RuntimeError) as error:
        return Held(group.name, "fault", (str(error),))
    found = drifts(group, recording, today)
    lines = [line for drift in found for line in told(group, drift)]
    return Held(group.name, "fault" if found else "holds", tuple(lines), len(today))


def told(group: Group, drift: Drift) -> list[str]:
    """A drift as a person reads it: what it means, the case, and its diff."""
    oracle = group.oracle.replace("_", "-")
    stale = "mlx-assay fixtures regen, then review"
    heads = {
        "added": f"no golden yet: {stale}",
        "removed": f"an orphan, no case of this id is in the catalogue: {stale}",
        "words": f"its reason, flags or version changed: {stale}",
        "generator": f"its inputs changed with the generator's version, now {group.generator}: {stale}"
        if drift.accounted
        else f"generator fault: its inputs drifted though the generator's version is still {group.generator}",
        "oracle": f"its answers changed with the version of {oracle}, now {group.version}: {stale}"
        if drift.accounted
        else f"oracle fault: {oracle} drifted from its golden though its version is still {group.version}",
    }
    shown = [f"    {line}" for line in drift.lines[:SHOWN]]
    rest = len(drift.lines) - SHOWN
    return [f"{drift.case}: {heads[drift.cause]}", *shown, *([f"    and {rest} more lines"] if rest > 0 else [])]


def hold_folder(root: Path = FOLDER) -> Held:
    """Every file's integrity, orphans, what waits for review, and the size of all fixtures."""
    faults = store.orphans(root, groups())
    for path in store.documents(root):
        try:
            document = store.load(path).document
        except Damage as error:
            faults.append(str(error))
            continue
        if path.parent.name != store.folder_of(document.key) or path.name != document.group + store.TEXT:
            faults.append(f"{path}: Expected it at {store.folder_of(document.key)}/{document.group}{store.TEXT}")
    faults += [
        f"{path}: Expected the document {path.name.removesuffix(store.TENSORS)}{store.TEXT} beside it but there is none"
        for path in store.files(root)
        if path.name.endswith(store.TENSORS)
        and not path.with_name(path.name.removesuffix(store.TENSORS) + store.TEXT).exists()
    ]
    faults += [f"{path}: waits for mlx-assay fixtures review" for path in store.documents(root, pending=True)]
    if (size := store.size(root.parent)) > SIZE_LIMIT:
        faults.append(f"{root.parent}: Expected {SIZE_LIMIT} bytes at most but it has {size}")
    count = len(store.documents(root))
    return Held("files", "fault" if faults else "holds", tuple(faults), count)


def hold_real(folder: Path | None = None) -> Held:
    """The recorded real input against its digests."""
    folder = folder or Path(recorded.__file__).parent / "data"
    faults = []
    for name, expected in recorded.DIGESTS.items():
        path = folder / f"{name}{store.TENSORS}"
        found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
        if found != expected:
            faults.append(f"{path}: Expected the SHA-256 {expected} but got {found}: restore it, or regen real")
    faults += [f"{path}: waits to be compared" for path in store.files(folder) if path.name.endswith(store.PENDING)]
    return Held("real input", "fault" if faults else "holds", tuple(faults), len(recorded.DIGESTS))


def hold_all(names: Sequence[str] = (), root: Path = FOLDER) -> Iterable[Held]:
    """The folder, the real input, and each group."""
    yield hold_folder(root)
    yield hold_real()
    for group in groups().values():
        if not names or group.name in names:
            yield hold(group, root)
