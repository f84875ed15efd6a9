"""The checker finds every planted fault of the corpus at its lines, and nothing in the sound twins."""

import tomllib
from pathlib import Path
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from checker.corpus import Array, Kernel, Row, rows, values, viewed, wanted
from checker.judgement import objections

from mlx_assay.impl.executors import metal_kernel, use
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


def to_mlx(array: Array) -> Any:
    whole = values(array)
    bits = array.dtype == "bfloat16"
    return viewed(array, mx.array(whole.view(np.uint16)).view(mx.bfloat16) if bits else mx.array(whole), mx)


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    if array.dtype == mx.bfloat16:
        return np.array(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(array)


def run(kernel: Kernel) -> list[np.ndarray[Any, Any]]:
    """The outputs of one launch on the host executor."""
    launch = dict(kernel.launch)
    inputs, outputs = launch.pop("inputs"), launch.pop("outputs")
    launch["template"] = [(name, getattr(mx, v) if isinstance(v, str) else v) for name, v in launch["template"]]
    made = metal_kernel(
        kernel.name,
        [array.name for array in inputs],
        [array.name for array in outputs],
        kernel.texts["source"],
        kernel.texts["header"],
        ensure_row_contiguous=launch.pop("ensure_row_contiguous"),
        atomic_outputs=launch.pop("atomic_outputs"),
    )
    with use("host"):
        results = made(
            inputs=[to_mlx(array) for array in inputs],
            output_shapes=[array.shape for array in outputs],
            output_dtypes=[getattr(mx, {"bool": "bool_"}.get(array.dtype, array.dtype)) for array in outputs],
            **launch,
        )
        mx.eval(results)
    return [to_numpy(array) for array in results]


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
