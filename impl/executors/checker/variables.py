"""The thread's own variables, and the shadows that tell what of them was written."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mlx_assay.impl.executors.checker.components import VECTOR, Component, Components
from mlx_assay.impl.executors.checker.instructions import Instruction, allocated, size_of
from mlx_assay.impl.executors.checker.places import Places
from mlx_assay.impl.executors.checker.pointers import OUTSIDE, OWN, Pointers

Pieces = list[tuple[int, int]]


@dataclass(frozen=True)
class Object:
    """A variable of the thread, or a constant of the program."""

    name: str
    type: str
    bytes: str
    private: bool


class Variables:
    """Which variables are followed, and the text that follows them."""

    def __init__(self, body: list[Instruction], pointers: Pointers, places: Places) -> None:
        self.types = pointers.variables
        self.objects: list[Object] = []
        self._numbers: dict[str, int] = {}
        self._pointers = pointers
        self._declared = {i.result: int(i.value) for i in body if i.kind == "declare"}
        self._places = places
        self._begun = {i.result for i in body if i.kind == "begin"}
        self._made = {i.result: i for i in body if i.result and i.kind in ("other", "load", "call")}
        self._uses: dict[str, list[Instruction]] = {}
        for i in body:
            for name in i.names:
                if name != i.result:
                    self._uses.setdefault(name, []).append(i)
        self.components = Components(self._made, self._uses)
        self._holders = self._find_holders(body)
        self._shadowed = self._find_shadowed(body)
        self._tracked = self._find_tracked(body)

    # Which pointers have a shadow pointer -------------------------------------------------------------------------

    def _find_holders(self, body: list[Instruction]) -> set[str]:
        """Variables that are one pointer and are only loaded and stored whole: they get a shadow that points too."""
        holders = {name for name, type_ in self.types.items() if type_ == "ptr"}
        for i in body:
            if i.kind in ("declare", "begin", "alloca", "note"):
                continue
            for name in i.names:
                if name in holders and not (
                    i.kind in ("load", "store") and i.type == "ptr" and i.pointers[0] == name and i.value != name
                ):
                    holders.discard(name)
        return holders

    def _find_shadowed(self, body: list[Instruction]) -> set[str]:
        """Values that lead to one variable, step by step from it."""
        found = set(self.types)
        grown = True
        while grown:
            grown = False
            for i in body:
                if i.result and i.result not in found and self._follows(i, found):
                    found.add(i.result)
                    grown = True
        return found

    def _follows(self, i: Instruction, found: set[str]) -> bool:
        root = self._pointers.only(i.result)
        if root not in self.types or root in self._pointers.escaped:
            return False
        if i.kind == "load":
            return i.type == "ptr" and i.pointers[0] in self._holders
        return i.kind in ("gep", "phi", "select") and all(p in found or p == i.result for p in i.pointers)

    def _find_tracked(self, body: list[Instruction]) -> set[str]:
        author = {n for n, d in self._declared.items() if n in self.types and self._places.local(d)}
        tracked = author - self._pointers.escaped - {n for n in author if self.types[n] == "ptr"}
        for i in body:
            if i.kind in ("load", "store", "set", "copy", "update"):
                for pointer in i.pointers:
                    roots = self._pointers.roots(pointer)
                    if len(roots) > 1 or pointer not in self._shadowed or i.kind == "update":
                        tracked -= roots
        return tracked

    def tracked(self, root: str) -> bool:
        """Whether a variable has a shadow that tells what was written."""
        return root in self._tracked

    def shadow(self, pointer: str) -> str:
        """The name of the shadow of a pointer, or ""."""
        if pointer in self._shadowed and self._pointers.only(pointer) in self._tracked:
            return f'%"{pointer[1:].strip(chr(34))}.assay"'
        return ""

    def _holder_shadow(self, name: str) -> str:
        return f'%"{name[1:].strip(chr(34))}.assay.at"'

    # Text ------------------------------------------------------------------------------------------------------------

    def allocate(self, i: Instruction) -> Iterator[str]:
        """Beside a variable, its shadow."""
        if i.result in self._tracked:
            yield f"  {self.shadow(i.result)} = alloca {i.type}, align 16"
            if i.result not in self._begun:
                yield from self._clear(i.result, "")
        if i.result in self._holders:
            yield f"  {self._holder_shadow(i.result)} = alloca ptr, align 8"

    def _clear(self, name: str, tail: str) -> Iterator[str]:
        size = allocated(self.types[name])
        yield f"  call void @llvm.memset.p0.i64(ptr {self.shadow(name)}, i8 0, i64 {size}, i1 false){tail}"
        yield f"  call void @llvm.memset.p0.i64(ptr {name}, i8 %assay.poison.byte, i64 {size}, i1 false){tail}"

    def begin(self, i: Instruction) -> Iterator[str]:
        """At the begin of a variable's life nothing of it is written."""
        if i.result in self._tracked:
            yield from self._clear(i.result, i.tail)

    def parallel(self, i: Instruction, line: str) -> Iterator[str]:
        """The same step from shadow to shadow."""
        if not (shadow := self.shadow(i.result)):
            return
        line = line.replace(f"{i.result} =", f"{shadow} =", 1)
        head, mark, rest = line.partition(" = ")
        for pointer in dict.fromkeys(i.pointers):
            rest = re.sub(
                rf"(?<![\w.$-]){re.escape(pointer)}(?![\w.$-])", self.shadow(pointer).replace("\\", r"\\"), rest
            )
        yield head + mark + rest

    def load_shadow(self, i: Instruction) -> Iterator[str]:
        """With a pointer, its shadow is loaded."""
        if i.type == "ptr" and i.pointers[0] in self._holders and (shadow := self.shadow(i.result)):
            yield f"  {shadow} = load ptr, ptr {self._holder_shadow(i.pointers[0])}, align 8{i.tail}"

    def store_shadow(self, i: Instruction) -> Iterator[str]:
        """With a pointer, its shadow is stored."""
        if i.type == "ptr" and i.pointers[0] in self._holders and (shadow := self.shadow(i.value)):
            yield f"  store ptr {shadow}, ptr {self._holder_shadow(i.pointers[0])}, align 8{i.tail}"

    def copy_shadow(self, i: Instruction) -> Iterator[str]:
        """A copied variable is as written as its source."""
        to, source = (self.shadow(p) for p in i.pointers)
        if to and source:
            yield f"  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {i.value}, i1 false){i.tail}"
        elif to:
            yield f"  call void @llvm.memset.p0.i64(ptr {to}, i8 -1, i64 {i.value}, i1 false){i.tail}"

    # What is read and written --------------------------------------------------------------------------------------

    def read_bytes(self, i: Instruction) -> Pieces:
        """The bytes of a load whose value matters: of a vector only the elements that are used."""
        vector = VECTOR.fullmatch(i.type)
        if vector is not None and not self._uses.get(i.result):
            return []
        return _pieces(i, self.components.read(i))

    def written_bytes(self, i: Instruction) -> Pieces:
        """The bytes that a store changes: of a vector that was loaded, changed in parts and stored, those parts."""
        return _pieces(i, self.components.written(i))

    def bounded(self, i: Instruction, pointer: str, root: str, size: str) -> bool:
        """Whether an access of a variable can lie outside of it."""
        return pointer != root and root not in (OWN, OUTSIDE) and "[" in self.types[root] + self._parts(root)

    def _parts(self, root: str) -> str:
        return "[" if self.types[root].startswith("%") else ""

    def add(self, object_: Object, key: str) -> int:
        """The number of an object in findings."""
        if key not in self._numbers:
            self._numbers[key] = len(self.objects)
            self.objects.append(object_)
        return self._numbers[key]

    def number(self, root: str) -> int:
        """The number of a variable in findings."""
        declared = self._declared.get(root)
        name = self._places.name(declared) if declared is not None else root[1:]
        type_ = self.types[root]
        return self.add(Object(name, type_, allocated(type_), True), root)


def _pieces(i: Instruction, components: list[Component] | None) -> Pieces:
    size, vector = size_of(i.type), VECTOR.fullmatch(i.type)
    if vector is None:
        return [(0, size)] if size else []
    if components is None or not all(number.isdigit() for _, number in components):
        components = [("i64", str(number)) for number in range(int(vector[1]))]
    each = size_of(vector[2]) or 1
    return [(int(number) * each, each) for _, number in sorted(components)]
