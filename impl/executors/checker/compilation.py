"""Checked builds of translated kernels: compiled, inlined, instrumented, compiled again; cached like unchecked ones."""

import ctypes
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from mlx_assay.impl.executors import fidelity, fusion, objects
from mlx_assay.impl.executors.cache import kept
from mlx_assay.impl.executors.checker import (
    components,
    definitions,
    instructions,
    instrumentation,
    places,
    pointers,
    preparation,
    shifts,
    thread,
    variables,
)
from mlx_assay.impl.executors.convergence import keyed
from mlx_assay.impl.executors.division import untrapped
from mlx_assay.impl.executors.toolchain import DENORMAL_FLAGS, KERNEL_FLAGS, RUNTIME, baseline, toolchain
from mlx_assay.impl.executors.translation import prelude

_MODULES = (
    components,
    definitions,
    instructions,
    instrumentation,
    places,
    pointers,
    preparation,
    shifts,
    thread,
    variables,
)
_MAX_ARRAYS = 128
_ARRAY = re.compile(r"(\w+) = assay::threadgroup_variable<(\d+),")


class ThreadgroupArray(msgspec.Struct, frozen=True):
    """A threadgroup array: its bytes, those of the smallest part of it that is written at once, and of an element."""

    bytes: int
    unit: int
    element: int
    name: str


class Meaning(msgspec.Struct, frozen=True):
    """What the numbers of an instrumented kernel mean."""

    places: list[tuple[str, int]]
    objects: list[tuple[str, str, bool]]  # name, type in LLVM's words, whether it is the thread's own
    arrays: dict[int, str]  # names of threadgroup arrays


@dataclass(frozen=True)
class CheckedLibrary:
    """A loaded kernel whose accesses are checked."""

    thread: int
    threadgroup_bytes: int
    arrays: tuple[ThreadgroupArray, ...]
    constants: tuple[int, int]  # the address of their table, and their number
    meaning: Meaning


def instrumented(source: Path) -> instrumentation.Instrumented:
    """The instrumented IR of a translated kernel. CompilationError: the compiler's messages."""
    compiler = toolchain()
    ir = source.with_suffix(".ll")
    flags = (*compiler.clang, *compiler.target, *KERNEL_FLAGS, "-DASSAY_CHECKED", "-g", "-fno-discard-value-names")
    flags = (*flags, *DENORMAL_FLAGS[fidelity.current().f32_denormals])
    flags = (*flags, "-I", str(RUNTIME))
    prepared = preparation.prepared(_with_counts(source.read_text(), ir, flags))
    return instrumentation.instrument(keyed(objects.inlined(prepared, ir, "-fno-discard-value-names")))


def _with_counts(text: str, output: Path, flags: tuple[str, ...]) -> str:
    """The IR of a translated kernel in which as many counts of shifts are to be seen as its text allows."""
    known = prelude() if text.startswith(prelude()) else ""
    for way in shifts.WAYS:
        try:
            return objects.front_end(known + shifts.marked(text[len(known) :], *way), output, flags)
        except objects.CompilationError:
            continue
    return objects.front_end(text, output, flags)


def _compile(source: Path, output: Path) -> None:
    found = instrumented(source)
    meaning = Meaning(
        found.places,
        [(o.name, o.type, o.private) for o in found.objects],
        {int(number): name for name, number in _ARRAY.findall(source.read_text())},
    )
    text = untrapped(objects.unaligned(found.ir)) + constant("assay_meaning", msgspec.json.encode(meaning))
    if fidelity.current().contraction == "off":
        text = fusion.uncontracted(text)
    ir = source.with_suffix(".checked.ll")
    ir.write_text(text if "fp16" in baseline() else fusion.exact_half(text))
    objects.compile_object(ir, output)


def constant(name: str, value: bytes) -> str:
    """IR of a constant that a library's loader reads."""
    escaped = "".join(f"\\{b:02x}" for b in value)
    return f'@{name} = constant [{len(value) + 1} x i8] c"{escaped}\\00"\n'


def _load(path: Path) -> CheckedLibrary:
    objects.runtime()
    library = objects.opened(path)
    thread = ctypes.cast(library.assay_thread, ctypes.c_void_p).value
    library.assay_threadgroup_bytes.restype = ctypes.c_uint32
    table = (ctypes.c_uint32 * 3 * _MAX_ARRAYS).in_dll(library, "assay_threadgroup_arrays")
    constants = ctypes.addressof(ctypes.c_char.in_dll(library, "assay_objects"))
    count = ctypes.c_uint32.in_dll(library, "assay_objects_count").value
    said = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "assay_meaning")))
    meaning = msgspec.json.decode(said, type=Meaning)
    assert thread is not None
    used = max((i + 1 for i in range(_MAX_ARRAYS) if table[i][0]), default=0)
    arrays = tuple(
        ThreadgroupArray(table[i][0], table[i][1], table[i][2], meaning.arrays.get(i, "threadgroup memory"))
        for i in range(used)
    )
    return CheckedLibrary(thread, library.assay_threadgroup_bytes(), arrays, (constants, count), meaning)


@cache
def _own_text() -> str:
    return "".join(Path(m.__file__ or "").read_text() for m in _MODULES) + Path(__file__).read_text()


def build(source: str) -> CheckedLibrary:
    """The checked library of a translated kernel, from the cache or made now.

    CompilationError: the compiler's messages. CacheError: there is nowhere to keep it.
    """

    def make(output: Path) -> None:
        text, compiled = output.with_name("kernel.clcpp"), output.with_name("kernel.o")
        text.write_text(source)
        _compile(text, compiled)
        objects.link([compiled], output)

    return kept(objects.digest_key("checked", source, _own_text(), *fidelity.current().compiled), make, _load)
