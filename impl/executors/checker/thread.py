"""The body of `assay_thread`, rewritten: the checker is asked before each access, and shadows follow each variable."""

import re
from collections.abc import Iterator

from mlx_assay.impl.executors.checker.components import alone, apart
from mlx_assay.impl.executors.checker.definitions import ATOMIC, READ, UPDATE, WRITE
from mlx_assay.impl.executors.checker.instructions import Instruction, allocated, read, size_of
from mlx_assay.impl.executors.checker.places import Places
from mlx_assay.impl.executors.checker.pointers import OWN, Pointers
from mlx_assay.impl.executors.checker.variables import Object, Variables

_PROMISES = re.compile(r", !(?:nonnull|align|range|noundef|tbaa|tbaa\.struct|dereferenceable) !\d+")
_GEP_FLAGS = re.compile(r"(= getelementptr )(?:(?:inbounds|nuw|nusw) )+")
_COLLECTIVE = re.compile(
    r"(call .*@assay_(?:simdgroup|barrier|flagged_barrier|flagged_simdgroup_barrier)(?:_at)?\()i32 (?:noundef )?[^,)]+"
)
_LABEL = re.compile(r"([-\w$.]+|\"[^\"]*\"):")
_TARGET = re.compile(r"label (%(?:[-\w$.]+|\"[^\"]*\"))")
_COMPONENT = re.compile(
    r"= (?:extractelement (?P<from><\d+ x [^>]+>) [^,]+|insertelement (?P<into><\d+ x [^>]+>) [^,]+, [^,]+), "
    r"(?P<type>i\d+) (?P<index>%[-\w$.]+)(?=, !|$)"
)


class Thread:
    """The body of `assay_thread`, rewritten."""

    def __init__(self, lines: list[str], parameters: list[str], places: Places, globals_: dict[str, Object]) -> None:
        self.body = [read(_PROMISES.sub("", line)) for line in lines]
        self.places = places
        self.globals = globals_
        self.pointers = Pointers(self.body, parameters)
        self.variables = Variables(self.body, self.pointers, places)
        self.fresh = 0
        self.passed: set[str] = set()
        self.picked: dict[str, Instruction] = {}

    def _name(self) -> str:
        self.fresh += 1
        return f"%assay.{self.fresh}"

    def _site(self, i: Instruction) -> int:
        return self.places.number(i.location)

    def _access(self, i: Instruction, pointer: str, size: str, how: int, align: int) -> tuple[list[str], str]:
        """The lines that ask for an access, and the pointer to use then."""
        root, tail = self.pointers.only(pointer), i.tail
        if root == OWN or (root in self.variables.types and not self.variables.bounded(i, pointer, root, size)):
            return [], pointer
        name = self._name()
        if root in self.variables.types or root in self.globals:
            if root == pointer or (root in self.globals and not pointer.startswith("%")):
                return [], pointer
            asked, offset = self._offset(pointer, root, tail)
            object_ = self.variables.number(root) if root in self.variables.types else self._global(root)
            bytes_ = allocated(self.variables.types[root]) if root in self.variables.types else self.globals[root].bytes
            asked.append(
                f"  {name} = call ptr @assay.inside(ptr {pointer}, i64 {offset}, i64 {bytes_}, i32 {size}, "
                f"i32 {how | align << 8}, "
                f"i32 {self._site(i)}, i32 {object_}){tail}"
            )
            return asked, name
        if root.startswith("@"):
            return [], pointer
        if how == READ:
            return [
                f"  {name} = call ptr @assay.read(ptr %assay.check, ptr {pointer}, i32 {size}, i32 {align}, "
                f"i32 {self._site(i)}){tail}"
            ], name
        return [
            f"  {name} = call ptr @assay_access(ptr {pointer}, i32 {size}, i32 {how | align << 8}, "
            f"i32 {self._site(i)}){tail}"
        ], name

    def _global(self, root: str) -> int:
        return self.variables.add(self.globals[root], root)

    def _vector(self, type_: str) -> int:
        return self.variables.add(Object("", type_, "0", True), type_)

    def _offset(self, pointer: str, root: str, tail: str) -> tuple[list[str], str]:
        """Lines that compute how far a pointer lies behind its root, and their result."""
        shadow = self.variables.shadow(pointer)
        base = self.variables.shadow(root)
        at, begin = (shadow, base) if shadow and base else (pointer, root)
        a, b, off = self._name(), self._name(), self._name()
        return [
            f"  {a} = ptrtoint ptr {at} to i64{tail}",
            f"  {b} = ptrtoint ptr {begin} to i64{tail}",
            f"  {off} = sub i64 {a}, {b}{tail}",
        ], off

    def _replace(self, i: Instruction, asked: list[str], old: str, new: str) -> Iterator[str]:
        yield from asked
        yield i.line if old == new else i.line.replace(f"ptr {old}", f"ptr {new}", 1)

    def rewritten(self) -> Iterator[str]:
        """The lines of the function with the checker's calls."""
        entry, *body = self.body
        yield entry.line
        yield "  %assay.sink = alloca [256 x i8], align 16"
        yield "  call void @llvm.memset.p0.i64(ptr %assay.sink, i8 -1, i64 256, i1 false)"
        yield "  %assay.check = call ptr @assay_check()"
        yield "  %assay.poison = call i32 @assay_private_poison()"
        yield "  %assay.poison.byte = trunc i32 %assay.poison to i8"
        for i in body:
            method = getattr(self, f"_{i.kind}", None) if i.kind else None
            yield from method(i) if method else self._other(i)

    def _outside(self, i: Instruction) -> bool:
        root = self.pointers.only(i.pointers[0])
        return root != OWN and root not in self.variables.types and not root.startswith("@")

    def _load(self, i: Instruction) -> Iterator[str]:
        if (outside := self._outside(i)) and (use := self.variables.components.picked(i)):
            self.picked[use] = i
            return
        if outside and (components := self.variables.components.read(i)) is not None:
            yield from apart(i, components, READ, self._access, self._name)
            return
        how = READ | (ATOMIC if i.atomic else 0)
        asked, pointer = self._access(i, i.pointers[0], _bytes(i.type), how, i.align)
        yield from self._replace(i, asked, i.pointers[0], pointer)
        yield from self._known(i, pointer)
        yield from self.variables.load_shadow(i)

    def _within(self, i: Instruction, pointer: str, meant: str = "") -> tuple[list[str], str]:
        """Lines, and the shadow of an access that went to `pointer`: a sink where that is not where it was meant to."""
        meant = meant or i.pointers[0]
        shadow = self.variables.shadow(meant)
        if not shadow or pointer == meant:
            return [], shadow
        same, chosen, tail = self._name(), self._name(), i.tail
        return [
            f"  {same} = icmp eq ptr {pointer}, {meant}{tail}",
            f"  {chosen} = select i1 {same}, ptr {shadow}, ptr %assay.sink{tail}",
        ], chosen

    def _known(self, i: Instruction, pointer: str) -> Iterator[str]:
        root = self.pointers.only(i.pointers[0])
        lines, shadow = self._within(i, pointer)
        if not shadow or not self.variables.tracked(root):
            return
        yield from lines
        tail, pieces = i.tail, self.variables.read_bytes(i)
        for begin, size in pieces:
            at, bits, ok = self._name(), self._name(), self._name()
            yield f"  {at} = getelementptr i8, ptr {shadow}, i64 {begin}{tail}"
            yield f"  {bits} = load i{8 * size}, ptr {at}, align 1{tail}"
            yield f"  {ok} = icmp eq i{8 * size} {bits}, -1{tail}"
            offset = str(begin)
            if i.pointers[0] != root:
                lines, offset = self._offset(i.pointers[0], root, tail)
                yield from lines
            yield (
                f"  call void @assay.known(i1 {ok}, i64 {offset}, i32 {size}, i32 {self._site(i)}, "
                f"i32 {self.variables.number(root)}){tail}"
            )

    def _store(self, i: Instruction) -> Iterator[str]:
        if self._outside(i) and (components := self.variables.components.written(i)) is not None:
            yield from apart(i, components, WRITE, self._access, self._name)
            return
        how = WRITE | (ATOMIC if i.atomic else 0)
        asked, pointer = self._access(i, i.pointers[0], _bytes(i.type), how, i.align)
        yield from asked
        head, mark, rest = i.line.rpartition(f", ptr {i.pointers[0]}")
        yield f"{head}, ptr {pointer}{rest}" if mark else i.line
        lines, shadow = self._within(i, pointer)
        if shadow:
            yield from lines
            for begin, size in self.variables.written_bytes(i):
                at = self._name()
                yield f"  {at} = getelementptr i8, ptr {shadow}, i64 {begin}{i.tail}"
                yield f"  store i{8 * size} -1, ptr {at}, align 1{i.tail}"
        yield from self.variables.store_shadow(i)

    def _update(self, i: Instruction) -> Iterator[str]:
        asked, pointer = self._access(i, i.pointers[0], _bytes(i.type), WRITE | ATOMIC | UPDATE, i.align)
        yield from self._replace(i, asked, i.pointers[0], pointer)

    def _gep(self, i: Instruction) -> Iterator[str]:
        line = _GEP_FLAGS.sub(r"\1", i.line)
        yield line
        yield from self.variables.parallel(i, line)

    def _phi(self, i: Instruction) -> Iterator[str]:
        yield i.line
        yield from self.variables.parallel(i, i.line)

    _select = _phi

    def _alloca(self, i: Instruction) -> Iterator[str]:
        yield i.line
        yield from self.variables.allocate(i)

    def _begin(self, i: Instruction) -> Iterator[str]:
        yield i.line
        yield from self.variables.begin(i)

    def _copy(self, i: Instruction) -> Iterator[str]:
        size, lines = self._narrow(i)
        target, source = i.pointers
        yield from lines
        read_, from_ = self._access(i, source, size, READ, 1)
        write, to = self._access(i, target, size, WRITE, 1)
        yield from read_ + write
        yield from self._copied(i, from_)
        head, _, rest = i.line.partition(f"{target}, ")
        yield f"{head}{to}, {rest.replace(source, from_, 1)}"
        yield from self.variables.copy_shadow(i)

    def _copied(self, i: Instruction, from_: str) -> Iterator[str]:
        """Asks that something was written of what is copied to where nobody follows it: padding need not be."""
        target, source = i.pointers
        root, bits = self.pointers.only(source), self._name()
        if self.variables.shadow(target) or not i.value.isdigit() or not 0 < int(i.value) <= 256:
            return
        lines, shadow = self._within(i, from_, source)
        if shadow and self.variables.tracked(root):
            yield from lines
            ok, tail = self._name(), i.tail
            yield f"  {bits} = load i{8 * int(i.value)}, ptr {shadow}, align 1{tail}"
            yield f"  {ok} = icmp ne i{8 * int(i.value)} {bits}, 0{tail}"
            yield (
                f"  call void @assay.known(i1 {ok}, i64 0, i32 {i.value}, i32 {self._site(i)}, "
                f"i32 {self.variables.number(root)}){tail}"
            )

    def _set(self, i: Instruction) -> Iterator[str]:
        size, lines = self._narrow(i)
        yield from lines
        asked, pointer = self._access(i, i.pointers[0], size, WRITE, 1)
        yield from asked
        yield i.line.replace(f"{i.pointers[0]}, i8", f"{pointer}, i8", 1)
        lines, shadow = self._within(i, pointer)
        if shadow:
            yield from lines
            yield f"  call void @llvm.memset.p0.i64(ptr {shadow}, i8 -1, i64 {i.value}, i1 false){i.tail}"

    def _narrow(self, i: Instruction) -> tuple[str, list[str]]:
        if i.value.isdigit():
            return i.value, []
        name = self._name()
        return name, [f"  {name} = trunc i64 {i.value} to i32{i.tail}"]

    def _call(self, i: Instruction) -> Iterator[str]:
        site = f"i32 {self.places.call(i.location)}"
        if i.value == "@assay_marked_shift":
            yield i.line.replace("@assay_marked_shift(", "@assay.width(").replace("), !dbg", f", {site}), !dbg")
        elif i.value == "@assay_marked_component":
            number, count, size = re.findall(r"i(?:32|64) (\d+)", i.line)[:3]
            object_ = f"i32 {self._vector(f'<{count} x i{8 * int(size)}>')}"
            yield f"  call void @assay.component(i64 {number}, i64 {count}, i32 {size}, {site}, {object_}){i.tail}"
        elif i.value == "@assay_marked_return":
            yield f"  call void @assay_returns({site}){i.tail}"
        else:
            yield _COLLECTIVE.sub(lambda m: f"{m[1]}{site}", i.line)

    def _other(self, i: Instruction) -> Iterator[str]:
        if (match := _COMPONENT.search(i.line)) and self._written_by_author(i):
            yield from self._component(i, match["from"] or match["into"], match["type"], match["index"])
        if (load := self.picked.get(i.result)) is not None:
            yield from alone(load, i, self._access, self._name)
            return
        if (label := _LABEL.match(i.line)) is not None:
            self.passed.add(f"%{label[1]}")
        elif i.line.startswith("  br ") and self._goes_back(i) and self._turns(i):
            yield f"  call void @assay.turn(ptr %assay.check, i32 {self._site(i)}){i.tail}"
        yield i.line

    def _component(self, i: Instruction, type_: str, index_type: str, index: str) -> Iterator[str]:
        count, element = type_[1:-1].split(" x ")
        wide = index
        if index_type != "i64":
            wide = self._name()
            yield f"  {wide} = zext {index_type} {index} to i64{i.tail}"
        object_ = self._vector(type_)
        yield (
            f"  call void @assay.component(i64 {wide}, i64 {count}, i32 {size_of(element)}, i32 {self._site(i)}, "
            f"i32 {object_}){i.tail}"
        )

    def _written_by_author(self, i: Instruction) -> bool:
        return i.location is not None and self.places.own(i.location)

    def _goes_back(self, i: Instruction) -> bool:
        return any(target in self.passed for target in _TARGET.findall(i.line))

    def _turns(self, i: Instruction) -> bool:
        """Whether a loop may go on for ever: the author's, and those of the atomics."""
        return i.location is None or self._written_by_author(i) or "atomics" in self.places.file(i.location)


def _bytes(type_: str) -> str:
    size = size_of(type_)
    return str(size) if size is not None else f"ptrtoint (ptr getelementptr ({type_}, ptr null, i32 1) to i32)"
