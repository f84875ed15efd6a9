"""A Mac's answers on any machine: third-party code takes its Metal path, and `host` or `cuda` runs its kernels.

What is replaced lies in `mlx.core` for the whole process, since that is where third-party code looks. Nested uses and
threads are counted: the last one out puts everything back.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors import choice
from mlx_assay.impl.executors.kernel import metal_kernel
from mlx_assay.impl.executors.memories import RememberedNoMetal, remembering
from mlx_assay.impl.executors.trace import tracing

_DEVICE_FUNCTIONS = ("new_stream", "new_thread_local_stream", "default_stream", "stream", "synchronize")
_DEVICE_WORDS = ("stream", "device")
_DEVICES = (mx.Device, mx.DeviceType)
_OPERATIONS = (mx, mx.fast, mx.random, mx.linalg, mx.fft, mx.array)
_STREAM = "stream:"
_WORKING_SET = 0.75
"""The share of a Mac's memory that its GPU is recommended to use."""


def _compile_enabled() -> bool:
    traced: list[bool] = []

    def probe(x: mx.array) -> mx.array:
        traced.append(tracing(x))
        return x

    mx.compile(probe)(mx.array(0.0))
    return traced[0]


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, where the GPU that it is given, last or by name, is the CPU."""

    @wraps(function)
    def on_cpu(*arguments: Any, **named: Any) -> Any:
        if arguments and type(arguments[-1]) in _DEVICES:
            arguments = (*arguments[:-1], _cpu_for_gpu(arguments[-1]))
        if named:
            named |= {name: _cpu_for_gpu(named[name]) for name in _DEVICE_WORDS if name in named}
        return function(*arguments, **named)

    return on_cpu


@cache
def _streaming() -> list[tuple[Any, str, Any]]:
    """Operations and methods of arrays that take a stream, and what they are on the CPU."""
    return [
        (place, name, _on_cpu(value))
        for place in _OPERATIONS
        for name, value in vars(place).items()
        if not name.startswith("__") and _STREAM in str(getattr(value, "__nb_signature__", ""))
    ]


def _cpu_for_gpu(value: Any) -> Any:
    return mx.cpu if isinstance(value, _DEVICES) and value == mx.gpu else value


class _Substitution:
    """What stands in `mlx.core` while somebody is inside."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._inside = 0
        self._executor = "host"
        self._originals: list[tuple[Any, str, Any]] = []
        self._device: Any = None
        self._compile = True

    def enter(self, executor: str) -> bool:
        """True for the first one in. RuntimeError: somebody is inside with another executor."""
        with self._lock:
            if self._inside and executor != self._executor:
                raise RuntimeError(
                    f"{executor}_metal() was entered inside {self.name}(), which holds for the whole process: leave "
                    "that first"
                )
            if not self._inside:
                self._executor = executor
                self._install()
            self._inside += 1
            return self._inside == 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore()

    def _install(self) -> None:
        self._device = mx.Device(mx.gpu, 0)
        replacements = self._kernels()
        if self._executor == "host":
            self._compile = _compile_enabled()
            replacements += self._devices()
        self._originals = [(place, name, getattr(place, name)) for place, name, _ in replacements]
        if self._executor == "host":
            mx.disable_compile()
            choice.prefer_host(True)
        for place, name, value in replacements:
            setattr(place, name, value)

    def _restore(self) -> None:
        for place, name, value in self._originals:
            setattr(place, name, value)
        self._originals = []
        if self._executor == "host":
            choice.prefer_host(False)
            if self._compile:
                mx.enable_compile()

    def _kernels(self) -> list[tuple[Any, str, Any]]:
        """What a Mac has and an NVIDIA GPU has not."""
        info = mx.device_info
        to_device = _cpu_for_gpu if self._executor == "host" else lambda device: device
        return [
            (mx.fast, "metal_kernel", metal_kernel),
            (mx.metal, "is_available", lambda: True),
            (mx, "device_info", lambda *device: _device_info(info(*map(to_device, device)))),
        ]

    def _devices(self) -> list[tuple[Any, str, Any]]:
        """What a machine without a GPU has not either."""
        available, count = mx.is_available, mx.device_count
        return [
            *_streaming(),
            (mx, "is_available", lambda device: bool(device == mx.gpu or available(device))),
            (mx, "device_count", lambda type_: 1 if type_ == mx.gpu else count(type_)),
            (mx, "default_device", lambda: self._device),
            (mx, "set_default_device", self._set_default_device),
            (mx, "disable_compile", lambda: self._set_compile(False)),
            (mx, "enable_compile", lambda: self._set_compile(True)),
            *((mx, name, _on_cpu(getattr(mx, name))) for name in _DEVICE_FUNCTIONS if hasattr(mx, name)),
        ]

    @property
    def name(self) -> str:
        """What a user calls it."""
        return f"{self._executor}_metal"

    def _set_default_device(self, device: Any) -> None:
        self._device = mx.Device(device, 0) if isinstance(device, mx.DeviceType) else device

    def _set_compile(self, enabled: bool) -> None:
        """Compilation stays off inside: no kernel can be called back from a trace. The wish is met at the end."""
        self._compile = enabled


def _device_info(info: dict[str, Any]) -> dict[str, Any]:
    """What a Mac tells of its memory, for code that sizes its caches by it."""
    memory = int(info.get("total_memory", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    told = {
        "max_recommended_working_set_size": int(memory * _WORKING_SET),
        "max_buffer_length": memory,
        "memory_size": memory,
    }
    return told | info


_substitution = _Substitution()


def _warn(found: dict[str, list[str]]) -> None:
    told = "; ".join(f"{name} ({', '.join(kept)})" for name, kept in found.items())
    warnings.warn(
        f"imported before {_substitution.name}() and remembering a machine without Metal: {told}. Import them inside "
        "(in pytest: in the test, or in a fixture that asks for it), or call importlib.reload(module) inside.",
        RememberedNoMetal,
        # _warn, __enter__, the `with`
        stacklevel=3,
    )


class _Metal(contextlib.ContextDecorator):
    """Holds an executor's name alone, so one object may be entered again and again, and by several threads."""

    def __init__(self, executor: str) -> None:
        self._executor = executor

    def __enter__(self) -> None:
        if self._executor != "host" and (reason := choice.available(self._executor)) is not None:
            raise choice.ExecutorUnavailable(f"executor {self._executor!r} cannot run here: {reason}")
        found = remembering() if not _substitution._inside else {}
        if _substitution.enter(self._executor) and found:
            try:
                _warn(found)
            except RememberedNoMetal:
                _substitution.leave()
                raise

    def __exit__(self, *_: object) -> None:
        _substitution.leave()


def host_metal() -> contextlib.AbstractContextManager[None]:
    """Code inside takes its Metal path, and its kernels run on the executor `host`.

    `mx.fast.metal_kernel` makes kernels of this project, `mx.metal.is_available`, `mx.default_device`,
    `mx.is_available` and `mx.device_count` answer as on a Mac, the GPU as a stream or device is the CPU, and
    `mx.compile` is off, since no kernel on a CPU can be called from a compiled graph. All of it holds for the process,
    in every thread, until the last one inside leaves; then everything is as before, after exceptions too. Kernels made
    inside keep running afterwards. What it gives may be entered again, and decorates functions.

    Warns of modules that asked for Metal earlier and keep the answer (RememberedNoMetal).
    """
    return _Metal("host")


def cuda_metal() -> contextlib.AbstractContextManager[None]:
    """Code inside takes its Metal path, and its kernels run on the executor `cuda`, on the NVIDIA GPU that MLX uses.

    As `host_metal`, but that devices and streams are the GPU's own and `mx.compile` stays as it is: there a kernel is
    part of a graph. ExecutorUnavailable: there is no such GPU. RuntimeError: inside `host_metal`.
    """
    return _Metal("cuda")
