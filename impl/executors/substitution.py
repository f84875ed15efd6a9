"""A Mac's answers on any machine: third-party code takes its Metal path, and the host executor runs its kernels.

What is replaced lies in `mlx.core` for the whole process, since that is where third-party code looks. Nested uses and
threads are counted: the last one out puts everything back.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors import choice
from mlx_assay.impl.executors.kernel import metal_kernel
from mlx_assay.impl.executors.trace import tracing

_KERNEL_NAME = re.compile(r"(^|_)kernels?(_|$)", re.I)
_ANSWER_NAME = re.compile(r"(^|_)(metal|gpu)(_|$)", re.I)
_DEVICE_FUNCTIONS = ("new_stream", "new_thread_local_stream", "default_stream", "stream", "synchronize")
_WORKING_SET = 0.75
"""The share of a Mac's memory that its GPU is recommended to use."""


class RememberedNoMetal(UserWarning):
    """Modules that asked for Metal before `host_metal()` and keep the answer."""


def _compile_enabled() -> bool:
    traced: list[bool] = []

    def probe(x: mx.array) -> mx.array:
        traced.append(tracing(x))
        return x

    mx.compile(probe)(mx.array(0.0))
    return traced[0]


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, where the GPU that it is given is the CPU."""

    def on_cpu(*arguments: Any, **named: Any) -> Any:
        return function(*map(_cpu_for_gpu, arguments), **{k: _cpu_for_gpu(v) for k, v in named.items()})

    return on_cpu


def _cpu_for_gpu(value: Any) -> Any:
    return mx.cpu if isinstance(value, (mx.Device, mx.DeviceType)) and value == mx.gpu else value


class _Substitution:
    """What stands in `mlx.core` while somebody is inside."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._inside = 0
        self._originals: list[tuple[Any, str, Any]] = []
        self._device: Any = None
        self._compile = True

    def enter(self) -> bool:
        """True for the first one in."""
        with self._lock:
            if not self._inside:
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
        self._compile = _compile_enabled()
        replacements = self._replacements()
        self._originals = [(place, name, getattr(place, name)) for place, name, _ in replacements]
        mx.disable_compile()
        choice.prefer_host(True)
        for place, name, value in replacements:
            setattr(place, name, value)

    def _restore(self) -> None:
        for place, name, value in self._originals:
            setattr(place, name, value)
        self._originals = []
        choice.prefer_host(False)
        if self._compile:
            mx.enable_compile()

    def _replacements(self) -> list[tuple[Any, str, Any]]:
        available, info, count = mx.is_available, mx.device_info, mx.device_count
        return [
            (mx.fast, "metal_kernel", metal_kernel),
            (mx.metal, "is_available", lambda: True),
            (mx, "is_available", lambda device: bool(device == mx.gpu or available(device))),
            (mx, "device_count", lambda type_: 1 if type_ == mx.gpu else count(type_)),
            (mx, "device_info", lambda *device: _device_info(info(*map(_cpu_for_gpu, device)))),
            (mx, "default_device", lambda: self._device),
            (mx, "set_default_device", self._set_default_device),
            (mx, "disable_compile", lambda: self._set_compile(False)),
            (mx, "enable_compile", lambda: self._set_compile(True)),
            *((mx, name, _on_cpu(getattr(mx, name))) for name in _DEVICE_FUNCTIONS if hasattr(mx, name)),
        ]

    def _set_default_device(self, device: Any) -> None:
        self._device = mx.Device(device, 0) if isinstance(device, mx.DeviceType) else device

    def _set_compile(self, enabled: bool) -> None:
        """Compilation stays off inside: no kernel can be called back from a trace. The wish is met at the end."""
        self._compile = enabled


def _device_info(info: dict[str, Any]) -> dict[str, Any]:
    """What a Mac tells of its memory, for code that sizes its caches by it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    told = {
        "max_recommended_working_set_size": int(memory * _WORKING_SET),
        "max_buffer_length": memory,
        "memory_size": memory,
    }
    return told | info


_substitution = _Substitution()


def _originals() -> dict[int, str]:
    return {
        id(mx.fast.metal_kernel): "mx.fast.metal_kernel",
        id(mx.metal.is_available): "mx.metal.is_available",
        id(mx.default_device): "mx.default_device",
    }


def _memory(name: str, value: object, originals: dict[int, str]) -> str | None:
    """What a module's global keeps of a machine without Metal, or None."""
    if id(value) in originals:
        return f"{name} is {originals[id(value)]} itself"
    if value is None and _KERNEL_NAME.search(name):
        return f"{name} is None"
    if value is False and _ANSWER_NAME.search(name):
        return f"{name} is False"
    # MLX's kernels are the only functions of nanobind without a name.
    if _of_nanobind(value) and not getattr(value, "__name__", None):
        return f"{name} is a kernel of MLX"
    return None


def _uses_mlx(module: ModuleType) -> bool:
    return any(value is mx or _of_nanobind(value) for value in list(vars(module).values()))


def _of_nanobind(value: object) -> bool:
    # By its type: asking a foreign value for an attribute may run foreign code.
    return type(value).__name__ == "nb_func"


def remembering() -> dict[str, list[str]]:
    """Modules imported so far that keep what MLX said of Metal, and how: by name, told by their globals.

    Sound for a global that is MLX's own function or kernel; by their names for a kernel that is None and an answer that
    is False. What a closure, a class or a cache keeps is not seen.
    """
    originals, found = _originals(), {}
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or name.partition(".")[0] in {"mlx", "mlx_assay"}:
            continue
        if not _uses_mlx(module):
            continue
        kept = [told for key, value in list(vars(module).items()) if (told := _memory(key, value, originals))]
        if kept:
            found[name] = kept
    return found


def _warn(found: dict[str, list[str]]) -> None:
    told = "; ".join(f"{name} ({', '.join(kept)})" for name, kept in found.items())
    warnings.warn(
        f"imported before host_metal() and remembering a machine without Metal: {told}. Import them inside, or call "
        "importlib.reload(module) inside.",
        RememberedNoMetal,
        # _warn, host_metal, contextlib's __enter__, the `with`
        stacklevel=4,
    )


@contextlib.contextmanager
def host_metal() -> Iterator[None]:
    """Code inside takes its Metal path, and its kernels run on the executor `host`.

    `mx.fast.metal_kernel` makes kernels of this project, `mx.metal.is_available`, `mx.default_device`,
    `mx.is_available` and `mx.device_count` answer as on a Mac, streams of the GPU are the CPU's, and `mx.compile` is
    off, since no kernel on a CPU can be called from a compiled graph. All of it holds for the process, in every thread,
    until the last one inside leaves; then everything is as before, after exceptions too. Kernels made inside keep
    running afterwards.

    Warns of modules that asked for Metal earlier and keep the answer (RememberedNoMetal).
    """
    found = remembering() if not _substitution._inside else {}
    if _substitution.enter() and found:
        try:
            _warn(found)
        except RememberedNoMetal:
            _substitution.leave()
            raise
    try:
        yield
    finally:
        _substitution.leave()
