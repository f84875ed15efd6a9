"""Counted builds of translated kernels: compiled, inlined, optimised, instrumented, compiled again; cached."""

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from mlx_assay.impl.executors import convergence, fusion, objects
from mlx_assay.impl.executors.cache import kept
from mlx_assay.impl.executors.checker import instructions, places, pointers
from mlx_assay.impl.executors.checker import instrumentation as checked
from mlx_assay.impl.executors.checker.compilation import constant
from mlx_assay.impl.executors.counting import arithmetic, instrumentation, kinds, registers
from mlx_assay.impl.executors.counting.instrumentation import Instrumented, Meaning
from mlx_assay.impl.executors.division import untrapped
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.toolchain import baseline, toolchain

_MODULES = (arithmetic, checked, convergence, instructions, instrumentation, kinds, places, pointers, registers)

# What is optimised for no processor's own sake: nothing is made a vector that is none, no loop is unrolled but as a
# whole, nothing becomes a call of the C library, and blocks are not doubled, which compilers for GPUs do not do either.
OPTIMISED = (
    *("-O2", "-fno-vectorize", "-fno-slp-vectorize", "-fno-builtin", "-Wno-everything"),
    *("-mllvm", "-unroll-runtime=false", "-mllvm", "-unroll-allow-partial=false"),
    *("-mllvm", "-disable-loop-idiom-all", "-mllvm", "-jump-threading-threshold=0"),
    *("-mllvm", "-disable-vector-combine"),
)


@dataclass(frozen=True)
class CountedLibrary:
    """A loaded kernel that counts."""

    thread: int
    threadgroup_bytes: int
    objects: tuple[tuple[int, int], ...]  # address and bytes of the program's constants
    meaning: Meaning


def optimised(source: Path, fidelity: Fidelity, defines: tuple[str, ...]) -> str:
    """The optimised IR of a translated kernel. CompilationError: the compiler's messages."""
    compiler, ir = toolchain(), source.with_suffix(".ll")
    given = source.read_text()
    flags = (*objects.flags(fidelity, (*objects.pragma(given), *defines)), "-DASSAY_COUNTED", "-gline-tables-only")
    text = convergence.keyed(objects.inlined(objects.front_end(given, ir, flags), ir))
    text = untrapped(objects.unaligned(text))
    if fidelity.contraction == "off":
        text = fusion.uncontracted(text)
    ir.write_text(text if "fp16" in baseline() else fusion.exact_half(text))
    output = source.with_suffix(".optimised.ll")
    objects.run(
        (*compiler.clang, *compiler.target, *OPTIMISED, "-fPIC", "-S", "-emit-llvm", str(ir), "-o", str(output))
    )
    return output.read_text()


def instrumented(source: Path, fidelity: Fidelity, defines: tuple[str, ...]) -> Instrumented:
    """The counted IR of a translated kernel. CompilationError: the compiler's messages."""
    return instrumentation.instrument(optimised(source, fidelity, defines))


def _load(path: Path) -> CountedLibrary:
    objects.runtime()
    library = objects.opened(path)
    thread = ctypes.cast(library.assay_thread, ctypes.c_void_p).value
    library.assay_threadgroup_bytes.restype = ctypes.c_uint32
    said = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "assay_meaning")))
    meaning = msgspec.json.decode(said, type=Meaning)
    table = (ctypes.c_uint64 * (2 * meaning.objects)).in_dll(library, "assay_objects") if meaning.objects else ()
    constants = tuple(zip(table[::2], table[1::2], strict=True))
    assert thread is not None
    return CountedLibrary(thread, library.assay_threadgroup_bytes(), constants, meaning)


@cache
def _own_text() -> str:
    return "".join(Path(m.__file__ or "").read_text() for m in _MODULES) + Path(__file__).read_text()


def build(source: str, fidelity: Fidelity, defines: tuple[str, ...] = ()) -> CountedLibrary:
    """The counted library of a translated kernel, from the cache or made now.

    CompilationError: the compiler's messages. CacheError: there is nowhere to keep it.
    """

    def make(output: Path) -> None:
        text, compiled = output.with_name("kernel.clcpp"), output.with_name("kernel.o")
        text.write_text(source)
        found = instrumented(text, fidelity, defines)
        counted = output.with_name("kernel.counted.ll")
        counted.write_text(found.ir + constant("assay_meaning", msgspec.json.encode(found.meaning)))
        objects.compile_object(counted, compiled)
        objects.link([compiled], output)

    return kept(objects.digest_key("counted", _own_text(), source, *fidelity.compiled, *defines), make, _load)
