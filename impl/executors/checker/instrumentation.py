"""Asks the checker before every access of a kernel, in the text of its LLVM IR.

The IR is unoptimised, so every access and every variable of the author's is there, and everything is inlined into the
function that runs one thread, so every variable's accesses are in one place. Arrays of the kernel are checked by the
runtime, by address. The thread's own variables are checked here: beside each stands a shadow that holds ones where
something was written. The optimiser removes the shadows of all that is certainly written before it is read.
"""

import re
from dataclasses import dataclass

from mlx_assay.impl.executors.checker.definitions import DECLARATIONS, RUNTIME_FUNCTIONS
from mlx_assay.impl.executors.checker.instructions import GLOBAL, allocated, split_typed
from mlx_assay.impl.executors.checker.places import Places
from mlx_assay.impl.executors.checker.thread import Thread
from mlx_assay.impl.executors.checker.variables import Object

_THREAD = re.compile(r"^define [^\n]*@assay_thread\(([^\n]*)\)[^\n]*\{$", re.M)
_MARKED = re.compile(r"^[^\n]*@assay_marked_[^\n]*$", re.M)
_PARAMETER = re.compile(r"%[-\w$.]+")
_DEFINED = re.compile(rf"^({GLOBAL}) = (?:[a-z_()]+ )*(?:global|constant) (.*)$", re.M)


@dataclass(frozen=True)
class Instrumented:
    """Instrumented IR, and what its numbers mean."""

    ir: str
    places: list[tuple[str, int]]
    objects: list[Object]


def program_objects(ir: str, places: Places) -> dict[str, Object]:
    """The program's own constants and variables, by name, without the executor's."""
    found = {}
    for name, rest in _DEFINED.findall(ir):
        dbg = re.search(r"!dbg !(\d+)", rest)
        if not name.startswith(("@_ZN5assay", "@_ZGV", "@llvm.", "@assay")):
            type_ = split_typed(rest)[0]
            found[name] = Object(places.name(int(dbg[1])) if dbg else name[1:], type_, allocated(type_), False)
    return found


def instrument(ir: str) -> Instrumented:
    """Instrumented IR, from IR in which everything is inlined into `assay_thread`."""
    places = Places(ir)
    head = _THREAD.search(ir)
    if head is None:
        raise ValueError("the translated kernel has no assay_thread to instrument")
    end = ir.index("\n}\n", head.end())
    thread = Thread(
        ir[head.end() + 1 : end].split("\n"), _PARAMETER.findall(head[1]), places, program_objects(ir, places)
    )
    body = "\n".join(thread.rewritten())
    before, after = ir[: head.end() + 1], ir[end:]
    # Functions that were inlined are still there.
    before, after = (_MARKED.sub("", part) for part in (before, after))
    for name in RUNTIME_FUNCTIONS:
        before = re.sub(rf"^declare [^\n]*@{name}\([^\n]*$", "", before, flags=re.M)
        after = re.sub(rf"^declare [^\n]*@{name}\([^\n]*$", "", after, flags=re.M)
    known = [(name, o) for name, o in thread.globals.items() if o.bytes.isdigit() or "ptrtoint" in o.bytes]
    table = ", ".join(f"{{ ptr, i64 }} {{ ptr {name}, i64 {o.bytes} }}" for name, o in known)
    objects = f"[{len(known)} x {{ ptr, i64 }}] [{table}]"
    memset = "" if "@llvm.memset.p0.i64(" in before + after else "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    memcpy = (
        ""
        if "@llvm.memcpy.p0.p0.i64(" in before + after
        else "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    )
    text = (
        f"{before}{body}{after}\n{DECLARATIONS}{memset}{memcpy}"
        f"@assay_objects = constant {objects}\n@assay_objects_count = constant i32 {len(known)}\n"
    )
    return Instrumented(text, places.table(), thread.variables.objects)
