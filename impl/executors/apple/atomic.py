"""Atomic operations, `air.atomic.*`: LLVM's own. Metal has the relaxed order alone."""

import re

from mlx_assay.impl.executors.apple.assembly import Assembly

_ATOMIC = re.compile(
    r"air\.atomic\.(?:global|local)\.(load|store|xchg|add|sub|and|or|xor|max|min|cmpxchg\.weak)\.(?:([su])\.)?([fi]\d+)"
)


def define(name: str, result: str, parameters: list[str], code: Assembly) -> str | None:
    """The definition of an atomic function, or None for a name that is none."""
    found = _ATOMIC.fullmatch(name)
    if found is None:
        return None
    operation, sign, scalar = found[1], found[2], found[3]
    type_ = "float" if scalar == "f32" else scalar
    pointer = f"{parameters[0]} %a0"
    alignment = 8 if scalar == "i64" else 4
    if operation == "load":
        return code.returns(code.value(f"load atomic {type_}, {pointer} monotonic, align {alignment}"))
    if operation == "store":
        code.line(f"store atomic {type_} %a1, {pointer} monotonic, align {alignment}")
        return code.returns()
    if operation == "cmpxchg.weak":
        word = f"i{scalar[1:]}"
        expected = code.value(f"load {word}, {parameters[1]} %a1")
        new = code.value(f"bitcast {type_} %a2 to {word}")
        pair = code.value(f"cmpxchg weak {pointer}, {word} {expected}, {word} {new} monotonic monotonic")
        old = code.value(f"extractvalue {{ {word}, i1 }} {pair}, 0")
        code.line(f"store {word} {old}, {parameters[1]} %a1")
        if result == "i1":
            return code.returns(code.value(f"extractvalue {{ {word}, i1 }} {pair}, 1"))
        return code.returns(code.value(f"bitcast {word} {old} to {type_}"))
    if operation in {"max", "min"} and type_ != "float":
        operation = ("u" if sign == "u" else "") + operation
    operation = ("f" if type_ == "float" and operation in {"add", "sub", "max", "min"} else "") + operation
    old = code.value(f"atomicrmw {operation} {pointer}, {type_} %a1 monotonic")
    return code.returns(old if result != "void" else "")
