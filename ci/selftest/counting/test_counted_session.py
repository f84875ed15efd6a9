"""Where launches can be counted, and that the same launch has the same counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import mlx.core as mx
import msgspec
import numpy as np
import pytest
from counting.launching import count, floats

from mlx_assay.impl import executors
from mlx_assay.impl.executors import CountingError, Counts, choice, counted
from mlx_assay.impl.executors.checker import checked
from mlx_assay.impl.executors.counting import total
from mlx_assay.impl.executors.fidelity import switched
from mlx_assay.impl.executors.raw import RawKernel
from mlx_assay.impl.executors.stock import TextLibrary

SUM = """
threadgroup float s[64];
s[i & 63] = x[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
float t = 0;
for (uint k = 0; k < (i & 7); k++) t += s[(i + k) & 63];
out[i] = simd_sum(t);
"""


def run() -> Counts:
    return count(SUM, floats(256), grid=256, threadgroup=64, output=((256,), mx.float32))


def test_a_launch_has_the_same_counts_again() -> None:
    first = run()
    held = [mx.zeros((1000 + 4 * n,)) for n in range(9)]
    mx.eval(held)
    assert run() == first
    with ThreadPoolExecutor(3) as pool:
        assert set(map(msgspec.json.encode, pool.map(lambda _: run(), range(6)))) == {msgspec.json.encode(first)}


@pytest.mark.parametrize("schedule", ["reverse", "round-robin", "pct:5"])
def test_schedules_count_alike(schedule: str) -> None:
    first = run()
    with choice.schedule(schedule):
        assert run() == first


def test_counts_become_json_and_come_back() -> None:
    found = run()
    assert msgspec.json.decode(msgspec.json.encode(found), type=Counts) == found


def copied() -> None:
    """One launch."""
    source = "const uint i = thread_position_in_grid.x;\nout[i] = x[i];"
    kernel = executors.metal_kernel("copied", ["x"], ["out"], source)
    size = {"grid": (64, 1, 1), "threadgroup": (32, 1, 1), "output_shapes": [(64,)], "output_dtypes": [mx.float32]}
    with executors.use("host"):
        mx.eval(kernel(inputs=[floats(64)], **size))


def test_launches_add_up() -> None:
    with counted() as counts:
        copied()
        copied()
    assert len(counts) == 2
    whole = total(counts)
    assert whole.threads == sum(c.threads for c in counts)
    assert whole.reads["device"].sectors == sum(c.reads["device"].sectors for c in counts)
    assert whole.kernel == "copied"
    assert total(counts[:1]).grid == counts[0].grid
    assert whole.issued == sum(c.issued for c in counts)
    with pytest.raises(ValueError, match="expected a launch"):
        total([])


def test_the_innermost_counts() -> None:
    with counted() as outer:
        with counted() as inner:
            copied()
        held = len(outer)
        copied()
    assert (held, len(inner), len(outer)) == (0, 1, 1)


def test_nothing_is_counted_outside() -> None:
    with counted() as counts:
        pass
    copied()
    assert counts == []


@pytest.mark.parametrize("name", ["metal", "cuda"])
def test_another_executor_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = executors.metal_kernel("elsewhere", ["x"], ["out"], "out[0] = x[0];")
    monkeypatch.setattr(choice, "current", lambda: name)
    with counted(), pytest.raises(CountingError, match=f"'elsewhere' runs on the executor '{name}'.*use\\('host'\\)"):
        kernel(
            inputs=[floats(8)], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)], output_dtypes=[mx.float32]
        )


def test_what_apple_has_compiled_is_refused() -> None:
    with counted(), pytest.raises(CountingError, match="'made' runs on code that Apple has compiled"):
        RawKernel("made", [], {}, 0)([], threadgroup=1, grid=1)


def test_the_checker_is_refused() -> None:
    with checked(), pytest.raises(CountingError, match=r"runs on the checker.*outside of checked"):
        run()


def test_a_fault_is_told_as_ever() -> None:
    source = "if (i < 32)\nthreadgroup_barrier(mem_flags::mem_none);\nelse\nthreadgroup_barrier(mem_flags::mem_none);"
    with pytest.raises(RuntimeError, match="wait at different barriers, source lines 3 and 5"):
        count(source, grid=64, threadgroup=64)


def test_what_does_not_compile_is_told_as_ever() -> None:
    with pytest.raises(RuntimeError, match="does not compile"):
        count("out[i] = nothing;")


def test_too_much_threadgroup_memory_is_told_as_ever() -> None:
    with pytest.raises(RuntimeError, match="40000 bytes of threadgroup memory"):
        count("threadgroup float s[10000];\ns[i] = 1;\nout[i] = s[i];")


def test_switches_hold() -> None:
    source = "out[i] = x[i] * x[i + 1] + x[i + 2];"
    with switched(contraction="off"):
        assert "fma" not in count(source, floats(64)).arithmetic
    assert count(source, floats(64)).arithmetic["fma"].issued == 1


def test_a_grid_without_threads() -> None:
    found = count("out[i] = 1;", grid=0)
    assert (found.threads, found.writes) == (0, {})


def test_whole_kernels_are_counted() -> None:
    text = (
        "[[kernel]] void twice(constant float& f [[buffer(0)]], device float* a [[buffer(1)]],\n"
        "    uint i [[thread_position_in_grid]]) {\n  a[i] = f * a[i];\n}\n"
    )
    kernel = TextLibrary(text).function("twice")
    array = np.arange(64, dtype=np.float32)
    with counted() as counts:
        kernel({0: np.float32(2), 1: array}, grid=64, threadgroup=32)
    assert np.array_equal(array, 2 * np.arange(64))
    (found,) = counts
    assert (found.kernel, found.reads["device"].sectors, found.writes["device"].sectors) == ("twice", 8, 8)
    assert found.reads["constant"].lanes == 64
