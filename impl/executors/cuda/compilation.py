"""From translated Metal text to PTX: clang's front end as for the host, its back end for NVIDIA GPUs."""

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlx_assay.impl.executors import division, fusion, objects
from mlx_assay.impl.executors.cache import kept
from mlx_assay.impl.executors.cuda import alignment, sums
from mlx_assay.impl.executors.division import untrapped
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.signature import Parameter, Text
from mlx_assay.impl.executors.toolchain import DENORMAL_FLAGS, KERNEL_FLAGS, RUNTIME, toolchain

ENTRY = "assay_kernel"
LARGEST = 1024
"""Threads of the largest threadgroups."""
WHOLE = "-DASSAY_WHOLE"
"""Of a launch whose threadgroups are all whole and lie as MLX numbers them, so that no thread has to ask."""
TARGET = "nvptx64-nvidia-cuda"
NEWEST = 90
"""The newest architecture to compile for; PTX of an older one runs on every newer GPU."""
OLDEST = 70
_LIBDEVICE = Path("nvvm") / "libdevice" / "libdevice.10.bc"
_ARRAY = re.compile(
    r"= (?:tail )?call [^@\n]*@assay_array\(i32 [^,\n]*?(\d+), i64 [^,\n]*?(\d+), i64 [^,\n]*?(\d+)\)[^\n]*"
)
# ptxas 13 takes what abs.s16 gives for a positive number when it is converted on, and of -32768 it is none.
_ABS16 = re.compile(r"^\tabs\.s16 \t(%rs\d+), (%rs\d+);$", re.M)
# Where f32 flushes, LLVM has halves flushed too, whose denormals Apple's GPUs keep.
_HALF_FLUSHED = re.compile(r"\.ftz(?=\.f16(?:x2)?\s)")
# MLX hashes the text of a program at each launch, at some two bytes a nanosecond.
_IDLE = re.compile(r"[ \t]*//[^\n]*|^[ \t]+|(?<=\n)\n", re.M)
_SHARED = "@assay_shared = external addrspace(3) global [0 x i8], align 16\n"
_THREADGROUP = re.compile(r"\bthreadgroup\b")
_POISON = "if (words) assay::poison((__local uint*)assay_array(~0u, 0, 16), words, pattern);\n"
_NOT_HERE = frozenset({"-fPIC", "-fstack-clash-protection"})


class DeviceLibraryMissing(RuntimeError):
    """NVIDIA's libdevice, which holds the functions of the C library, is nowhere."""


@dataclass(frozen=True)
class Program:
    """PTX, its entry's name, and the bytes of threadgroup memory that a threadgroup of it takes.

    No other program has this name: there are versions of MLX's CUDA back end that keep a module by its name alone.
    """

    ptx: bytes
    entry: str
    threadgroup_bytes: int


def entry(text: Text, arguments: str) -> str:
    """The kernel's entry: one pointer a buffer, then the grid, the poison and the words of threadgroup memory."""
    buffers = [p for p in text.parameters if not p.attribute]
    pointers = "".join(f"__global char* b{i}, " for i in range(len(buffers)))
    addresses = ", ".join(f"(ulong)b{i}" for i in range(len(buffers)))
    # A view of an array may begin at any of its elements.
    aligned = "".join(
        f"__builtin_assume(((ulong)b{i} & (alignof({_element(p)}) - 1)) == 0);\n" for i, p in enumerate(buffers)
    )
    # Inlined, since what is assumed of the buffers here is not known in a function of its own.
    return (
        '#include "entry.h"\n'
        f'extern "C" void {ENTRY}({pointers}uint x, uint y, uint z, uint pattern, uint words) {{\n'
        f"{_POISON if _THREADGROUP.search(text.header + text.source) else ''}"
        "assay::Position position;\n"
        "if (!assay::placed(position, x, y, z)) return;\n"
        "const assay::Position* p = &position;\n"
        f"{aligned}const ulong b[] = {{{addresses}}};\n"
        f"[[clang::always_inline]] {text.name}{text.template_arguments}({arguments});\n}}\n"
    )


def _element(parameter: Parameter) -> str:
    return re.sub(r"^(const )?(device|constant) ", "", parameter.type).rstrip("*&")


def _candidates() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder) / _LIBDEVICE
    yield Path("/usr/local/cuda") / _LIBDEVICE
    for package, inside in (
        ("nvidia", Path("cu13") / _LIBDEVICE),
        ("triton", Path("backends/nvidia/lib") / _LIBDEVICE.name),
    ):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            yield Path(folder) / inside


@cache
def device_library() -> Path:
    """The bitcode of NVIDIA's libdevice. DeviceLibraryMissing: the message says where it comes from."""
    for path in _candidates():
        if path.is_file():
            return path
    raise DeviceLibraryMissing(
        "NVIDIA's libdevice.10.bc is neither in CUDA_HOME, /usr/local/cuda, nor in the wheels nvidia-nvvm and triton: "
        "pip install nvidia-nvvm, or set CUDA_HOME to a CUDA toolkit"
    )


def architecture(capability: int) -> str:
    """What to compile for on a GPU of this compute capability, such as 90. ValueError: it is too old."""
    if capability < OLDEST:
        raise ValueError(f"Expected a GPU of compute capability {OLDEST / 10} or later but got {capability / 10}")
    known = [each for each in (70, 75, 80, 86, 89, NEWEST) if each <= capability]
    return f"sm_{known[-1]}"


def laid_out(ir: str) -> tuple[str, int]:
    """LLVM IR whose threadgroup arrays have their places one behind the other, and the bytes of all."""
    sizes: dict[int, tuple[int, int]] = {}
    for number, size, multiple in _ARRAY.findall(ir):
        if int(number) != 0xFFFFFFFF:
            sizes[int(number)] = (int(size), int(multiple))
    offsets, end = {0xFFFFFFFF: 0}, 0
    for number, (size, multiple) in sorted(sizes.items()):
        offsets[number] = end = -(-end // multiple) * multiple
        end += size

    def placed(match: re.Match[str]) -> str:
        return f"= getelementptr i8, ptr addrspace(3) @assay_shared, i64 {offsets[int(match[1])]}"

    text = _ARRAY.sub(
        placed, ir.replace("i32 noundef -1,", "i32 noundef 4294967295,").replace("i32 -1,", "i32 4294967295,")
    )
    return text, -(-end // 16) * 16


def lowered(ir: str, threads: int, name: str) -> tuple[str, int]:
    """LLVM IR as the NVIDIA back end wants it, with this name for its entry, and the bytes of threadgroup memory.

    What lies in constant space lies in global memory, since a launch's small arrays come from there.
    """
    text, size = laid_out(alignment.unaligned(ir))
    # As many registers as a thread wants; in the largest threadgroups as few as let two of them share a multiprocessor.
    registers = ' "nvvm.minctasm"="1"' if threads < LARGEST else ""
    text = text.replace("addrspace(4)", "addrspace(1)")
    text = re.sub(
        rf"^define (?:dso_local |hidden |protected )*(?:spir_func )?void @{ENTRY}\(",
        f"define ptx_kernel void @{name}(",
        text,
        flags=re.M,
    )
    text = re.sub(
        rf"^(define ptx_kernel void @{name}\([^\n]*?\)[^\n{{]*?)(?= (?:#\d+|\{{))",
        rf'\1 "nvvm.maxntid"="{threads}"{registers}',
        text,
        flags=re.M,
    )
    head, _, rest = text.partition("\n\n")
    return f"{head}\n\n{_SHARED}\n{rest}", size


def _absolute(match: re.Match[str]) -> str:
    to, of = match.groups()
    return f"\tneg.s16 \t{to}, {of};\n\tmax.s16 \t{to}, {to}, {of};" if to != of else match[0]


def _short(ptx: str, entry: str) -> str:
    """The same program in as few characters as is easily had."""
    ptx = re.sub(rf"\b{entry}_param_(?=\d)", "p", ptx).replace("$L__BB0_", "$L")
    return _IDLE.sub("", ptx).replace(" \t", " ").replace("\t", " ").replace(", ", ",")


def _flags(capability: str, fidelity: Fidelity, defines: tuple[str, ...]) -> tuple[str, ...]:
    compiler = toolchain()
    contracted = () if fidelity.contraction == "on" else (objects.UNCONTRACTED,)
    order = f"-DASSAY_SIMD_ORDER={fidelity.order}"
    language = tuple(flag for flag in KERNEL_FLAGS if flag not in _NOT_HERE and not flag.startswith("-Wframe"))
    return (
        *(*compiler.clang, f"--target={TARGET}", f"-march={capability}", *language, "-DASSAY_CUDA", order),
        *("-cl-fp32-correctly-rounded-divide-sqrt", *DENORMAL_FLAGS[fidelity.f32_denormals], *contracted, *defines),
        *("-I", str(RUNTIME)),
    )


def _key(*parts: str) -> str:
    own = hashlib.sha256(b"".join(Path(str(each.__file__)).read_bytes() for each in (division, alignment, sums)))
    own.update(Path(__file__).read_bytes())
    return objects.digest_key("cuda", own.hexdigest(), *parts)


def build(
    name: str, source: str, capability: str, threads: int, fidelity: Fidelity, defines: tuple[str, ...] = ()
) -> Program:
    """The program of a translated kernel for threadgroups of at most `threads`, from the cache or made now.

    Its entry is called by `name` and a part of its key.
    objects.CompilationError: the compiler's messages. DeviceLibraryMissing. CacheError: there is nowhere to keep it.
    """
    flags = _flags(capability, fidelity, defines)
    library = device_library()
    key = _key(name, source, capability, str(threads), str(library), *fidelity.compiled, str(fidelity.order), *defines)
    entry = f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{key[:12]}"

    def make(output: Path) -> None:
        text = output.with_name("kernel.clcpp")
        text.write_text(source)
        ir = output.with_name("kernel.ll")
        found = untrapped(objects.front_end(source, ir, (*flags, *objects.pragma(source))))
        if fidelity.contraction == "off":
            found = fusion.uncontracted(found)
        found, size = lowered(found, threads, entry)
        ir.write_text(found)
        ptx = output.with_name("kernel.ptx")
        objects.run(
            (
                *(
                    *toolchain().clang,
                    f"--target={TARGET}",
                    f"-march={capability}",
                    "-O2",
                    "-Wno-everything",
                    "-x",
                    "ir",
                ),
                *("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(library), "-S", str(ir), "-o", str(ptx)),
            )
        )
        head = json.dumps({"entry": entry, "threadgroup_bytes": size})
        made = sums.summed(_HALF_FLUSHED.sub("", _ABS16.sub(_absolute, ptx.read_text())))
        output.write_text(f"{head}\n{_short(made, entry)}")

    return kept(key, make, _read)


def _read(path: Path) -> Program:
    head, _, ptx = path.read_bytes().partition(b"\n")
    told = json.loads(head)
    return Program(ptx, told["entry"], told["threadgroup_bytes"])
