"""What is said of a kernel that ends a GPU's context, without a GPU: by its name, with the likely cause."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import choice
from mlx_assay.impl.executors.cuda import compilation, device, fault
from mlx_assay.impl.executors.cuda import kernel as kernels
from mlx_assay.impl.executors.cuda.kernel import CudaKernel
from mlx_assay.impl.executors.signature import Definition

MISALIGNED = "cudaStreamSynchronize(s) failed: misaligned address"
STRAY = "cudaMallocManaged(&data, size) failed: an illegal memory access was encountered"


@pytest.fixture(autouse=True)
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_available", lambda: True)
    monkeypatch.setattr(device, "_lost", False)
    monkeypatch.setattr(device, "_unwaited", [])


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (MISALIGNED, "its type's alignment does not allow, in private memory"),
        (STRAY, "an address outside all memory"),
        ("x failed: unspecified launch failure", ""),
    ],
)
def test_the_kernel_and_the_likely_cause_are_named(said: str, cause: str) -> None:
    message = fault.told(["row"], said)
    assert message.startswith(f"[metal_kernel] kernel 'row' on the cuda executor: {said}: ")
    assert ("the likely cause is" in message) == bool(cause)
    assert cause in message
    assert "`mlx-assay check`" in message
    assert message.endswith("the GPU does nothing more for this process.")


def test_a_late_error_names_the_kernels_that_nobody_waited_for() -> None:
    for name in ("first", "second", "first"):
        device.launched(name)
    told = fault.late(RuntimeError(MISALIGNED))
    assert str(told) == fault.told(["second", "first"], MISALIGNED)
    assert "kernel 'second' or 'first' on" in str(told)
    assert device.lost()
    again = RuntimeError(STRAY)
    assert fault.late(again) is again


def test_the_last_names_are_kept() -> None:
    for number in range(device.MOST_UNWAITED + 3):
        device.launched(f"kernel-{number}")
    assert device.unwaited() == [f"kernel-{number}" for number in range(3, device.MOST_UNWAITED + 3)]


class Hostile:
    def __str__(self) -> str:
        raise AssertionError("asked")


class Own(RuntimeError):
    pass


@pytest.mark.parametrize(
    "error",
    [RuntimeError("row 3 of 4 failed"), RuntimeError(Hostile()), RuntimeError(), Own(MISALIGNED), ValueError(STRAY)],
)
def test_any_other_error_stays_as_it_is(error: BaseException) -> None:
    device.launched("row")
    assert fault.late(error) is error
    assert not device.lost()


def test_an_error_without_a_kernel_stays_though_the_gpu_is_lost() -> None:
    error = RuntimeError(STRAY)
    assert fault.late(error) is error
    assert device.lost()


def test_without_a_gpu_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_available", lambda: False)
    device.launched("row")
    error = RuntimeError(STRAY)
    assert fault.late(error) is error
    assert not device.lost()


def failing(*arrays: mx.array) -> bool:
    raise RuntimeError(MISALIGNED)


def traced(*arrays: mx.array) -> bool:
    return True


def evaluated(*arrays: mx.array) -> bool:
    return False


@pytest.mark.parametrize(
    ("waited", "names", "lost"), [(failing, [], True), (traced, ["row"], False), (evaluated, [], False)]
)
def test_a_guarded_launch_is_waited_for_or_remembered(
    waited: Callable[..., bool], names: list[str], lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "tracing", waited)
    monkeypatch.setattr(kernels, "_check_stream", lambda stream: None)
    monkeypatch.setattr(kernels, "_precompiled", lambda **given: [mx.zeros(8)])
    program = compilation.Program(b"", "row_0", 0)
    monkeypatch.setattr(CudaKernel, "_prepare", lambda *given: (None, program))
    made = CudaKernel(Definition("row", ("a",), ("out",), ""), lambda *given: pytest.fail("no text is asked for"))
    call = ([mx.zeros(8)], [(8,)], [mx.float32], (8, 1, 1), (8, 1, 1), [], None, False, None)
    with choice.guarded():
        if lost:
            with pytest.raises(RuntimeError, match=r"kernel 'row' on the cuda executor: .*private memory"):
                made(*call)
        else:
            assert made(*call)[0].tolist() == [0] * 8
    assert device.unwaited() == names
    assert device.lost() == lost
