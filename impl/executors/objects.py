"""Compiled kernels, kept in the cache under a key of everything that decides what a kernel computes."""

import ctypes
import functools
import hashlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlx_assay.impl.executors import convergence, division, fusion, inclusion, narrowing
from mlx_assay.impl.executors.cache import CacheError, Rejected, kept
from mlx_assay.impl.executors.convergence import keyed
from mlx_assay.impl.executors.division import untrapped
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.narrowing import saturated
from mlx_assay.impl.executors.toolchain import (
    DENORMAL_FLAGS,
    KERNEL_FLAGS,
    MAX_FRAME_BYTES,
    RUNTIME,
    RUNTIME_FLAGS,
    Toolchain,
    baseline,
    target,
    toolchain,
)
from mlx_assay.impl.executors.translation import prelude

UNCONTRACTED = "-DASSAY_CONTRACT=0"
_CONTRACT_OFF = re.compile(r"\bfp\s+contract\s*\(\s*off\s*\)")

# A comparison of vectors is -1 or 0 in OpenCL and true or false in Metal.
_COMPARISON = re.compile(r"\bsext (?=<\d+ x i1>)")

_FRAMES = f"-Wframe-larger-than={MAX_FRAME_BYTES}"
_FRAME = re.compile(r"stack frame size \((\d+)\) exceeds limit")

_ALIGNED_ACCESS = re.compile(r"^(?!@)(?!.*(?: alloca |atomic|cmpxchg)).*\balign (?:2|4|8|16|32|64)\b.*$", re.M)


class CompilationError(Rejected):
    """The compiler rejected a kernel."""


RUNTIME_SOURCES = (
    *("grid.cpp", "threadgroup.cpp", "schedule.cpp", "fiber.cpp", "switch.cpp", "collective.cpp", "barrier.cpp"),
    *("checker.cpp", "shadow.cpp", "order.cpp", "findings.cpp", "guard.cpp", "half.cpp"),
    *("counter.cpp", "traffic.cpp", "counted.cpp"),
)


@dataclass(frozen=True)
class Library:
    """A loaded kernel: `thread` is the address of the function that runs one thread. Launches may run at once."""

    thread: int
    threadgroup_bytes: int
    launch: "ctypes._NamedFuncPointer"


@cache
def _headers_digest() -> str:
    rewriting = (convergence, division, fusion, narrowing)
    own = [Path(__file__), *(Path(str(module.__file__)) for module in rewriting)]
    return inclusion.digest([*own, *inclusion.headers()])


def digest_key(*parts: str) -> str:
    """A key of `parts`, the compiler, the processor and the headers that kernels include."""
    return _key(*parts, _headers_digest(), *KERNEL_FLAGS)


def _key(*parts: str) -> str:
    compiler = toolchain()
    digest = hashlib.sha256()
    for part in (*parts, compiler.version, target(), baseline()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def run(command: tuple[str, ...]) -> str:
    """Runs a compiler and gives its warnings. CompilationError: its messages."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No space left on device" in done.stderr:
        raise CacheError("no room to compile a kernel in the temporary folder: set TMPDIR to one with room in it")
    if done.returncode:
        error = CompilationError(done.stderr.strip() or f"{command[0]} exited with {done.returncode}")
        # Any other code means that the compiler itself was killed.
        error.lasting = done.returncode == 1
        raise error
    return done.stderr


def unaligned(ir: str) -> str:
    """LLVM IR that assumes no alignment of memory it did not make: MLX's buffers on a CPU start 8 bytes past 16."""
    return _ALIGNED_ACCESS.sub(lambda m: re.sub(r"\balign \d+", "align 1", m[0]), ir)


def flags(fidelity: Fidelity, defines: tuple[str, ...]) -> tuple[str, ...]:
    """The beginning of the command line that compiles a translated kernel."""
    compiler = toolchain()
    contracted = () if fidelity.contraction == "on" else (UNCONTRACTED,)
    decided = (*KERNEL_FLAGS, *DENORMAL_FLAGS[fidelity.f32_denormals], *contracted, *defines)
    return (*compiler.clang, *compiler.target, *decided, "-I", str(RUNTIME))


def pragma(source: str) -> tuple[str, ...]:
    """What a pragma in a kernel's text asks of bfloat, a class that no pragma of clang reaches: by the whole text."""
    return (UNCONTRACTED,) if _CONTRACT_OFF.search(source) else ()


def _write_prelude(path: Path) -> None:
    path.write_text(prelude())


def _precompiled(flags: tuple[str, ...]) -> Path:
    """The prelude, parsed once: as two entries of the cache, since clang wants to find the file of its text again."""
    text = kept(digest_key("prelude", prelude()), _write_prelude, Path)

    def make(output: Path) -> None:
        emit = ("-Xclang", "-emit-pch", "-Xclang", "-fno-pch-timestamp", "-S", str(text), "-o", str(output))
        run((*flags, *emit))

    return kept(digest_key("precompiled", str(text), *flags), make, Path)


def front_end(source: str, output: Path, flags: tuple[str, ...]) -> str:
    """The LLVM IR of a translated kernel, before any optimisation. CompilationError: the messages."""
    path = output.with_suffix(".own.clcpp")
    path.write_text(source.removeprefix(prelude()))
    emit = (*flags, "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", str(path), "-o", str(output))
    known = ("-Xclang", "-include-pch", "-Xclang", str(_precompiled(flags))) if source.startswith(prelude()) else ()
    try:
        run((*emit, *known))
    except CompilationError as error:
        # Another process may have removed one of the two meanwhile.
        if "precompiled" not in str(error) and "PCH" not in str(error):
            raise
        path.write_text(source)
        run(emit)
    return saturated(_COMPARISON.sub("zext ", output.read_text()))


def inlined(ir: str, path: Path, *flags: str) -> str:
    """LLVM IR in which the functions of a kernel, which are to be inlined always, are one."""
    compiler, output = toolchain(), path.with_suffix(".inlined.ll")
    path.write_text(re.sub(r"^(attributes #\d+ = \{)", r"\1 alwaysinline", ir.replace("noinline ", ""), flags=re.M))
    command = (*compiler.clang, *compiler.target, "-O0", "-fPIC", "-Wno-everything", *flags)
    run((*command, "-S", "-emit-llvm", str(path), "-o", str(output)))
    return output.read_text()


def _keyed(ir: str, path: Path) -> str:
    """LLVM IR that tells each call of a collective from the others, if there are any."""
    return keyed(inlined(ir, path)) if "@assay_simdgroup(" in ir else ir


def compile_object(source: Path, output: Path) -> None:
    """The object of a kernel's IR. CompilationError: a frame that no thread's stack can hold."""
    compiler = toolchain()
    flags = (*compiler.clang, *compiler.target, "-O2", "-fPIC", "-Wno-everything", _FRAMES)
    if (found := _FRAME.search(run((*flags, "-c", str(source), "-o", str(output))))) is not None:
        raise CompilationError(
            f"{found[1]} bytes of private memory in one function, and here a thread has at most {MAX_FRAME_BYTES}: "
            "make its arrays smaller"
        )


def _compile_kernel(source: Path, output: Path, fidelity: Fidelity, defines: tuple[str, ...] = ()) -> None:
    ir = source.with_suffix(".ll")
    given = source.read_text()
    decided = flags(fidelity, (*pragma(given), *defines))
    text = untrapped(unaligned(_keyed(front_end(given, ir, decided), ir)))
    if fidelity.contraction == "off":
        text = fusion.uncontracted(text)
    ir.write_text(text if "fp16" in baseline() else fusion.exact_half(text))
    compile_object(ir, output)


def _compile_runtime(compiler: Toolchain, source: Path, output: Path) -> None:
    run((*compiler.clang, *compiler.target, *RUNTIME_FLAGS, "-c", str(source), "-o", str(output)))


def link(objects: list[Path], output: Path) -> None:
    """Makes a library of objects. CompilationError: the linker's messages."""
    run((*toolchain().link, *map(str, objects), "-o", str(output)))


def _make_runtime(output: Path) -> None:
    made = []
    for source in RUNTIME_SOURCES:
        made.append(output.with_name(f"{source}.o"))
        make = functools.partial(_compile_runtime, toolchain(), RUNTIME / source)
        made[-1].write_bytes(kept(_runtime_key("object", source), make, Path.read_bytes))
    link(made, output)


def _runtime_key(kind: str, *sources: str) -> str:
    return _key(kind, *(inclusion.digest(inclusion.included(RUNTIME / source)) for source in sources), *RUNTIME_FLAGS)


def _opened_runtime(path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


@cache
def runtime() -> ctypes.CDLL:
    """The scheduler, loaded so that kernels find it. Built once for a compiler and a version of its text."""
    # Kernels call the C library's functions by name and link with nothing.
    ctypes.CDLL("libSystem.B.dylib" if sys.platform == "darwin" else "libm.so.6", mode=ctypes.RTLD_GLOBAL)
    library = kept(_runtime_key("runtime", *RUNTIME_SOURCES), _make_runtime, _opened_runtime)
    os.register_at_fork(after_in_child=library.assay_forked)
    return library


_UNDEFINED = re.compile(r"undefined symbol: (\S+)|symbol not found[^']*'_?(\S+?)'")


def opened(path: Path) -> ctypes.CDLL:
    """A kernel's library. CompilationError: it uses what nothing defines. OSError: it is no library."""
    try:
        return ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        if (found := _UNDEFINED.search(str(error))) is None:
            raise
        undefined = found[1] or found[2]
        raise CompilationError(f"undefined symbol {undefined}: the text uses it, and nothing defines it") from None


def _load(path: Path) -> Library:
    scheduler = runtime()
    library = opened(path)
    thread = ctypes.cast(library.assay_thread, ctypes.c_void_p).value
    library.assay_threadgroup_bytes.restype = ctypes.c_uint32
    assert thread is not None
    return Library(thread, library.assay_threadgroup_bytes(), scheduler.assay_launch)


def build(source: str, fidelity: Fidelity, defines: tuple[str, ...] = ()) -> Library:
    """The library of a translated kernel, from the cache or made now. `defines`: flags `-DNAME=VALUE`.

    CompilationError: the compiler's messages. CacheError: there is nowhere to keep it.
    """

    def make(output: Path) -> None:
        text, compiled = output.with_name("kernel.clcpp"), output.with_name("kernel.o")
        text.write_text(source)
        _compile_kernel(text, compiled, fidelity, defines)
        link([compiled], output)

    return kept(digest_key("kernel", source, *fidelity.compiled, *defines), make, _load)
