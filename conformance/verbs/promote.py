"""The action `fixtures promote`: a failing case, or one that exploration found, becomes a case of its own for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from mlx_assay.conformance.regeneration.permission import writing
from mlx_assay.conformance.reporting.report import decode
from mlx_assay.conformance.selection import replayed
from mlx_assay.conformance.verbs import keep
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.found import SUFFIX, Find
from mlx_assay.fixtures.kind import kind_of
from mlx_assay.fixtures.tensor import Tensor

BYTES = 1 << 18
"""Of one input: larger ones are made by a kind's generator, not kept as bits."""

Say = Callable[[str], object]


def promote(
    what: str, why: str, issue: str = "", subcase: str | None = None, say: Say = print, folder: Path = keep.FOLDER
) -> int:
    """Keeps a candidate file, the calls of a case id, or what failed in a report.

    ValueError says why something cannot be kept; then nothing is.
    """
    writing("promote")
    found = {find.filename: find for find in _finds(what, subcase)}.values()
    if not found:
        raise ValueError(f"Expected a call to keep but {what!r} has none{f' of label {subcase!r}' if subcase else ''}")
    for find in found:
        keep.check(find, why, folder)
    for find in found:
        say(keep.put(find, why, issue, folder))
    return 0


def _finds(what: str, subcase: str | None) -> Iterator[Find]:
    path = Path(what)
    if path.name.endswith(SUFFIX):
        yield keep.read(path)
    elif path.name.endswith(".json"):
        yield from _failed(path)
    else:
        yield from _called(replayed(what), subcase)


def _failed(path: Path) -> Iterator[Find]:
    """The telling call of every case of a report that differs."""
    try:
        report = decode(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path}: Expected a report to read but: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: Expected a report of mlx-assay but: {error}") from error
    failing = [record for record in report.cases if record.difference is not None and not record.conforms]
    if not failing:
        raise ValueError(f"{path}: Expected a case that differs but there is none")
    for record in failing:
        assert record.difference
        yield from _called(Case.parse(record.id), record.difference.subcase)


def _called(case: Case, label: str | None) -> Iterator[Find]:
    for subcase in kind_of(case).subcases(case):
        if label is None or subcase.label == label:
            yield _find(case, subcase)


def _find(case: Case, subcase: Subcase) -> Find:
    if subcase.raises:
        raise ValueError(f"Expected a call that returns but {case.id}, {subcase.label!r} is expected to raise")
    size = sum(value.base.nbytes for value in subcase.arguments.values() if isinstance(value, Tensor))
    if size > BYTES:
        raise ValueError(
            f"Expected {BYTES} bytes at most but {case.id}, {subcase.label!r} takes {size}: add its parameters or "
            "its seed to the kind's quick tier instead"
        )
    return Find(case.operation, case.dtype, subcase.arguments)
