"""The process of an implementation: what it is handed, how it ends, and that it never outlives its judge."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance.process.child import Death
from mlx_assay.conformance.process.exchange import ARENA_KEPT, POISONS
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError, Outcome
from mlx_assay.conformance.process.protocol import PlainArgument
from mlx_assay.conformance.process.transcript import KEPT
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.tensor import DTYPES, Tensor

ECHO = """
import os, threading, time
import mlx.core as mx
import numpy as np
from mlx_assay.impl import executors
from mlx_assay.impl.executors.choice import current_poison

def echo(array):
    if isinstance(array, mx.array):
        return array + 0 if array.dtype in (mx.int32, mx.uint32, mx.int8, mx.uint8) else mx.contiguous(array)
    if type(array).__module__ == "torch":
        import torch
        array = array.view(torch.uint16).numpy() if array.dtype == torch.bfloat16 else array.numpy()
    words = np.ascontiguousarray(array)
    return mx.array(words.view(f"u{words.itemsize}").reshape(array.shape))

def plain(value):
    return mx.array(np.frombuffer(repr((type(value).__name__, value)).encode(), dtype=np.uint8))

def address(array):
    return mx.array(np.asarray(memoryview(array)).ctypes.data % (1 << 32), dtype=mx.uint32)

def identity(array):
    return mx.array(id(array) % (1 << 32), dtype=mx.uint32)

def strides(array):
    words = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32}[array.dtype.size]
    return mx.array([stride // array.dtype.size for stride in memoryview(array.view(words)).strides], dtype=mx.int32)

def poison(array):
    return mx.array(current_poison(), dtype=mx.uint32)

def replaced(array):
    return mx.array(mx.fast.metal_kernel is executors.metal_kernel).astype(mx.uint32)

def dies(array):
    os.abort()

def sleeps(array):
    time.sleep(3600)

def pid(array):
    return mx.array(os.getpid(), dtype=mx.uint32)

def floods(array):
    os.write(1, b"x" * (1 << 22))
    return array

class Thing:
    class part:
        echo = staticmethod(echo)
"""
OPERATIONS = (
    "echo",
    "plain",
    "address",
    "identity",
    "strides",
    "poison",
    "replaced",
    "dies",
    "sleeps",
    "pid",
    "floods",
)

Make = Callable[..., Implementation]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Make:
    """An implementation of the test's own, in a module that only the current folder holds."""
    (tmp_path / "own_echo.py").write_text(ECHO)
    monkeypatch.chdir(tmp_path)

    def made(target: str = "own_echo", executor: str | None = "host", limit: float = 30.0) -> Implementation:
        implementation = Implementation(target, executor, limit, operations=OPERATIONS)
        request.addfinalizer(implementation.close)
        return implementation

    return made


def outcomes(implementation: Implementation, operation: str, *arguments: Any) -> list[Outcome]:
    run = implementation.begin(operation, [[argument] for argument in arguments])
    found = run.complete()
    implementation.finish(run)
    return found


def arrays(found: list[Outcome]) -> list[np.ndarray]:
    assert [outcome.raised for outcome in found] == [None] * len(found)
    return [outcome.array for outcome in found if outcome.array is not None]


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def gone(pid: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

STEPS = {
    "contiguous": (),
    "transposed": (("transpose", (1, 0)),),
    "every-second": (("slice", ((None, None, None), (1, None, 2))),),
    "reversed": (("slice", ((None, None, -1), (None, None, -1))),),
    "broadcast": (("slice", ((0, 1, None), (None, None, None))), ("broadcast", (3, 6))),
}


@pytest.mark.parametrize("kind", ["mx", "numpy", "torch"])
def test_every_bit_of_every_dtype_and_view_arrives(make: Make, kind: Any) -> None:
    random = np.random.default_rng(3)
    implementation = make()
    for name, dtype in DTYPES.items():
        base = np.frombuffer(random.bytes(24 * dtype.itemsize), dtype=dtype).reshape(4, 6)
        for view, steps in STEPS.items():
            if kind == "torch" and view == "reversed":
                continue
            tensor = Tensor(base, steps, kind)
            for array in arrays(outcomes(implementation, "echo", tensor)):
                assert array.tobytes() == tensor.array.tobytes(), (name, view)
                assert array.shape == tensor.array.shape


def test_signalling_nan_payloads_arrive(make: Make) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    first, second = arrays(outcomes(make(), "echo", Tensor(every)))
    assert first.tobytes() == second.tobytes() == every.tobytes()


@pytest.mark.parametrize("shape", [(), (0, 4), (1, 1, 1), (2, 0)])
def test_scalars_and_empty_arrays_arrive(make: Make, shape: tuple[int, ...]) -> None:
    for array in arrays(outcomes(make(), "echo", Tensor(np.ones(shape, np.float32)))):
        assert array.shape == shape
        assert array.dtype == np.float32


def test_views_are_handed_out_as_views(make: Make) -> None:
    base = np.zeros((4, 6), np.float32)
    for view, wanted in {
        "transposed": [1, 6],
        "every-second": [6, 2],
        "reversed": [-6, -1],
        "broadcast": [0, 1],
    }.items():
        for array in arrays(outcomes(make(), "strides", Tensor(base, STEPS[view]))):
            assert array.tolist() == wanted, view


@pytest.mark.parametrize("value", [0, -7, 2**40, 0.1, -0.0, float("inf"), 5e-324, None, True, "text", "0x1p0"])
def test_plain_values_arrive(make: Make, value: Any) -> None:
    for array in arrays(outcomes(make(), "plain", value)):
        assert array.tobytes().decode() == repr((type(value).__name__, value))


def test_nan_travels_as_a_plain_value() -> None:
    assert np.isnan(PlainArgument.make(float("nan")).value)


def test_equal_shapes_come_in_one_object_and_hosts_on_one_storage(make: Make) -> None:
    implementation = make()
    different = [np.full((3, 5), fill, np.float32) for fill in (1, 2, 3)]
    for steps in STEPS["contiguous"], STEPS["transposed"]:
        found = arrays(outcomes(implementation, "identity", *(Tensor(array, steps) for array in different)))
        assert len({int(array) for array in found}) == 1
    found = arrays(outcomes(implementation, "address", *(Tensor(array, kind="numpy") for array in different)))
    assert len({int(array) for array in found}) == 1


def test_the_two_rounds_run_under_two_poisons(make: Make) -> None:
    tensor = Tensor(np.zeros(3, np.float32))
    found = [int(array) for array in arrays(outcomes(make(), "poison", tensor, tensor))]
    assert found == [POISONS[0], POISONS[0], POISONS[1], POISONS[1]]


def test_poisons_are_no_right_answers() -> None:
    as_bytes = np.array(POISONS, np.uint32)
    assert np.isnan(as_bytes[:1].view(np.float32)).all()
    assert np.isnan(as_bytes[:1].view(np.float16)).all()
    assert (as_bytes > 1 << 30).all()
    assert (as_bytes != 0).all()


def test_the_users_kernels_run_on_the_executor(make: Make) -> None:
    found = arrays(outcomes(make(), "replaced", Tensor(np.zeros(1, np.float32))))
    assert [int(array) for array in found] == [1, 1]


def test_an_object_in_a_module_is_a_target(make: Make) -> None:
    assert make("own_echo:Thing.part").operations == ("echo",)


def test_environment_names_what_ran(make: Make) -> None:
    environment = make().environment
    assert environment["name"] == "own_echo"
    assert environment["executor"]["name"] == "host"
    assert environment["executor"]["f32_denormals"] == "flushed"
    assert environment["mlx"]
    assert environment["device"]


@pytest.mark.parametrize("executor", ["vulkan", "Host"])
def test_an_unknown_executor_is_a_clear_error(make: Make, executor: str) -> None:
    with pytest.raises(ImplementationError, match=executor):
        assert make(executor=executor).operations


def test_a_dead_process_is_replaced_by_the_next_case(make: Make) -> None:
    implementation = make()
    tensor = Tensor(np.zeros(3, np.float32))
    (before, _) = arrays(outcomes(implementation, "pid", tensor))
    with pytest.raises(Death) as death:
        outcomes(implementation, "dies", tensor)
    assert death.value.verdict is Verdict.CRASHED
    assert "SIGABRT" in death.value.message
    (after, _) = arrays(outcomes(implementation, "pid", tensor))
    assert int(before) != int(after)


def test_a_run_that_nobody_finished_costs_its_process(make: Make) -> None:
    implementation = make()
    tensor = Tensor(np.zeros(3, np.float32))
    left = implementation.begin("sleeps", [[tensor]])
    found = arrays(outcomes(implementation, "echo", tensor))
    assert len(found) == 2
    left.child.end()


def test_a_hang_ends_at_the_limit(make: Make) -> None:
    implementation = make(limit=2.0)
    assert implementation.operations
    began = time.monotonic()
    with pytest.raises(Death) as death:
        outcomes(implementation, "sleeps", Tensor(np.zeros(3, np.float32)))
    assert death.value.verdict is Verdict.TIMED_OUT
    assert 1.9 < time.monotonic() - began < 10


def test_only_the_end_of_a_flood_is_kept(make: Make) -> None:
    implementation = make()
    run = implementation.begin("floods", [[Tensor(np.zeros(3, np.float32))]])
    assert len(arrays(run.complete())) == 2
    assert len(run.child.transcript.kept) <= KEPT
    implementation.finish(run)


def test_a_large_arena_is_given_back(make: Make) -> None:
    implementation = make()
    run = implementation.begin("pid", [[Tensor(np.zeros(ARENA_KEPT // 8, np.float32))]])
    assert os.fstat(run.child.arena).st_size >= ARENA_KEPT // 2
    run.complete()
    assert os.fstat(run.child.arena).st_size == 0
    implementation.finish(run)
    assert len(arrays(outcomes(implementation, "echo", Tensor(np.ones(3, np.float32))))) == 2


@linux
def test_close_ends_what_the_implementation_started(make: Make, tmp_path: Path) -> None:
    (tmp_path / "own_starter.py").write_text(
        "import os, subprocess\nimport mlx.core as mx\n"
        "sleep = ['sleep', '3600']\n"
        "started = [subprocess.Popen(sleep, close_fds=False, start_new_session=own).pid for own in (0, 1)]\n"
        "def pid(array):\n    return mx.array([os.getpid(), *started], dtype=mx.uint32)\n"
    )
    implementation = make("own_starter")
    (found, _) = arrays(outcomes(implementation, "pid", Tensor(np.zeros(1, np.float32))))
    assert all(alive(int(pid)) for pid in found)
    implementation.close()
    assert all(gone(int(pid)) for pid in found)


JUDGE = """
import sys, time
import numpy as np
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.fixtures.tensor import Tensor
implementation = Implementation("own_echo", "host", 60.0, operations=("pid", "sleeps"))
tensor = Tensor(np.zeros(1, np.float32))
run = implementation.begin("pid", [[tensor]])
print(int(run.complete()[0].array), flush=True)
implementation.finish(run)
run = implementation.begin("sleeps", [[tensor]])
run.complete()
"""


@linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_process_outlives_its_judge(make: Make, number: signal.Signals) -> None:
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert judge.stdout is not None
    pid = int(judge.stdout.readline())
    assert alive(pid)
    judge.send_signal(number)
    judge.wait(10)
    judge.stdout.close()
    assert gone(pid)
