"""From Apple's program to a module for this machine: the entry, threadgroup memory, constants and `air.*` functions.

Apple's text is kept but for what a GPU's compiler would have lowered. Address spaces need no lowering: 0 to 3 are plain
pointers on x86_64 and arm64.
"""

import re
import struct
from collections.abc import Mapping

import msgspec

from mlx_assay.impl.executors.apple import air
from mlx_assay.impl.executors.apple.assembly import FLUSHED, KEPT, Assembly
from mlx_assay.impl.executors.apple.container import MetallibError
from mlx_assay.impl.executors.apple.layout import Layout
from mlx_assay.impl.executors.apple.program import Program
from mlx_assay.impl.executors.apple.types import parse
from mlx_assay.impl.executors.binding import Argument
from mlx_assay.impl.executors.division import untrapped
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.launch import MAX_THREADGROUP_BYTES

ENTRY = "assay_thread"
THREADGROUP = 3
_SPACES = {"0", "1", "2", "3"}
_DECLARATION = re.compile(r"^declare (?:\w+ )*?([^@\n]*?) ?@((?:air|llvm\.fmuladd)\.[\w.]+)\((.*)\)[^\n]*\n", re.M)
_PARAMETER = re.compile(r"ptr addrspace\(\d+\)|ptr|<\d+ x \w+>|\w+")
_DROPPED = re.compile(
    r"^(?:target (?:datalayout|triple) =|!air\.|!llvm\.(?:ident|module\.flags)|@llvm\.(?:compiler\.)?used|"
    r"; ModuleID|source_filename)[^\n]*\n",
    re.M,
)
_CONSTANT_EXPRESSION = re.compile(
    r"(?P<operation>getelementptr|addrspacecast|ptrtoint|inttoptr|bitcast)(?P<flags>(?: \w+)*) "
    r"\((?P<inside>[^()]*(?:\([^()]*\)[^()]*)*)\)"
)


class Lowered(msgspec.Struct, frozen=True):
    """A module's text for this machine, and what is to be known about it."""

    text: str
    threadgroup_bytes: int
    opaque: tuple[str, ...]
    ordered: tuple[str, ...]
    sites: tuple[str, ...]
    """The collective at each site, counted from 1."""


def _parameters(listed: str) -> list[str]:
    found = [_PARAMETER.match(part.strip()) for part in re.split(r", (?![^<(]*[>)])", listed) if part.strip()]
    return [m[0] for m in found if m]


def _literal(type_: str, value: bool | int | float) -> str:
    """A function constant's value as LLVM writes one of its type."""
    if type_ in {"float", "half"}:
        if type_ == "half":
            return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
        (narrow,) = struct.unpack("<f", struct.pack("<f", value))
        return f"0x{struct.unpack('<Q', struct.pack('<d', narrow))[0]:016X}"
    return str(int(value))


def _fill_constants(text: str, program: Program, constants: Mapping[str, bool | int | float]) -> str:
    for constant in program.constants:
        head = re.compile(rf'^@"?{re.escape(constant.symbol)}"? = [^\n]*? constant (\w+) [^\n]*$', re.M)

        def filled(m: re.Match[str], value: bool | int | float = constants[constant.name]) -> str:
            symbol = m[0].partition(" = ")[0]
            return f"{symbol} = internal unnamed_addr addrspace(2) constant {m[1]} {_literal(m[1], value)}"

        text, count = head.subn(filled, text)
        if count != 1:
            raise MetallibError(f"kernel {program.name!r}: function constant {constant.name!r} has no global")
    return text.replace(' section "air.static_init"', "")


class _Threadgroup:
    """Places threadgroup variables in the arena and makes their uses pointers into it."""

    def __init__(self, program: Program) -> None:
        self.offsets: dict[str, int] = {}
        self.bytes = 0
        for symbol, (size, alignment) in program.threadgroup.items():
            self.offsets[symbol] = -(-self.bytes // alignment) * alignment
            self.bytes = self.offsets[symbol] + size
        self.bytes = -(-self.bytes // 4) * 4
        if self.bytes > MAX_THREADGROUP_BYTES:
            raise MetallibError(
                f"kernel {program.name!r}: takes {self.bytes} bytes of threadgroup memory, "
                f"and {MAX_THREADGROUP_BYTES} is the most"
            )
        names = "|".join(re.escape(s) for s in self.offsets)
        self._use = re.compile(rf'@"?(?:{names})"?(?![\w.$"])')

    def place(self, text: str) -> str:
        if not self.offsets:
            return text
        text = re.sub(rf"^{self._use.pattern} = [^\n]*\n", "", text, flags=re.M)
        return re.sub(r"^define [^\n]*\{\n.*?^\}\n", lambda m: self._function(m[0]), text, flags=re.M | re.S)

    def _function(self, text: str) -> str:
        if not self._use.search(text):
            return text
        head, _, body = text.partition("\n")
        entry = ["  %assay.arena = call ptr @assay_arena()"]
        body = self._hoist(body, entry)
        for symbol in {m[0] for m in self._use.finditer(body)} | {m[0] for m in self._use.finditer("\n".join(entry))}:
            plain = symbol.strip('@"')
            local = self._local(plain)
            entry[1:1] = [
                f"  {local}.0 = getelementptr i8, ptr %assay.arena, i64 {self.offsets[plain]}",
                f"  {local} = addrspacecast ptr {local}.0 to ptr addrspace(3)",
            ]
        body = self._use.sub(lambda m: self._local(m[0].strip('@"')), body)
        entry = [self._use.sub(lambda m: self._local(m[0].strip('@"')), line) for line in entry]
        label = re.match(r"[\w.$\"-]+:[^\n]*\n", body)
        at = label.end() if label else 0
        return f"{head}\n{body[:at]}{chr(10).join(entry)}\n{body[at:]}"

    def _local(self, symbol: str) -> str:
        return f"%assay.threadgroup.{list(self.offsets).index(symbol)}"

    def _hoist(self, body: str, entry: list[str]) -> str:
        """Turns constant expressions over threadgroup variables into instructions of the entry block."""
        while True:
            for m in _CONSTANT_EXPRESSION.finditer(body):
                if self._use.search(m["inside"]) and not _CONSTANT_EXPRESSION.search(m["inside"]):
                    name = f"%assay.expression.{len(entry)}"
                    entry.append(f"  {name} = {m['operation']}{m['flags']} {m['inside']}")
                    body = body[: m.start()] + name + body[m.end() :]
                    break
            else:
                return body


def _site_calls(text: str, collectives: frozenset[str]) -> tuple[str, list[str]]:
    """Gives each call of a collective its site, and takes the attributes off: they are a GPU's promises."""
    sites: list[str] = []
    call = re.compile(r"(call [^@\n]*@)(air\.[\w.]+)(\()([^\n]*?)\)( #\d+)?(?=(?:, ![^\n]*)?$)", re.M)

    def sited(m: re.Match[str]) -> str:
        if m[2] not in collectives:
            return m[0]
        sites.append(m[2])
        return f"{m[1]}{m[2]}({m[4]}{', ' if m[4] else ''}i32 {len(sites)})"

    return call.sub(sited, text), sites


def _fmuladd(name: str, result: str, contraction: bool) -> Assembly:
    type_ = parse(result)
    assert type_ is not None
    code = Assembly(name, result, [result] * 3, collective=False)
    if contraction:
        value = air.fused(code, type_)
    else:
        value = code.value(f"fadd {result} {code.value(f'fmul {result} %a0, %a1')}, %a2")
    code.text = code.returns(value)
    return code


def _entry(program: Program, layout: Layout) -> str:
    """The function that the scheduler calls for each thread: it loads what the kernel's arguments stand for."""
    code = Assembly(ENTRY, "void", ["ptr", "ptr"], collective=False)
    passed = []
    buffers = 0
    for argument in program.arguments:
        if argument.kind == "buffer":
            if argument.space == THREADGROUP:
                raise MetallibError(
                    f"kernel {program.name!r}: threadgroup memory as argument {argument.name!r} is not supported"
                )
            passed.append(f"{argument.type} {_buffer(code, argument, buffers)}")
            buffers += 1
        else:
            passed.append(f"{argument.type} {_attribute(code, program, argument, layout)}")
    code.line(f"call void @{_quoted(program.name)}({', '.join(passed)})")
    return code.returns().replace("define internal", "define", 1).replace(" alwaysinline", "", 1)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.$-]+", name) else f'"{name}"'


def _buffer(code: Assembly, argument: Argument, number: int) -> str:
    pointer = code.value(f"load ptr, ptr {code.field('%a0', 8 * number)}")
    return pointer if argument.type == "ptr" else code.value(f"addrspacecast ptr {pointer} to {argument.type}")


def _attribute(code: Assembly, program: Program, argument: Argument, layout: Layout) -> str:
    type_, kind = parse(argument.type), argument.kind
    if kind == "threads_per_simdgroup":
        return "32"
    quad = {"thread_index_in_quadgroup": ("thread_index_in_simdgroup", "and", 3)}
    quad["quadgroup_index_in_threadgroup"] = ("thread_index_in_threadgroup", "lshr", 2)
    field, operation, operand = quad.get(kind, (kind, "", 0))
    if type_ is None or type_.floating or field not in layout.position:
        raise MetallibError(f"kernel {program.name!r}: an argument of kind {kind!r} ({argument.type}) is not supported")
    values = []
    for i in range(type_.lanes):
        value = code.value(f"load i32, ptr {code.field('%a1', layout.position[field] + 4 * i)}")
        if operation:
            value = code.value(f"{operation} i32 {value}, {operand}")
        values.append(value if type_.element == "i32" else code.value(f"trunc i32 {value} to {type_.element}"))
    if type_.lanes == 1:
        return values[0]
    out = "poison"
    for i, value in enumerate(values):
        out = code.value(f"insertelement {type_} {out}, {type_.element} {value}, i32 {i}")
    return out


def lower(program: Program, constants: Mapping[str, bool | int | float], layout: Layout, fidelity: Fidelity) -> Lowered:
    """The module for this machine; `constants` has a value for each of the program's. UnknownFunction: as define."""
    if unknown := set(re.findall(r"addrspace\((\d+)\)", program.text)) - _SPACES:
        raise MetallibError(f"kernel {program.name!r}: uses address spaces {sorted(unknown)}, expected 0 to 3")
    declared = {m[2]: (m[1], _parameters(m[3])) for m in _DECLARATION.finditer(program.text)}
    text = _DROPPED.sub("", _DECLARATION.sub("", program.text))
    text = re.sub(
        r"^define [\w ]*?void @(\"?" + re.escape(program.name) + r"\"?\()",
        r"define internal void @\1",
        text,
        flags=re.M,
    )
    text = _fill_constants(text, program, constants)
    text = re.sub(r"^(define [^\n]*) \{$", rf"\1 {FLUSHED} {{", text, flags=re.M)
    threadgroup = _Threadgroup(program)
    text = threadgroup.place(text)
    definitions = {n: air.define(n, *d, layout) for n, d in declared.items() if n.startswith("air.")}
    text, sites = _site_calls(text, frozenset(n for n, d in definitions.items() if d.collective))
    parts = [d.text for d in definitions.values()]
    needs = {"declare ptr @assay_arena()"}.union(*(d.needs for d in definitions.values()))
    dotted = {"llvm.fmuladd.f32": ("float", ["float"] * 3)} if "@llvm.fmuladd.f32(" in "".join(parts) else {}
    for name, (result, _) in {n: d for n, d in (declared | dotted).items() if n.startswith("llvm.fmuladd.")}.items():
        own = name.replace("llvm.", "assay.")
        text = text.replace(f"@{name}(", f"@{own}(")
        parts = [part.replace(f"@{name}(", f"@{own}(") for part in parts]
        code = _fmuladd(own, result, fidelity.contraction == "on")
        parts.append(code.text)
        needs |= code.needs
    parts.append(_entry(program, layout))
    present = {m[1] for m in re.finditer(r"^declare [^\n]*@([\w.]+)\(", text, re.M)}
    needs = {n for n in needs if (m := re.search(r"@([\w.]+)\(", n)) and m[1] not in present}
    whole = untrapped("\n".join([text, *sorted(needs), *parts]))
    return Lowered(
        text=whole if fidelity.flushes else whole.replace(FLUSHED, KEPT),
        threadgroup_bytes=threadgroup.bytes,
        opaque=tuple(sorted(n for n, d in definitions.items() if d.opaque)),
        ordered=tuple(sorted(n for n, d in definitions.items() if d.ordered)),
        sites=tuple(sites),
    )
