"""What Apple's compiler recorded about a kernel: its arguments, its function constants, its text in LLVM's language."""

import re
from typing import Any

import llvmlite.binding as llvm
import msgspec

from mlx_assay.impl.executors.apple.container import MetallibError
from mlx_assay.impl.executors.binding import Argument

_NODE = re.compile(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", re.M)
_NAMED = re.compile(r"^!(air\.[a-z_]+) = !\{(.*)\}$", re.M)
_ITEM = re.compile(r'!"((?:[^"\\]|\\.)*)"|!(\d+)|i\d+ (-?\d+|true|false)|([^,]+?@[^,]+|null)(?:, |$)')


class Constant(msgspec.Struct, frozen=True):
    """A function constant: `symbol` is the global that holds it, `type` Metal's name of its type."""

    symbol: str
    type: str
    name: str
    index: int


class Program(msgspec.Struct, frozen=True):
    """A kernel as Apple's compiler left it. `text` is the module in LLVM's language."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    constants: tuple[Constant, ...]
    threadgroup: dict[str, tuple[int, int]]
    """Global in threadgroup memory -> (bytes, alignment)."""


class _Metadata:
    def __init__(self, text: str) -> None:
        self._nodes = {int(m[1]): m[2] for m in _NODE.finditer(text)}
        self.named = {m[1]: [int(n) for n in re.findall(r"!(\d+)", m[2])] for m in _NAMED.finditer(text)}

    def items(self, node: int) -> list[Any]:
        """A node's items: str for a text, ("node", n) for a reference, int, or ("value", text)."""
        out: list[Any] = []
        for m in _ITEM.finditer(self._nodes.get(node, "")):
            if m[1] is not None:
                out.append(m[1])
            elif m[2] is not None:
                out.append(("node", int(m[2])))
            elif m[3] is not None:
                out.append({"true": 1, "false": 0}.get(m[3]) if m[3] in ("true", "false") else int(m[3]))
            else:
                out.append(("value", m[4].strip()))
        return out


def _after(items: list[Any], tag: str, default: Any) -> Any:
    return items[items.index(tag) + 1] if tag in items else default


def _symbol(item: Any) -> str:
    return str(item[1]).rpartition("@")[2].strip('"')


def _argument(metadata: _Metadata, items: list[Any], type_: str) -> Argument:
    kinds = [i[4:] for i in items if isinstance(i, str) and i.startswith("air.")]
    condition = None
    if kinds[0] == "function_constant":
        condition = metadata.items(items[items.index("air.function_constant") + 1][1])[2]
        kinds = kinds[1:]
    name = _after(items, "air.arg_name", "")
    if kinds[0] != "buffer":
        return Argument(kinds[0], type_, name, condition=condition)
    return Argument(
        kind="buffer",
        type=type_,
        name=name,
        location=_after(items, "air.location_index", -1),
        space=_after(items, "air.address_space", 0),
        writable="air.read" not in items,
        bytes=_after(items, "air.buffer_size", 0),
        alignment=_after(items, "air.arg_type_align_size", 1),
        type_name=_after(items, "air.arg_type_name", ""),
        condition=condition,
    )


def _types(text: str, name: str) -> list[str]:
    found = re.search(rf"^define [^\n]*@{re.escape(name)}\((.*)\)[^()]*\{{$", text, re.M)
    if found is None:
        raise MetallibError(f"kernel {name!r}: its bitcode defines no function of that name")
    return re.findall(r"(ptr addrspace\(\d+\)|ptr|<\d+ x \w+>|\w+)[^%,<>]*?(?:\"[^\"]*\" )*%[\w.]+", found[1])


def _threadgroup(module: llvm.ModuleRef) -> dict[str, tuple[int, int]]:
    sizes = llvm.create_target_data(module.data_layout)
    out = {}
    for g in module.global_variables:
        declaration = str(g)
        if re.search(r"= [^\"]*?addrspace\(3\) ", declaration):
            alignment = re.search(r"align (\d+)", declaration)
            out[g.name] = (sizes.get_abi_size(g.global_value_type), int(alignment[1]) if alignment else 16)
    return out


def disassemble(name: str, bitcode: bytes) -> Program:
    """The program in a kernel's bitcode. MetallibError: LLVM cannot read it, or it is not a kernel of that name."""
    try:
        module = llvm.parse_bitcode(bitcode, llvm.create_context())
    except RuntimeError as error:
        raise MetallibError(f"kernel {name!r}: LLVM cannot read its bitcode: {error}") from None
    text = str(module)
    metadata = _Metadata(text)
    kernels = metadata.named.get("air.kernel", [])
    if len(kernels) != 1:
        raise MetallibError(f"kernel {name!r}: its bitcode holds {len(kernels)} kernels, expected 1")
    function, _, arguments = metadata.items(kernels[0])[:3]
    nodes = [metadata.items(n) for _, n in metadata.items(arguments[1])]
    types = _types(text, _symbol(function))
    if len(types) != len(nodes):
        raise MetallibError(f"kernel {name!r}: {len(types)} parameters, and {len(nodes)} described by its metadata")
    constants = [metadata.items(n) for n in metadata.named.get("air.function_constants", [])]
    return Program(
        name=_symbol(function),
        text=text,
        arguments=tuple(_argument(metadata, items, t) for items, t in zip(nodes, types, strict=True)),
        constants=tuple(Constant(_symbol(c[0]), c[1], c[2], c[3]) for c in constants),
        threadgroup=_threadgroup(module),
    )
