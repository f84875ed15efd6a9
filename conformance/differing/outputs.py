"""The outputs of a case that fails in two runs: whether the same bits came, as far as that can be told."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from mlx_assay.conformance.differing.document import Bits
from mlx_assay.conformance.options import resolved
from mlx_assay.conformance.record import Difference, Place, Record
from mlx_assay.conformance.reporting.intake import read

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
    """From the tensors that both runs kept beside their reports, and from what the records show, which comes first.

    Where a record shows other values, or other counts under the same expectation, the outputs are not the same,
    whatever lies beside the reports.
    """
    shown = _of_records(old.difference, new.difference)
    if not (old.tensors and new.tensors):
        return Told(*shown)
    try:
        before, after = kept(old_folder, old), kept(new_folder, new)
    except Unreadable as error:
        return Told(*shown, f"{new.id}: {error}")
    if before.get(ROWS) != after.get(ROWS):
        return Told(*shown)
    got, want = _same(before, after, GOT), _same(before, after, WANT)
    if shown[1] == "other":
        want = "other"
    if shown[0] == "other" and (want != "other" or _values_differ(old.difference, new.difference)):
        got = "other"
    return Told(got, want)


def kept(folder: Path, record: Record) -> dict[str, bytes]:
    """Dtype, shape and bytes of each kept tensor as one text of bytes.

    Unreadable: no file of that folder, or not the bytes that the run wrote, such as those of a later run.
    """
    from mlx_assay.fixtures.codec import decode

    name, root = record.tensors, resolved(folder)
    path = resolved(root / name)
    if not path.is_relative_to(root):
        raise Unreadable(f"expected tensors beside the report but it names {name!r}, which lies elsewhere: not read")
    try:
        content = read(path, LARGEST)
        if hashlib.sha256(content).hexdigest() != record.tensors_sha256:
            raise Unreadable(
                f"expected the tensors that the run wrote but {name!r} holds others: did a later run replace them?"
            )
        tensors = decode(content).tensors
    except ValueError as error:
        raise Unreadable(
            f"expected a file of tensors but {name!r} is none: {error}: were they moved with the report?"
        ) from error
    return {key: f"{each.dtype}{each.shape}".encode() + each.tobytes() for key, each in tensors.items()}


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
    before, after = _places(old), _places(new)
    want = all(before[index].want == after[index].want for index in before.keys() & after.keys())
    # Other places differ where the output is another or where the expectation is.
    moved = (old.count, old.total, old.worst_ulp) != (
        new.count,
        new.total,
        new.worst_ulp,
    ) or before.keys() != after.keys()
    same_reference = want and old.oracle == new.oracle
    other = _values_differ(old, new) or (moved and same_reference) or (same_reference and _patterns_differ(old, new))
    return "other" if other else "alike", "alike" if want else "other"


def _values_differ(old: Difference | None, new: Difference | None) -> bool:
    """Whether another value stands at a place that both show."""
    if old is None or new is None or old.subcase != new.subcase:
        return False
    before, after = _places(old), _places(new)
    return any(before[index].got != after[index].got for index in before.keys() & after.keys())


def _places(side: Difference) -> dict[tuple[int, ...], Place]:
    return {tuple(place.index): place for place in side.places}


def _patterns_differ(old: Difference, new: Difference) -> bool:
    if old.pattern is None or new.pattern is None:
        return False
    return (old.pattern.histogram, old.pattern.map) != (new.pattern.histogram, new.pattern.map)
