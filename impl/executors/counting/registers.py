"""How many 32-bit registers a thread needs at its widest point, from the liveness of the values in its LLVM IR."""

import re
from collections.abc import Iterable

from mlx_assay.impl.executors.checker.instructions import size_of

_DEFINED = re.compile(r"^\s*(%(?:[-\w$.]+|\"[^\"]*\")) = (.*)$")
_NAMES = re.compile(r"%(?:[-\w$.]+|\"[^\"]*\")")
_LABEL = re.compile(r"((?:[-\w$.]+|\"[^\"]*\")):")
_TARGET = re.compile(r"\blabel (%(?:[-\w$.]+|\"[^\"]*\"))")
_PHI = re.compile(r"\[ ([^,\]]+), (%(?:[-\w$.]+|\"[^\"]*\")) \]")
_TYPE = r"(?:<\d+ x [^>]+>|\[\d+ x [^\]]+\]|\{[^}]*\}|ptr|i\d+|half|bfloat|float|double)"
_TO = re.compile(rf" to ({_TYPE})")
_FIRST = re.compile(rf"\b({_TYPE})(?= |,|$)|({_TYPE})")
_NO_REGISTER = ("alloca ", "icmp ", "fcmp ")


def _words(definition: str) -> int:
    """The registers of a value; a truth value has none of its own."""
    if definition.startswith(_NO_REGISTER):
        return 0
    operation = definition.split(" ", 1)[0]
    if operation == "getelementptr":
        type_ = "ptr"
    elif operation == "extractelement":
        vector = re.search(r"<\d+ x ([^>]+)>", definition)
        type_ = vector[1] if vector else "i32"
    elif operation == "select":
        found = re.search(rf", ({_TYPE}) ", definition)
        type_ = found[1] if found else "i32"
    elif (to := _TO.search(definition)) is not None and " call " not in f" {definition}":
        type_ = to[1]
    else:
        first = _FIRST.search(definition)
        type_ = (first[1] or first[2]) if first else "i32"
    if type_ == "i1":
        return 0
    return -(-(size_of(type_) or 4) // 4)


class _Block:
    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[tuple[str, set[str]]] = []  # what is defined, and what is used
        self.arriving: dict[str, set[str]] = {}  # by the block before: values of phis
        self.after: list[str] = []
        self.live_in: set[str] = set()

    def add(self, line: str, sizes: dict[str, int]) -> None:
        self.after += _TARGET.findall(line)
        code = line.split(", !")[0]
        defined, rest = ("", code) if (found := _DEFINED.match(code)) is None else (found[1], found[2])
        if defined:
            sizes[defined] = _words(rest)
        if rest.startswith("phi "):
            for value, before in _PHI.findall(rest):
                self.arriving.setdefault(before, set()).update(_NAMES.findall(value))
            self.lines.append((defined, set()))
            return
        labels = set(_TARGET.findall(code))
        self.lines.append((defined, set(_NAMES.findall(rest)) - labels))


def _blocks(lines: Iterable[str], sizes: dict[str, int]) -> list[_Block]:
    blocks = [_Block("%")]
    for line in lines:
        if (label := _LABEL.match(line)) is not None:
            blocks.append(_Block(f"%{label[1]}"))
        elif line.strip() and not line.lstrip().startswith(("#", ";")):
            blocks[-1].add(line, sizes)
    return [block for block in blocks if block.lines]


def _live_after(block: _Block, known: dict[str, _Block]) -> set[str]:
    live: set[str] = set()
    for name in block.after:
        if (next_ := known.get(name)) is not None:
            live |= next_.live_in | next_.arriving.get(block.name, set())
    return live


def registers(lines: Iterable[str]) -> int:
    """The most 32-bit words of values that are live at once in a function's body."""
    sizes: dict[str, int] = {}
    blocks = _blocks(lines, sizes)
    known = {block.name: block for block in blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            live = _live_after(block, known)
            for defined, used in reversed(block.lines):
                live = (live - {defined}) | used
            if live != block.live_in:
                block.live_in, changed = live, True
    return max((_widest(block, known, sizes) for block in blocks), default=0)


def _widest(block: _Block, known: dict[str, _Block], sizes: dict[str, int]) -> int:
    live = _live_after(block, known)
    most = 0
    for defined, used in reversed(block.lines):
        most = max(most, sum(sizes.get(name, 0) for name in live))
        live = (live - {defined}) | used
    return max(most, sum(sizes.get(name, 0) for name in live))
