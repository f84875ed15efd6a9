"""The checker finds every planted fault of the corpus at its lines, and nothing in the sound twins."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checker.corpus import Kernel, Row, rows, wanted
from checker.judgement import objections
from checker.launching import launched

from mlx_assay.impl.executors import use
from mlx_assay.impl.executors.checker import checked
from mlx_assay.impl.executors.checker.finding import Finding, Kind

ROWS = list(rows())
FAULTY = [row for row in ROWS if row.faulty]
OPEN = tomllib.loads(Path(__file__).with_name("open.toml").read_text())


def parameters(rows: list[Row], side: str) -> list[Any]:
    """The rows by name. One that open.toml lists has to fail, until it leaves the list."""
    listed = OPEN.get(side, {})
    marks = {name: pytest.mark.xfail(raises=AssertionError, strict=True, reason=why) for name, why in listed.items()}
    assert listed.keys() <= {row.name for row in rows}
    return [pytest.param(row, id=row.name, marks=marks.get(row.name, ())) for row in rows]


def run(kernel: Kernel) -> list[np.ndarray[Any, Any]]:
    """The outputs of one launch on the host executor."""
    with use("host"):
        return launched(kernel)


def check_outputs(row: Row, got: list[np.ndarray[Any, Any]]) -> None:
    for want, have in zip(wanted(row), got, strict=True):
        if want is not None:
            assert want.size == have.size
            assert have.tobytes() == want.astype(have.dtype).tobytes(), (want, have)


def found(kernel: Kernel) -> tuple[list[np.ndarray[Any, Any]], list[Finding]]:
    """The outputs of the first schedule, and what the checker says."""
    hangs = any(Kind.HANG in mark.kinds for mark in kernel.marks)
    with checked(seconds=0.5 if hangs else 60.0) as findings:
        outputs = run(kernel)
    return outputs, findings


def test_every_kind_is_planted() -> None:
    planted = {kind for row in FAULTY for mark in row.faulty.marks if mark.role == "fault" for kind in mark.kinds}
    assert planted == set(Kind) - {Kind.CRASH}
    assert len(FAULTY) >= 60


@pytest.mark.parametrize("row", parameters(FAULTY, "faulty"))
def test_faults_are_found(row: Row) -> None:
    _, findings = found(row.faulty)
    if row.unseen:
        assert findings == [], f"now it is seen: take `unseen` ({row.unseen}) off the row"
    else:
        assert objections(row.faulty, findings) == []


@pytest.mark.parametrize("row", parameters(ROWS, "twin"))
def test_twins_are_sound(row: Row) -> None:
    outputs, findings = found(row.twin)
    assert objections(row.twin, findings) == []
    check_outputs(row, outputs)
