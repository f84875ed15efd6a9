"""Apple's compiled kernels without Apple's files: containers and bitcode are forged in Apple's form."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

from mlx_assay.impl.executors.apple.kernel import AppleKernel, AppleLibrary, load
from mlx_assay.impl.executors.apple.wheel import WheelError

LLVM_TYPES = {
    "f": "float",
    "h": "half",
    "b": "bfloat",
    "i": "i32",
    "I": "i32",
    "s": "i16",
    "l": "i64",
    "c": "i8",
    "?": "i1",
}
DTYPES: dict[str, Any] = {
    "f": np.float32, "h": np.float16, "b": ml_dtypes.bfloat16, "i": np.int32, "I": np.uint32, "s": np.int16,
    "l": np.int64,
    "c": np.int8,
}  # fmt: skip


def container(functions: dict[str, bytes]) -> bytes:
    """A .metallib of these kernels, laid out as Apple's."""
    records, code = b"", b""
    for name, bitcode in functions.items():
        fields = {
            b"NAME": name.encode() + b"\0",
            b"TYPE": b"\x02",
            b"HASH": hashlib.sha256(bitcode).digest(),
            b"OFFT": struct.pack("<3Q", 0, 0, len(code)),
            b"VERS": bytes(8),
            b"MDSZ": struct.pack("<Q", len(bitcode)),
        }
        body = b"".join(tag + struct.pack("<H", len(v)) + v for tag, v in fields.items()) + b"ENDT"
        records += struct.pack("<I", len(body) + 4) + body
        code += bitcode
    listed = struct.pack("<I", len(functions)) + records
    at = 0x58 + len(listed)
    head = b"MTLB".ljust(16, b"\0") + struct.pack("<QQQ", at + len(code), 0x58, len(records)) + bytes(32)
    return head + struct.pack("<QQ", at, len(code)) + listed + code


METAL_TYPES = {
    "f": "float",
    "h": "half",
    "b": "bfloat",
    "i": "int",
    "I": "uint",
    "s": "short",
    "l": "long",
    "c": "char",
}
BUFFER = (
    '!{{i32 {i}, {condition}!"air.buffer", {size}!"air.location_index", i32 {i}, i32 1, !"air.{access}", '
    '!"air.address_space", i32 1, !"air.arg_type_size", i32 4, !"air.arg_type_align_size", i32 {align}, '
    '!"air.arg_type_name", !"{kind}", !"air.arg_name", !"b{i}"}}'
)


def module(body: str, inputs: str, output: str, declared: str = "", attributes: str = "", tail: str = "") -> str:
    """A kernel `k` in Apple's form: buffers %0 .. of the element types, the last written; %id; attributes."""
    kinds = ["thread_position_in_grid", *attributes.split()]
    pointers = [f"ptr addrspace(1) %{n}" for n in range(len(inputs) + 1)]
    values = ["i32 %id", *(f"<3 x i32> %{a}" if "position" in a or "per_" in a else f"i32 %{a}" for a in kinds[1:])]
    nodes = []
    for i, kind in enumerate(inputs + output):
        align = np.dtype(DTYPES[kind]).itemsize
        access = "read_write" if i == len(inputs) else "read"
        metal = METAL_TYPES[kind]
        nodes.append(BUFFER.format(i=i, access=access, align=align, condition="", size="", kind=metal))
    for i, kind in enumerate(kinds, len(nodes)):
        nodes.append(f'!{{i32 {i}, !"air.{kind}", !"air.arg_type_name", !"uint", !"air.arg_name", !"a{i}"}}')
    numbered = "\n".join(f"!{100 + i} = {n}" for i, n in enumerate(nodes))
    return f"""target triple = "air64_v27-apple-macosx15.0.0"
{declared}
define void @k({", ".join([*pointers, *values])}) {{
{body}
  ret void
}}
{tail}
!air.kernel = !{{!0}}
!0 = !{{ptr @k, !1, !2}}
!1 = !{{}}
!2 = !{{{", ".join(f"!{100 + i}" for i in range(len(nodes)))}}}
{numbered}
"""


def elementwise(instructions: str, inputs: str, output: str, declared: str) -> str:
    """Element `id` of every input is %x0 ...; the instructions define %r."""
    lines = []
    for n, kind in enumerate(inputs):
        type_ = LLVM_TYPES[kind]
        lines += [f"  %p{n} = getelementptr {type_}, ptr addrspace(1) %{n}, i32 %id"]
        lines += [f"  %x{n} = load {type_}, ptr addrspace(1) %p{n}"]
    result = LLVM_TYPES[output]
    end = f"  %q = getelementptr {result}, ptr addrspace(1) %{len(inputs)}, i32 %id\n"
    end += f"  store {result} %r, ptr addrspace(1) %q"
    return module("\n".join([*lines, f"  {instructions}", end]), inputs, output, declared)


def call(name: str, inputs: str, output: str) -> str:
    types = [LLVM_TYPES[k] for k in inputs]
    given = ", ".join(f"{t} %x{n}" for n, t in enumerate(types))
    declared = f"declare {LLVM_TYPES[output]} @{name}({', '.join(types)})"
    return elementwise(f"%r = tail call {LLVM_TYPES[output]} @{name}({given})", inputs, output, declared)


def run(kernel: AppleKernel, *inputs: Any, output: str, threadgroup: int = 32, **launch: Any) -> np.ndarray[Any, Any]:
    out = np.zeros(len(inputs[0]), DTYPES[output])
    kernel([*inputs, out], grid=len(out), threadgroup=threadgroup, **launch)
    return out


class Forge:
    """Makes kernels out of modules' text, by way of bitcode and a container."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "forged.metallib"

    container = staticmethod(container)
    module = staticmethod(module)
    elementwise = staticmethod(elementwise)
    call = staticmethod(call)
    run = staticmethod(run)

    def kernel(self, text: str, **options: Any) -> AppleKernel:
        """The kernel `k` of a module."""
        with llvm.parse_assembly(text, llvm.create_context()) as parsed:
            self.path.write_bytes(container({"k": parsed.as_bitcode()}))
        return load(self.path).function("k", **options)


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return Forge(tmp_path)


@cache
def _found(version: str) -> AppleLibrary | WheelError:
    try:
        return load(version)
    except WheelError as error:
        return error


@pytest.fixture
def stock() -> Callable[[str], AppleLibrary]:
    """MLX's own kernels of a version; the test counts as not run where the wheel cannot be had."""

    def of(version: str) -> AppleLibrary:
        if isinstance(found := _found(version), WheelError):
            pytest.skip(f"not run: {found}")
        return found

    return of
