"""The runtime behind Apple's kernels: the scheduler of the host executor, and `air.*` as a shared object."""

import ctypes
import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path

from mlx_assay.impl.executors import objects
from mlx_assay.impl.executors.apple import layout
from mlx_assay.impl.executors.cache import kept
from mlx_assay.impl.executors.toolchain import DENORMAL_FLAGS, KERNEL_FLAGS, RUNTIME, toolchain

SOURCE = Path(__file__).parent / "air.clcpp"


def _run(command: tuple[str, ...]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the runtime of Apple's kernels does not compile: {done.stderr.strip()}")


@cache
def digest() -> str:
    """What the runtime is made of: the texts, the flags, the compiler."""
    out = hashlib.sha256()
    for path in (SOURCE, *sorted(p for p in RUNTIME.iterdir() if p.is_file())):
        out.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for part in (toolchain().version, *toolchain().target, *KERNEL_FLAGS):
        out.update(part.encode() + b"\0")
    return out.hexdigest()


def _make(output: Path) -> None:
    compiler, compiled = toolchain(), output.with_name("air.o")
    flags = (*compiler.target, *KERNEL_FLAGS, *DENORMAL_FLAGS["flushed"], "-I", str(RUNTIME))
    _run((*compiler.clang, *flags, "-c", str(SOURCE), "-o", str(compiled)))
    _run((*compiler.link, str(compiled), "-o", str(output)))


@cache
def library() -> ctypes.CDLL:
    """The loaded runtime, compiled at its first use on a machine. RuntimeError: the compiler's message."""
    objects.runtime()
    return kept(digest(), _make, lambda path: ctypes.CDLL(str(path), mode=os.RTLD_NOW))


@cache
def offsets() -> layout.Layout:
    """Where the runtime's structures have their fields."""
    return layout.read(library())


@cache
def address(symbol: str) -> int | None:
    """The address of a function of the runtime, of the scheduler or of the C library."""
    scheduler = objects.runtime()
    for holder in (library(), scheduler, ctypes.CDLL(None)):
        try:
            return ctypes.cast(getattr(holder, symbol), ctypes.c_void_p).value
        except AttributeError:
            continue
    return None
