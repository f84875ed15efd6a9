"""Counts in the text of a kernel's optimised LLVM IR: how often each block runs, and who touches what at each access.

The IR is that of one thread, into which everything is inlined, after the optimiser and before this processor's code:
an access is what a GPU's compiler would make a load or a store of, and a variable that is left is no register.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from mlx_assay.impl.executors.checker.instructions import Instruction, read, size_of
from mlx_assay.impl.executors.checker.instrumentation import program_objects
from mlx_assay.impl.executors.checker.places import Places
from mlx_assay.impl.executors.checker.pointers import OWN, Pointers
from mlx_assay.impl.executors.convergence import with_keys
from mlx_assay.impl.executors.counting.arithmetic import byte_sums, classify, merged
from mlx_assay.impl.executors.counting.kinds import ATOMICS, READS_ALONE, WRITES_ALONE
from mlx_assay.impl.executors.counting.registers import registers

_THREAD = re.compile(r"^define [^\n]*@assay_thread\(([^\n]*)\)[^\n]*\{$", re.M)
_PARAMETER = re.compile(r"%[-\w$.]+")
_LABEL = re.compile(r"(?:[-\w$.]+|\"[^\"]*\"):")
_ATOMIC = re.compile(
    r"call void @assay_atomic\(i64 (?:noundef )?(\S+), i32 (?:noundef )?(\d+), i32 (?:noundef )?(\d+)\)"
)
_TOUCH = re.compile(r"@assay_touch\((?P<given>[^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*)\)")
_DECLARED = "declare void @assay_touch(ptr, i32, i32, i64) nounwind\ndeclare ptr @assay_blocks() nounwind\n"
# A vector of a GPU's load or store holds 16 bytes at most.
_WIDEST = 16


class AccessSite(msgspec.Struct, frozen=True):
    """An access in the text. `kind`: "read", "write", or an atomic's name."""

    file: str
    line: int
    kind: str
    width: int
    block: int


class Block(msgspec.Struct):
    """What one execution of a block by a thread is. `private`: accesses of the thread's own memory, and their bytes."""

    arithmetic: dict[str, int] = {}
    reads: list[int] = []
    writes: list[int] = []


class Meaning(msgspec.Struct, frozen=True):
    """What the numbers of a counted kernel mean."""

    sites: list[AccessSite]
    blocks: list[Block]
    private_bytes: int
    registers: int
    objects: int


@dataclass(frozen=True)
class Instrumented:
    """Instrumented IR, and what its numbers mean."""

    ir: str
    meaning: Meaning


@dataclass
class _Thread:
    places: Places
    pointers: Pointers
    objects: set[str]
    sites: list[AccessSite] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    together: set[int] = field(default_factory=set)
    bytes: set[int] = field(default_factory=set)

    def lines(self, body: list[Instruction]) -> Iterator[str]:
        """The function's lines with their counts."""
        begun = True
        lines = [i.line for i in body]
        self.bytes, parts = byte_sums(lines)
        self.together = (merged(lines) | parts) - self.bytes
        self.blocks.append(Block({}, [], []))
        first = next((n for n, i in enumerate(body) if i.line.strip()), 0)
        for number, i in enumerate(body):
            label = _LABEL.match(i.line)
            if label and number != first:
                self.blocks.append(Block({}, [], []))
                begun = True
            elif begun and not label and i.line.strip() and " = phi " not in i.line:
                begun = False
                yield from self._entered(len(self.blocks) - 1)
            yield from self._line(i, number)

    def _entered(self, number: int) -> Iterator[str]:
        if number == 0:
            yield "  %assay.blocks = call ptr @assay_blocks()"
        name = f"%assay.ran.{number}"
        yield f"  {name}.at = getelementptr i32, ptr %assay.blocks, i64 {number}"
        yield f"  {name} = load i32, ptr {name}.at, align 4"
        yield f"  {name}.more = add i32 {name}, 1"
        yield f"  store i32 {name}.more, ptr {name}.at, align 4"

    def _line(self, i: Instruction, number: int) -> Iterator[str]:
        block = self.blocks[-1]
        if i.kind in ("load", "store") and not i.atomic:
            yield from self._access(i, i.kind == "store", i.pointers[0], size_of(i.type) or 0)
        elif i.kind in ("copy", "set") and i.value.isdigit():
            yield from self._copied(i, int(i.value))
        elif (atomic := _ATOMIC.search(i.line)) is not None:
            yield from self._atomic(i, atomic)
            return
        elif number in self.bytes:
            block.arithmetic["byte_sum"] = block.arithmetic.get("byte_sum", 0) + 1
        elif number not in self.together and (counted := classify(i.line)) is not None:
            block.arithmetic[counted[0]] = block.arithmetic.get(counted[0], 0) + counted[1]
        yield i.line

    def _copied(self, i: Instruction, size: int) -> Iterator[str]:
        """A copy or a filling is accesses of the widest vectors."""
        for pointer, writes in zip(i.pointers, (True, False), strict=False):
            for at in range(0, size, _WIDEST):
                yield from self._access(i, writes, pointer, min(_WIDEST, size - at), at)

    def _access(self, i: Instruction, writes: bool, pointer: str, size: int, offset: int = 0) -> Iterator[str]:
        root = self.pointers.only(pointer)
        if root in self.pointers.variables:
            side = self.blocks[-1].writes if writes else self.blocks[-1].reads
            side += [size] if size <= _WIDEST else [_WIDEST] * (size // _WIDEST)
            return
        if root == OWN or (root.startswith("@") and root not in self.objects) or not size:
            return
        yield from self._touch(i, "write" if writes else "read", pointer, size, offset)

    def _touch(self, i: Instruction, kind: str, pointer: str, size: int, offset: int = 0) -> Iterator[str]:
        place = self.places.number(i.location)
        file, line = self.places.table()[place]
        number = len(self.sites)
        self.sites.append(AccessSite(file, line, kind, size, len(self.blocks) - 1))
        if offset:
            name = f"%assay.part.{number}"
            yield f"  {name} = getelementptr i8, ptr {pointer}, i64 {offset}{i.tail}"
            pointer = name
        yield f"  call void @assay_touch(ptr {pointer}, i32 {size}, i32 {number}){i.tail}"

    def _atomic(self, i: Instruction, found: re.Match[str]) -> Iterator[str]:
        address, size, kind = found.groups()
        name = f"%assay.part.{len(self.sites)}"
        yield f"  {name} = inttoptr i64 {address} to ptr{i.tail}"
        yield from self._touch(i, ATOMICS[int(kind)], name, int(size))


def sides(kind: str) -> tuple[int, int]:
    """Whether a site writes (0 reads alone, 1 writes alone, 2 both), and whether it is an atomic."""
    if kind in ATOMICS:
        number = ATOMICS.index(kind)
        return (number if number in (READS_ALONE, WRITES_ALONE) else 2), 1
    return int(kind == "write"), 0


def instrument(ir: str) -> Instrumented:
    """IR with its counts. ValueError: there is no `assay_thread`."""
    places = Places(ir)
    head = _THREAD.search(ir)
    if head is None:
        raise ValueError("the translated kernel has no assay_thread to count in")
    end = ir.index("\n}\n", head.end())
    body = [read(line) for line in ir[head.end() + 1 : end].split("\n")]
    objects = {name: o for name, o in program_objects(ir, places).items() if o.bytes.isdigit()}
    pointers = Pointers(body, _PARAMETER.findall(head[1]))
    thread = _Thread(places, pointers, set(objects))
    text = "\n".join(thread.lines(body))
    before, after = (
        re.sub(r"^declare [^\n]*@assay_atomic\([^\n]*$", "", p, flags=re.M) for p in (ir[: head.end() + 1], ir[end:])
    )
    found = with_keys(f"{before}{text}{after}", _TOUCH, r"@assay_touch(\g<given>, i64 {key})", "%assay.visit")
    table = ", ".join(f"{{ ptr, i64 }} {{ ptr {name}, i64 {o.bytes} }}" for name, o in objects.items())
    found += f"\n{_DECLARED}@assay_objects = constant [{len(objects)} x {{ ptr, i64 }}] [{table}]\n"
    private = sum(size_of(type_) or 0 for type_ in pointers.variables.values())
    needed = registers(i.line for i in body)
    return Instrumented(found, Meaning(thread.sites, thread.blocks, private, needed, len(objects)))
