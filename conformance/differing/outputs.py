"""The outputs of a case that fails in two runs: whether the same bits came, as far as that can be told."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mlx_assay.conformance.differing.document import Bits
from mlx_assay.conformance.record import Difference, Record

LARGEST = 128 << 20
"""Bytes of one file of kept tensors that are read; a run keeps half of that a case."""

GOT, WANT, ROWS = "got.", "want.", "rows"
"""How the names of kept outputs begin, and of what was expected; and which rows, where they are not all kept."""


class Told(NamedTuple):
    """What is known of two outputs, and of what was expected of them; a note where kept tensors could not be read."""

    got: Bits
    want: Bits
    note: str = ""


class Unreadable(Exception):
    """Kept tensors that cannot be read."""


def told(old: Record, new: Record, old_folder: Path, new_folder: Path) -> Told:
    """From the tensors that both runs kept beside their reports, else from what the records show."""
    if old.tensors and new.tensors:
        try:
            before, after = kept(old_folder, old.tensors), kept(new_folder, new.tensors)
            if before.get(ROWS) == after.get(ROWS):
                return _of_tensors(before, after)
        except Unreadable as error:
            got, want = _of_records(old.difference, new.difference)
            return Told(got, want, f"{new.id}: {error}")
    return Told(*_of_records(old.difference, new.difference))


def kept(folder: Path, name: str) -> dict[str, bytes]:
    """Dtype, shape and bytes of each kept tensor as one text of bytes. Unreadable: not a file of that folder."""
    from mlx_assay.fixtures.codec import load

    root = folder.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise Unreadable(f"expected tensors beside the report but it names {name!r}, which lies elsewhere: not read")
    try:
        if not path.is_file():
            raise Unreadable(f"expected a file of tensors but {name!r} is none: were they moved with the report?")
        if (size := path.stat().st_size) > LARGEST:
            raise Unreadable(f"expected {LARGEST} bytes at most but {name!r} has {size}: not read")
        archive = load(path)
    except (OSError, ValueError) as error:
        raise Unreadable(f"expected a file of tensors but {name!r} is none: {error}") from error
    return {key: f"{each.dtype}{each.shape}".encode() + each.tobytes() for key, each in archive.tensors.items()}


def _of_tensors(old: dict[str, bytes], new: dict[str, bytes]) -> Told:
    return Told(_same(old, new, GOT), _same(old, new, WANT))


def _same(old: dict[str, bytes], new: dict[str, bytes], beginning: str) -> Bits:
    """Of what both runs kept: an oracle may have been there in one of them alone."""
    common = [name for name in old.keys() & new.keys() if name.startswith(beginning)]
    if not common:
        return "unknown"
    if any(old[name] != new[name] for name in common):
        return "other"
    return "alike" if ROWS in new else "same"


def _of_records(old: Difference | None, new: Difference | None) -> tuple[Bits, Bits]:
    if old is None or new is None or old.subcase != new.subcase:
        return "unknown", "unknown"
    before, after = ({tuple(place.index): place for place in side.places} for side in (old, new))
    common = before.keys() & after.keys()
    got = all(before[index].got == after[index].got for index in common)
    want = all(before[index].want == after[index].want for index in common)
    # Other places differ where the output is another or where the expectation is.
    moved = (old.count, old.total, old.worst_ulp) != (
        new.count,
        new.total,
        new.worst_ulp,
    ) or before.keys() != after.keys()
    same_reference = want and old.oracle == new.oracle
    other = not got or (moved and same_reference) or (same_reference and _patterns_differ(old, new))
    return "other" if other else "alike", "alike" if want else "other"


def _patterns_differ(old: Difference, new: Difference) -> bool:
    if old.pattern is None or new.pattern is None:
        return False
    return (old.pattern.histogram, old.pattern.map) != (new.pattern.histogram, new.pattern.map)
