"""Which executor runs a kernel, and what its memory holds before. Every thread and task chooses for itself."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import mlx.core as mx

from mlx_assay.impl.executors import crew
from mlx_assay.impl.executors.cuda import device
from mlx_assay.impl.executors.toolchain import ToolchainError, toolchain

NAMES = ("metal", "cuda", "host")
SCHEDULES = ("in-order", "reverse", "round-robin", "pct:SEED")
_MAX_SEED = 2**24 - 1


class UnknownExecutor(ValueError):
    """A name that is not in NAMES."""


class ExecutorUnavailable(RuntimeError):
    """An executor that cannot run on this machine."""


# Bound now: inside `host_metal` MLX's own name answers as on a Mac.
_metal_available = mx.metal.is_available
_host_preferred = False

_current: ContextVar[str | None] = ContextVar("mlx_assay_executor", default=None)
_schedule: ContextVar[str] = ContextVar("mlx_assay_schedule", default=SCHEDULES[0])
_guarded: ContextVar[bool] = ContextVar("mlx_assay_guarded", default=False)
_poison: ContextVar[int | None] = ContextVar("mlx_assay_poison", default=None)


def _check(name: str) -> None:
    if name not in NAMES:
        raise UnknownExecutor(f"unknown executor {name!r}: expected one of {', '.join(NAMES)}")


def available(name: str) -> str | None:
    """None if the executor can run here, else the reason and the mend. UnknownExecutor: no such executor."""
    _check(name)
    if name == "metal":
        if _metal_available():
            return None
        return "MLX has no Metal back end here: use a Mac with Apple silicon, or the executor 'host'"
    if name == "cuda":
        return device.missing()
    try:
        toolchain()
        crew.threads()
    except (ToolchainError, crew.ThreadsError) as error:
        return str(error)
    return None


def current() -> str:
    """The executor of kernels called now: the one chosen by `use`, else the one of MLX's GPU, else host."""
    return _current.get() or ("host" if _host_preferred else _native())


def _native() -> str:
    return "metal" if _metal_available() else "cuda" if device.present() else "host"


def prefer_host(preferred: bool) -> None:
    """Whether kernels run on host where nobody has chosen, in every thread, even where there is a GPU."""
    global _host_preferred
    _host_preferred = preferred


@contextlib.contextmanager
def use(name: str) -> Iterator[None]:
    """Kernels called inside run on this executor.

    UnknownExecutor: no such executor. ExecutorUnavailable: it cannot run here; there is no fall-back.
    """
    if (reason := available(name)) is not None:
        raise ExecutorUnavailable(f"executor {name!r} cannot run here: {reason}")
    token = _current.set(name)
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def poison(pattern: int | None) -> Iterator[None]:
    """Kernels called inside find this 32-bit pattern in their outputs, unless they have an `init_value`.

    On host and cuda every byte of every output, and of the threadgroup memory of every threadgroup, holds it. On metal
    the pattern is read as an f32 and given as `init_value`, so an output holds it exactly in f32 and converted in other
    dtypes, and threadgroup memory holds what it held. None: the executor's own choice (host: a NaN pattern; metal: as
    MLX allocates; cuda: as MLX allocates, and a NaN pattern in threadgroup memory).
    """
    if pattern is not None and not 0 <= pattern < 2**32:
        raise ValueError(f"a poison is a 32-bit pattern, 0 to 0xffffffff, and this is {pattern:#x}")
    token = _poison.set(pattern)
    try:
        yield
    finally:
        _poison.reset(token)


def code(name: str) -> int:
    """A schedule as the scheduler numbers it. ValueError: no such schedule."""
    kind, _, seed = name.partition(":")
    if name in SCHEDULES[:3]:
        return SCHEDULES.index(name)
    if kind != "pct" or not seed.isdecimal() or int(seed) > _MAX_SEED:
        raise ValueError(
            f"unknown schedule {name!r}: expected one of {', '.join(SCHEDULES)} with a seed of at most {_MAX_SEED}"
        )
    return 3 | int(seed) << 8


@contextlib.contextmanager
def schedule(name: str) -> Iterator[None]:
    """The host executor runs the threads of a threadgroup in this order.

    "in-order" (the default) and "reverse" run a simdgroup, and a threadgroup, after the other; "round-robin" goes to
    the next simdgroup at every operation of a simdgroup and every barrier; "pct:SEED" gives simdgroups priorities that
    change at random, as in probabilistic concurrency testing. A kernel without races computes the same bits in all.
    ValueError: no such schedule.
    """
    code(name)
    token = _schedule.set(name)
    try:
        yield
    finally:
        _schedule.reset(token)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Kernels called inside run on copies of their arrays, each between pages that nobody may touch.

    One that goes beyond an array, writes into an input or overflows its stack raises StrayAccess (on Linux; elsewhere
    a touch of such a page ends the process). Kernels of MLX's own libraries are not guarded.
    """
    token = _guarded.set(True)
    try:
        yield
    finally:
        _guarded.reset(token)


def is_guarded() -> bool:
    """Whether `guarded` holds."""
    return _guarded.get()


def current_schedule() -> str:
    """The schedule set by `schedule`."""
    return _schedule.get()


def current_poison() -> int | None:
    """The pattern set by `poison`, or None."""
    return _poison.get()
