"""Vectors in the kernel's arrays of which an instruction of the author's reads or writes components alone.

clang loads and stores the whole vector for a component: `p[i].x = v` is a load, an insertion and a store. Another
thread may write another component meanwhile, and nobody need have written the others before.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from mlx_assay.impl.executors.checker.definitions import READ, WRITE
from mlx_assay.impl.executors.checker.instructions import Instruction, size_of

VECTOR = re.compile(r"<(\d+) x (.+)>")
_INSERT = re.compile(r"= insertelement <\d+ x [^>]+> (\S+), .*, (i(?:32|64)) (\d+|%[-\w$.]+)(?:,|$)")
_EXTRACT = re.compile(r"= extractelement <\d+ x [^>]+> (\S+), (i(?:32|64)) (\d+|%[-\w$.]+)(?:,|$)")
_SHUFFLE = re.compile(
    r"= shufflevector <(\d+) x [^>]+> (\S+), <\d+ x [^>]+> (<[^>]*>|\S+), "
    r"<\d+ x i32> (?:<([^>]*)>|(zeroinitializer|poison))"
)

Component = tuple[str, str]  # type and number, or the name of what holds it


class Components:
    """Which components a load or a store is about."""

    def __init__(self, made: Mapping[str, Instruction], uses: Mapping[str, list[Instruction]]) -> None:
        self._made = made
        self._uses = uses

    def picked(self, i: Instruction) -> str:
        """What takes one component, whose number it computes, of a loaded vector, and is all that uses it; or ""."""
        uses = self._uses.get(i.result, ())
        if len(uses) != 1 or VECTOR.fullmatch(i.type) is None or " volatile " in i.line:
            return ""
        m = _EXTRACT.search(uses[0].line)
        return uses[0].result if m and not m[3].isdigit() else ""

    def read(self, i: Instruction) -> list[Component] | None:
        """The components of a loaded vector that are used; None: all, or nobody can tell."""
        vector, uses = VECTOR.fullmatch(i.type), self._uses.get(i.result, ())
        if vector is None or not uses or " volatile " in i.line:
            return None
        found: dict[Component, None] = {}
        for use in uses:
            used = self._used(i, use, int(vector[1]))
            if used is None:
                return None
            found |= dict.fromkeys(used)
        return None if len(found) >= int(vector[1]) else list(found)

    def _used(self, i: Instruction, use: Instruction, count: int) -> list[Component] | None:
        if m := _EXTRACT.search(use.line):
            if m[3].isdigit():
                return [("i64", m[3])] if int(m[3]) < count else []
            return None
        stores = self._uses.get(use.result, ())
        if len(stores) == 1 and stores[0].kind == "store" and stores[0].pointers == i.pointers:
            changed = _INSERT.search(use.line) or _SHUFFLE.search(use.line)
            if changed and self.written(stores[0]) is not None:
                return []
        if m := _SHUFFLE.search(use.line):
            mask = [0] if m[5] == "zeroinitializer" else _mask(m[4])
            shift = 0 if m[2] == i.result else int(m[1])
            return [("i64", str(n - shift)) for n in mask if n is not None and shift <= n < shift + count]
        return None

    def written(self, i: Instruction) -> list[Component] | None:
        """The components that a store of a vector changes; None: all, or nobody can tell."""
        made = self._made.get(i.value)
        if made is None or VECTOR.fullmatch(i.type) is None or " volatile " in i.line:
            return None
        if (m := _INSERT.search(made.line)) and self._came_from(m[1], i):
            return [("i64" if m[3].isdigit() else m[2], m[3])]
        if (m := _SHUFFLE.search(made.line)) and m[4] and self._came_from(m[2], i):
            mask = _mask(m[4])
            kept = all(n is None or n >= int(m[1]) or n == k for k, n in enumerate(mask))
            return [("i64", str(k)) for k, n in enumerate(mask) if n is not None and n >= int(m[1])] if kept else None
        return None

    def _came_from(self, value: str, store: Instruction) -> bool:
        made = self._made.get(value)
        return made is not None and made.kind == "load" and made.pointers == store.pointers


def _mask(text: str | None) -> list[int | None]:
    return [int(n.split()[1]) if n.split()[-1].isdigit() else None for n in (text or "").split(",") if n.strip()]


class Asking(Protocol):
    """Lines that ask for an access, and the pointer to use then."""

    def __call__(self, i: Instruction, pointer: str, size: str, how: int, align: int, /) -> tuple[list[str], str]: ...


def _located(component: Component, i: Instruction, name: str, tail: str) -> tuple[list[str], str, str]:
    """Lines, the number of a component, which lies in the vector, and a pointer to it."""
    count, element = i.type[1:-1].split(" x ")
    type_, number = component
    lines = []
    if not number.isdigit():
        widened = f"zext {type_} {number} to i64" if type_ != "i64" else f"add i64 {number}, 0"
        lines.append(f"  {name}.wide = {widened}{tail}")
        lines.append(f"  {name}.number = urem i64 {name}.wide, {count}{tail}")
        number = f"{name}.number"
    lines.append(f"  {name}.off = mul i64 {number}, {size_of(element)}{tail}")
    lines.append(f"  {name}.at = getelementptr i8, ptr {i.pointers[0]}, i64 {name}.off{tail}")
    return lines, number, f"{name}.at"


def _alignment(i: Instruction, number: str, size: int) -> int:
    """What the address of a component has to be a multiple of, where the vector's has to be one of `i.align`."""
    offset = int(number) * size if number.isdigit() else size
    return min(i.align, offset & -offset) if offset else i.align


def apart(
    i: Instruction, components: list[Component], how: int, access: Asking, names: Callable[[], str]
) -> Iterator[str]:
    """A load or a store of some components of a vector, each by itself."""
    element, whole = i.type[1:-1].split(" x ")[1], "zeroinitializer"
    size, tail = size_of(element) or 1, i.tail
    if how == READ and not components:
        yield f"  {i.result} = freeze {i.type} {whole}{tail}"
    for n, component in enumerate(components, 1):
        lines, number, at = _located(component, i, names(), tail)
        asked, pointer = access(i, at, str(size), how, _alignment(i, number, size))
        yield from lines + asked
        part = names()
        if how == WRITE:
            yield f"  {part} = extractelement {i.type} {i.value}, i64 {number}{tail}"
            yield f"  store {element} {part}, ptr {pointer}, align {size}{tail}"
            continue
        made = i.result if n == len(components) else names()
        yield f"  {part} = load {element}, ptr {pointer}, align {size}{tail}"
        yield f"  {made} = insertelement {i.type} {whole}, {element} {part}, i64 {number}{tail}"
        whole = made


def alone(load: Instruction, use: Instruction, access: Asking, names: Callable[[], str]) -> Iterator[str]:
    """A load of a vector of which one component is used, where the number of that is known."""
    m = _EXTRACT.search(use.line)
    assert m is not None
    element = load.type[1:-1].split(" x ")[1]
    size, tail = size_of(element) or 1, load.tail
    lines, _, at = _located((m[2], m[3]), load, names(), tail)
    asked, pointer = access(load, at, str(size), READ, size)
    yield from lines + asked
    yield f"  {use.result} = load {element}, ptr {pointer}, align {size}{tail}"
