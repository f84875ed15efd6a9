"""The device of the measuring process: its name and memory, its caches, how all of its work is waited for."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import os
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx

from mlx_assay.conformance.bench.clock import now
from mlx_assay.impl import executors

_core: Any = mx
_synchronize, _eval, _async_eval = _core.synchronize, _core.eval, _core.async_eval
_L2_BYTES = 38
"""CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE of the CUDA driver's API."""
_MEMORIES = ("total_memory", "memory_size", "total_global_memory", "memory")
"""What MLX's back ends call the device's memory."""
COPIES = 8
ROUNDS = 7
VERSIONS = (
    "mlx",
    "mlx-cuda-13",
    "mlx-cuda-12",
    "mlx-metal",
    "mlx-cpu",
    "mlx-lm",
    "torch",
    "triton",
    "xgrammar",
    "numpy",
)


def described(executor: str) -> dict[str, str]:
    """Name, memory, driver, cache and versions, as far as they can be known."""
    told = {"executor": executor, "system": platform.platform(), **_device(executor)}
    for name in VERSIONS:
        try:
            told[f"version of {name}"] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {key: value for key, value in told.items() if value}


def _device(executor: str) -> dict[str, str]:
    if executor == "host":
        described = executors.describe("host")
        return {
            "name": described["cpu"],
            "memory_bytes": str(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
            "cache_bytes": str(_host_cache() or ""),
            "compiler": described["compiler_version"],
        }
    info = {key: str(value) for key, value in _core.device_info(_core.default_device()).items()}
    told = {
        "name": info.get("device_name", info.get("name", "")),
        "architecture": info.get("architecture", ""),
        "memory_bytes": next((info[name] for name in _MEMORIES if name in info), ""),
    }
    if executor == "cuda":
        told |= {"cache_bytes": str(_l2_bytes() or ""), "driver": _driver()}
    return told


def synchronizer(executor: str, streams: list[Any]) -> Callable[[], None]:
    """Waits for everything: MLX's default streams, those that were made since, and on cuda the whole context."""
    context = _context() if executor == "cuda" else None

    def synchronize() -> None:
        _synchronize()
        for stream in streams:
            try:
                _synchronize(stream)
            except (RuntimeError, TypeError, ValueError):
                continue  # of a thread that is gone, or no stream at all
        if context is not None:
            context()

    return synchronize


def copies(size: int, executor: str) -> dict[str, list[int]]:
    """Nanoseconds of each copy of `size` bytes between two places, by the way it was made: median needs a few."""
    source = _core.arange(size // 4, dtype=_core.uint32)
    _eval(source)
    spans = {"MLX, one kernel that reads and writes": [_kernel_copy(source) for _ in range(ROUNDS)]}
    if executor == "cuda":
        with contextlib.suppress(ImportError):
            spans["torch's copy_"] = _torch_copies(size)
    return spans


def _kernel_copy(source: Any) -> int:
    _synchronize()
    made = [_core.bitwise_invert(source) for _ in range(COPIES)]
    began = now()
    _eval(made)
    _synchronize()
    return (now() - began) // COPIES


def _torch_copies(size: int) -> list[int]:
    import torch

    one, other = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    spans = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        began = now()
        for _ in range(COPIES):
            other.copy_(one)
        torch.cuda.synchronize()
        spans.append((now() - began) // COPIES)
    return spans


def _context() -> Callable[[], Any] | None:
    try:
        synchronize: Callable[[], Any] = ctypes.CDLL("libcuda.so.1").cuCtxSynchronize
    except OSError:
        return None
    return synchronize


def _l2_bytes() -> int:
    try:
        driver, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        failed = driver.cuDeviceGetAttribute(ctypes.byref(value), _L2_BYTES, 0)
    except OSError:
        return 0
    return 0 if failed else value.value


def _driver() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    found = re.search(r"\b\d+\.\d+(\.\d+)?\b", text)
    return found[0] if found else ""


def _host_cache() -> int:
    """Bytes of the processor's last cache; 0 where the system does not tell."""
    try:
        return max(0, os.sysconf("SC_LEVEL3_CACHE_SIZE"))
    except (ValueError, OSError):
        return 0
