"""Launches that are recorded and run again: chained, strided, in every dtype, with templates and first values."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import msgspec
import numpy as np
import pytest

from mlx_assay.conformance.adapters import plan
from mlx_assay.conformance.bundling import recorder
from mlx_assay.conformance.bundling.document import Round
from mlx_assay.conformance.bundling.launches import NUMPY, Launches, decode
from mlx_assay.conformance.bundling.pool import Pool
from mlx_assay.conformance.bundling.recorder import Log
from mlx_assay.conformance.bundling.rejudging import result_of
from mlx_assay.conformance.bundling.rerun import rerun
from mlx_assay.impl.executors import metal_kernel, poison, use
from mlx_assay.impl.executors.observation import observed, recording

COPY = metal_kernel(
    "copy", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = T(x[i * x_strides[0]]);", "", False
)
TWICE = metal_kernel("twice", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] + x[i] * T(N);")
PARTIAL = metal_kernel("partial", ["x"], ["y"], "if (thread_position_in_grid.x == 0) y[0] = x[0];")


def launched(kernel: Any, x: mx.array, dtype: Any = mx.float32, **others: Any) -> mx.array:
    (y,) = kernel(
        inputs=[x],
        grid=(x.size, 1, 1),
        threadgroup=(32, 1, 1),
        output_shapes=[(x.size,)],
        output_dtypes=[dtype],
        template=[("T", dtype), ("N", 3)],
        **others,
    )
    made: mx.array = y
    return made


def recorded(call: Any) -> tuple[Launches, Pool, np.ndarray]:
    """What a file tells of a call on host with poisoned outputs, and the bytes that the call gave."""
    log = Log()
    with use("host"), poison(0x7B7B7B7B), recording(log.hear):
        result = call()
        mx.eval(result)
    launches, pool = decode(log.encoded())
    assert launches.omitted == ""
    return launches, pool, np.array(result.view(mx.uint8))


def again(launches: Launches, pool: Pool) -> tuple[Any, Round]:
    bundle = SimpleNamespace(executor=SimpleNamespace(details={}), kernels=launches.kernels)
    each = Round(poison="0x7b7b7b7b", schedule="in-order", launches=launches.launches)
    made = rerun(bundle, each, pool, 60.0)  # type: ignore[arg-type]
    assert made.failure == ""
    return made, each


def test_a_chain_with_strides_and_templates_gives_the_same_bits() -> None:
    x = mx.arange(40, dtype=mx.float32)[::-3]
    launches, pool, result = recorded(lambda: launched(TWICE, launched(TWICE, launched(COPY, x))))
    assert [launches.kernels[launch.kernel].name for launch in launches.launches] == ["copy", "twice", "twice"]
    assert launches.launches[0].inputs[0].strides == [-3]
    made, each = again(launches, pool)
    assert result_of(each, pool, result) == (2, 0)
    assert made.outputs[2, 0].tobytes() == result.tobytes()


def test_what_a_launch_makes_otherwise_reaches_the_next() -> None:
    """The first kernel's text is another; the second gets what that makes, not what the record holds."""
    launches, pool, _ = recorded(lambda: launched(TWICE, launched(COPY, mx.arange(33, dtype=mx.float32))))
    other = launches.kernels[0].source.replace("T(x[", "T(1) + T(x[")
    kernel = type(launches.kernels[0])(
        name="copy", input_names=["x"], output_names=["y"], source=other, ensure_row_contiguous=False
    )
    changed = Launches(kernels=[kernel, launches.kernels[1]], launches=launches.launches)
    made, _ = again(changed, pool)
    assert made.outputs[1, 0].tolist() == [4.0 * (number + 1) for number in range(33)]


def test_every_dtype_travels() -> None:
    dtypes = [name for name in NUMPY if name not in ("float64", "bool")]
    arrays = [mx.arange(35).astype(getattr(mx, name)) for name in dtypes]
    launches, pool, _ = recorded(lambda: [launched(TWICE, x, x.dtype) for x in arrays][-1])
    made, _ = again(launches, pool)
    for index, (name, launch) in enumerate(zip(dtypes, launches.launches, strict=True)):
        assert launch.outputs[0].dtype == name
        assert made.outputs[index, 0].tobytes() == pool.tensors[launch.outputs[0].tensor].tobytes()


@pytest.mark.parametrize("first", [None, 0.1])
def test_what_a_kernel_leaves_unwritten_is_the_same(first: float | None) -> None:
    launches, pool, result = recorded(lambda: launched(PARTIAL, mx.ones(9), init_value=first))
    assert again(launches, pool)[0].outputs[0, 0].tobytes() == result.tobytes()
    assert len(set(result.view(np.uint32).tolist())) == 2


def test_what_cannot_be_told_of_is_left_out_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    monkeypatch.setattr(recorder, "LARGEST", 100)
    with use("host"), recording(log.hear):
        mx.eval(launched(TWICE, mx.ones(1000)))
    launches, pool = decode(log.encoded())
    assert (launches.launches, list(pool)) == ([], [])
    assert "arrays of more than 100 bytes" in launches.omitted


def test_a_launch_that_ends_the_process_is_told_of_before(tmp_path: Path) -> None:
    """The file is there while the launch runs, with an output that has not come."""
    stray = metal_kernel("stray", ["x"], ["y"], "y[1u << 20] = x[0];")
    found: list[Launches] = []

    def look(definition: Any, launch: Any) -> list[Any]:
        found.append(decode((tmp_path / "log").read_bytes())[0])
        raise ZeroDivisionError

    with use("host"), recording(Log(tmp_path / "log").hear), observed(look), pytest.raises(ZeroDivisionError):
        launched(stray, mx.ones(3))
    (launch,) = found[0].launches
    assert (launch.outputs[0].tensor, launch.outputs[0].shape, launch.grid) == ("", [3], (3, 1, 1))


PLAN = {
    "launches": [
        {
            "name": "thrice",
            "source": "uint i = thread_position_in_grid.x; y[i] = x[i] * 3;",
            "inputs": [{"is": "argument", "name": "x", "argument": "x"}],
            "outputs": [{"name": "y", "dtype": "float32", "shape": [3]}],
            "grid": [3, 1, 1],
            "threadgroup": [3, 1, 1],
        }
    ],
    "result": {"launch": 0, "output": "y"},
}


def test_the_launches_of_a_plan_are_recorded() -> None:
    launches, pool, result = recorded(lambda: plan.run(msgspec.json.encode(PLAN), {"x": mx.ones(3)}))
    assert [kernel.name for kernel in launches.kernels] == ["thrice"]
    assert again(launches, pool)[0].outputs[0, 0].tolist() == [3.0] * 3 == result.view(np.float32).tolist()


def test_launches_that_are_not_asked_for_are_not_recorded() -> None:
    log = Log()
    with use("host"):
        with recording(log.hear):
            launched(TWICE, mx.ones(3))
        launched(TWICE, mx.ones(3))
    assert len(decode(log.encoded())[0].launches) == 1
