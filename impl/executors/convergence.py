"""Which lanes are at one call: in the same place, called by the same way, in the same turn of every loop around it.

A line is not enough: a function is called from several places, and a loop comes by again. In the IR of a thread into
which everything is inlined each call of a barrier or an operation of the simdgroup is given a key of 64 bits, from its
place in the text and from the turns of the loops around it. Keys are equal for lanes at one call, and of two of them
the one that comes first in the text is the lower, an earlier turn before a later one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_CALL = re.compile(
    r"(?P<call>\bcall [^@\n]*)@assay_(?P<name>simdgroup|flagged_barrier|flagged_simdgroup_barrier)"
    r"(?P<given>\((?:[^()]|\([^()]*\))*)\)"
)
_LABEL = re.compile(r"((?:[-\w$.]+|\"[^\"]*\")):")
_TARGET = re.compile(r"\blabel %((?:[-\w$.]+|\"[^\"]*\"))")
_THREAD = re.compile(r"^define [^\n]*@assay_thread\([^\n]*\{\n", re.M)
_LEVELS = 3

DECLARATIONS = """
declare void @assay_simdgroup_at(i32, ptr, i64)
declare void @assay_flagged_barrier_at(i32, i32, i64)
declare void @assay_flagged_simdgroup_barrier_at(i32, i32, i64)
"""


@dataclass
class _Block:
    name: str
    lines: list[str]
    after: list[int] = field(default_factory=list)

    def calls(self, call: re.Pattern[str]) -> bool:
        return any("@assay_" in line and call.search(line) for line in self.lines)

    def end(self) -> int:
        """The index of the line that leaves the block."""
        return next((k for k, line in enumerate(self.lines) if "label %" in line), len(self.lines) - 1)


@dataclass
class _Loop:
    header: int
    blocks: set[int]
    inner: list["_Loop"] = field(default_factory=list)
    number: int = 0


def _blocks(lines: Iterable[str]) -> list[_Block]:
    blocks = [_Block("", [])]
    for line in lines:
        if (label := _LABEL.match(line)) is not None:
            blocks.append(_Block(label[1], []))
        blocks[-1].lines.append(line)
    if not blocks[0].lines:
        blocks.pop(0)
    numbers = {block.name: number for number, block in enumerate(blocks)}
    for block in blocks:
        block.after = sorted({numbers[name] for line in block.lines for name in _TARGET.findall(line)})
    return blocks


def _circles(nodes: set[int], after: dict[int, list[int]]) -> list[set[int]]:
    """Sets of blocks that lead to each other, without those that lead nowhere back (Tarjan, 1972)."""
    found: list[set[int]] = []
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    held: set[int] = set()
    for root in sorted(nodes):
        work = [] if root in index else [(root, iter(after[root]))]
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                held.add(node)
            step = next((n for n in rest if n not in index or n in held), None)
            if step is not None and step not in index:
                work.append((step, iter(after[step])))
            elif step is not None:
                low[node] = min(low[node], index[step])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    circle = set(stack[stack.index(node) :])
                    del stack[stack.index(node) :]
                    held -= circle
                    if len(circle) > 1 or node in after[node]:
                        found.append(circle)
    return found


def _loops(blocks: list[_Block], nodes: set[int], after: dict[int, list[int]], calls: set[int]) -> list[_Loop]:
    """The loops among `nodes` that hold a call, each with those within it."""
    loops = []
    for circle in _circles(nodes, after):
        if not circle & calls:
            continue
        entered = {n for k in nodes - circle for n in after[k] if n in circle}
        loop = _Loop(min(entered or circle), circle)
        within = {k: [n for n in after[k] if n in circle and n != loop.header] for k in circle}
        loop.inner = _loops(blocks, circle, within, calls)
        loops.append(loop)
    return loops


class _Keys:
    """The keys of a function's calls. `counter`: how the names of what counts turns begin."""

    def __init__(self, blocks: list[_Block], call: re.Pattern[str], counter: str) -> None:
        self.blocks = blocks
        self.counter = counter
        self.calls = {k for k, block in enumerate(blocks) if block.calls(call)}
        self.numbered: list[_Loop] = []
        everything = set(range(len(blocks)))
        self.way: dict[int, list[_Loop]] = {k: [] for k in self.calls}
        loops = _loops(blocks, everything, {k: block.after for k, block in enumerate(blocks)}, self.calls)
        self._number(loops)
        self.levels = max((min(len(way), _LEVELS) for way in self.way.values()), default=0)
        self.places: dict[tuple[int, int], list[int]] = {}
        counts = [0] * (_LEVELS + 1)
        within: dict[tuple[int, ...], dict[tuple[int, int], int]] = {}
        for k in sorted(self.calls):
            for at, line in enumerate(blocks[k].lines):
                if call.search(line):
                    self.places[k, at] = self._place(k, at, within, counts)
        self.bits = [(count - 1).bit_length() if count else 0 for count in counts]
        self.turn_bits = (64 - sum(self.bits)) // self.levels if self.levels else 0

    def _number(self, loops: list[_Loop]) -> None:
        for loop in loops:
            loop.number = len(self.numbered)
            self.numbered.append(loop)
            for k in loop.blocks & self.calls:
                self.way[k].append(loop)
            self._number(loop.inner)

    def _place(
        self, k: int, at: int, within: dict[tuple[int, ...], dict[tuple[int, int], int]], counts: list[int]
    ) -> list[int]:
        """The number of each loop of the way, and of the call, among what lies in the loop around it."""
        way = self.way[k]
        steps = [(loop.header, -1 - loop.number) for loop in way[:_LEVELS]] + [(k, at)]
        numbers: list[int] = []
        around: tuple[int, ...] = ()
        for level, step in enumerate(steps):
            known = within.setdefault(around, {})
            numbers.append(known.setdefault(step, len(known)))
            counts[level] = max(counts[level], len(known))
            around = (*around, step[0], step[1])
        return numbers

    def value(self, k: int, at: int, name: str) -> tuple[list[str], str]:
        """Lines that compute the key of a call, and its value."""
        numbers, way = self.places[k, at], self.way[k]
        fixed, shift, lines, total = 0, 64, [], ""
        for level in range(self.levels + 1):
            shift -= self.bits[level]
            if level < len(numbers):
                fixed |= numbers[level] << shift
            if level == self.levels:
                break
            shift -= self.turn_bits
            if level < len(way) and level < _LEVELS:
                turns = way[level:] if level == _LEVELS - 1 else way[level : level + 1]
                made, turn = self._turn(turns, f"{name}.{level}")
                lines += made
                lines.append(f"  {name}.{level}.low = and i64 {turn}, {(1 << self.turn_bits) - 1}")
                lines.append(f"  {name}.{level}.high = shl i64 {name}.{level}.low, {shift}")
                lines.append(f"  {name}.{level}.all = or i64 {total or 0}, {name}.{level}.high")
                total = f"{name}.{level}.all"
        fixed -= (fixed >> 63) << 64
        if not total:
            return [], str(fixed)
        lines.append(f"  {name} = or i64 {total}, {fixed}")
        return lines, name

    def _turn(self, turns: list[_Loop], name: str) -> tuple[list[str], str]:
        """The turn of a loop; of loops that share what is left of the key, the sum of their turns, spread."""
        lines, turn = [], "0"
        for n, loop in enumerate(turns):
            lines.append(f"  {name}.{n} = load i64, ptr {self.counter}.{loop.number}")
            lines.append(f"  {name}.{n}.spread = mul i64 {turn}, 2654435761")
            lines.append(f"  {name}.{n}.sum = add i64 {name}.{n}.spread, {name}.{n}")
            turn = f"{name}.{n}.sum"
        return lines, turn

    def counted(self) -> None:
        """Writes into the blocks what counts the turns of each loop."""
        for loop in self.numbered:
            counter = f"{self.counter}.{loop.number}"
            for k, block in enumerate(self.blocks):
                if loop.header not in block.after:
                    continue
                if k in loop.blocks:
                    made = [
                        f"  {counter}.{k} = load i64, ptr {counter}",
                        f"  {counter}.{k}.next = add i64 {counter}.{k}, 1",
                    ]
                    made.append(f"  store i64 {counter}.{k}.next, ptr {counter}")
                else:
                    made = [f"  store i64 0, ptr {counter}"]
                end = block.end()
                block.lines[end:end] = made


def _lines(keys: _Keys) -> Iterator[str]:
    entry = keys.blocks[0].lines
    at = 1 if entry and _LABEL.match(entry[0]) else 0
    for k, block in enumerate(keys.blocks):
        for n, line in enumerate(block.lines):
            if k == 0 and n == at:
                yield from (f"  {keys.counter}.{loop.number} = alloca i64" for loop in keys.numbered)
            yield line


def keyed(ir: str) -> str:
    """IR whose calls of collectives in `assay_thread`, into which everything is inlined, have keys."""
    head = _THREAD.search(ir)
    if head is None or not _CALL.search(ir, head.end()):
        return ir
    return with_keys(ir, _CALL, r"\g<call>@assay_\g<name>_at\g<given>, i64 {key})", "%assay.turn") + DECLARATIONS


def with_keys(ir: str, call: re.Pattern[str], replacement: str, counter: str) -> str:
    """IR in which each call in `assay_thread` that `call` finds is replaced; `{key}` in the replacement is its key.

    `counter`: how the names of what counts turns begin.
    """
    head = _THREAD.search(ir)
    if head is None:
        return ir
    end = ir.index("\n}\n", head.end())
    keys = _Keys(_blocks(ir[head.end() : end].split("\n")), call, counter)
    for (k, at), _ in sorted(keys.places.items(), reverse=True):
        made, value = keys.value(k, at, f"{counter}.key.{k}.{at}")
        lines = keys.blocks[k].lines
        lines[at : at + 1] = [*made, call.sub(replacement.replace("{key}", value), lines[at])]
    keys.counted()
    return ir[: head.end()] + "\n".join(_lines(keys)) + ir[end:]
