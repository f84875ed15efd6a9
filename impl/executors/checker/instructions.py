"""The instructions of LLVM IR that touch memory, read from its text: the one function that runs a thread."""

import re
from dataclasses import dataclass, field

VALUE = r"%(?:[-\w$.]+|\"[^\"]*\")"
GLOBAL = r"@(?:[-\w$.]+|\"[^\"]*\")"
_POINTER = rf"(?:{VALUE}|{GLOBAL}|null|undef|poison|getelementptr [^()]*\((?:[^()]|\([^()]*\))*\)|inttoptr \([^()]*\))"

_NAMES = re.compile(VALUE)
_DBG = re.compile(r"!dbg !(\d+)")
_ALIGN = re.compile(r"\balign (\d+)")
_LOAD = re.compile(rf"^\s*({VALUE}) = (?:tail )?load (atomic )?(?:volatile )?(.+?), ptr ({_POINTER})(?=[, ]|$)")
_STORE = re.compile(rf"^\s*store (atomic )?(?:volatile )?(.+), ptr ({_POINTER})(?=[, ]|$)")
_UPDATE = re.compile(
    rf"^\s*({VALUE}) = (?:atomicrmw (?:volatile )?\w+|cmpxchg (?:weak )?(?:volatile )?) ?ptr ({_POINTER}), (\S+) "
)
_COPY = re.compile(
    rf"call void @llvm\.mem(?:cpy|move)[^(]*\(ptr [^%@]*({_POINTER}), ptr [^%@]*({_POINTER}), i64 ([^,]+),"
)
_SET = re.compile(rf"call void @llvm\.memset[^(]*\(ptr [^%@]*({_POINTER}), i8 ([^,]+), i64 ([^,]+),")
_GEP = re.compile(
    rf"^\s*({VALUE}) = getelementptr (?:(?:inbounds|nuw|nusw) )*(.+?), ptr ({_POINTER})(, .*?)?(?:, !dbg.*)?$"
)
_ALLOCA = re.compile(rf"^\s*({VALUE}) = alloca (.+?), align (\d+)")
_PHI = re.compile(rf"^\s*({VALUE}) = phi ptr (.*?)(?:, !dbg.*)?$")
_SELECT = re.compile(rf"^\s*({VALUE}) = select i1 [^,]+, ptr ({_POINTER}), ptr ({_POINTER})")
_CALL = re.compile(rf"^\s*(?:({VALUE}) = )?(?:(?:tail|notail|musttail) )?call .*?({GLOBAL}|{VALUE})\(")
_LIFETIME = re.compile(rf"call void @llvm\.lifetime\.start[^(]*\((?:i64 [^,]+, )?ptr [^%]*({VALUE})\)")
_DECLARE = re.compile(rf"dbg[_.]declare\((?:metadata )?ptr ({VALUE}), (?:metadata )?!(\d+),")

BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


@dataclass(slots=True)
class Instruction:
    """One line. `pointers` are the operands that are dereferenced, or that a pointer is made from."""

    line: str
    kind: str = ""
    result: str = ""
    type: str = ""
    pointers: tuple[str, ...] = ()
    value: str = ""
    atomic: bool = False
    names: list[str] = field(default_factory=list)

    @property
    def location(self) -> int | None:
        """The number of its debug location."""
        found = _DBG.search(self.line)
        return int(found[1]) if found else None

    @property
    def tail(self) -> str:
        """What gives another line its debug location."""
        location = self.location
        return "" if location is None else f", !dbg !{location}"

    @property
    def align(self) -> int:
        """The alignment that the instruction asks for."""
        found = _ALIGN.search(self.line)
        return int(found[1]) if found else 1


def size_of(type_: str) -> int | None:
    """The bytes that a value of a scalar, vector or array type holds; None: of a structure."""
    type_ = type_.strip()
    if type_ in BYTES:
        return BYTES[type_]
    if type_[0] == "i" and type_[1:].isdigit():
        return (int(type_[1:]) + 7) // 8
    if match := re.fullmatch(r"[<\[](\d+) x (.+)[>\]]", type_):
        inner = size_of(match[2])
        if type_[0] == "[" and inner is not None and match[2].startswith("<3 "):
            inner = inner // 3 * 4
        return None if inner is None else int(match[1]) * inner
    return None


def allocated(type_: str) -> str:
    """The bytes that a variable of a type takes, as a constant of type i64."""
    size = size_of(type_)
    if size is not None and not type_.startswith("<3 "):
        return str(size)
    return f"ptrtoint (ptr getelementptr ({type_}, ptr null, i32 1) to i64)"


def split_typed(typed: str) -> tuple[str, str]:
    """`T value` as (T, value)."""
    depth = 0
    for i, c in enumerate(typed):
        depth += (c in "<[{") - (c in ">]}")
        if c == " " and depth == 0:
            return typed[:i], typed[i + 1 :]
    return typed, ""


def _memory(line: str, names: list[str]) -> Instruction | None:
    if " load " in line and (m := _LOAD.match(line)):
        return Instruction(line, "load", m[1], m[3], (m[4],), atomic=bool(m[2]), names=names)
    if "store " in line and (m := _STORE.match(line)):
        type_, value = split_typed(m[2])
        return Instruction(line, "store", "", type_, (m[3],), value, bool(m[1]), names)
    if " getelementptr " in line and (m := _GEP.match(line)):
        return Instruction(line, "gep", m[1], m[2], (m[3],), m[4] or "", names=names)
    if (" atomicrmw " in line or " cmpxchg " in line) and (m := _UPDATE.match(line)):
        return Instruction(line, "update", m[1], m[3], (m[2],), atomic=True, names=names)
    if " alloca " in line and (m := _ALLOCA.match(line)):
        return Instruction(line, "alloca", m[1], m[2], names=names)
    return None


def _call(line: str, names: list[str]) -> Instruction:
    if m := _COPY.search(line):
        return Instruction(line, "copy", "", "", (m[1], m[2]), m[3], names=names)
    if m := _SET.search(line):
        return Instruction(line, "set", "", m[2], (m[1],), m[3], names=names)
    if "@llvm.lifetime" in line:
        m = _LIFETIME.search(line)
        return Instruction(line, "begin", m[1] if m else "", names=names)
    if m := _DECLARE.search(line):
        return Instruction(line, "declare", m[1], value=m[2], names=names)
    m = _CALL.match(line)
    kind = "call" if m and not m[2].startswith("@llvm.") else "other"
    return Instruction(line, kind, (m[1] or "") if m else "", value=m[2] if m else "", names=names)


def read(line: str) -> Instruction:
    """The instruction on a line."""
    if line.startswith("    #dbg_"):
        m = _DECLARE.search(line)
        return Instruction(line, "declare" if m else "note", m[1] if m else "", value=m[2] if m else "")
    names = _NAMES.findall(line)
    if (found := _memory(line, names)) is not None:
        return found
    if "call " in line:
        return _call(line, names)
    if " phi ptr " in line and (m := _PHI.match(line)):
        came = tuple(re.findall(rf"\[ ({_POINTER}), ", m[2]))
        return Instruction(line, "phi", m[1], "ptr", came, m[2], names=names)
    if " select " in line and (m := _SELECT.match(line)):
        return Instruction(line, "select", m[1], "ptr", (m[2], m[3]), names=names)
    result = line.split(" = ", 1)[0].strip() if " = " in line else ""
    return Instruction(line, "other", result, names=names)
