"""From the debug metadata of a compiled kernel to places in its author's text."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from mlx_assay.impl.executors import headers
from mlx_assay.impl.executors.checker.finding import Place
from mlx_assay.impl.executors.toolchain import RUNTIME

_NODE = re.compile(r"^!(\d+) = (.*)$", re.M)
_FIELDS = {name: re.compile(rf"\b{name}: !?(\d+)") for name in ("line", "scope", "inlinedAt", "file", "var")}
_NAME = re.compile(r'\bname: "([^"]*)"')
_FILENAME = re.compile(r'\bfilename: "([^"]*)", directory: "([^"]*)"')

# What `translate` calls the parts of a kernel that its author did not write.
_GENERATED = {"signature", "entry"}


def _whole(file: str, directory: str) -> str:
    """A file's path as the kernel's own parts have it: `source`, or that of a header that exists."""
    path = Path(directory) / file
    if path.is_file():
        return str(path)
    # A precompiled header puts the folder in which it was made before the names of its lines.
    _, kernels, name = file.rpartition(f"{headers.KERNELS.as_posix()}/")
    return kernels + name


class Places:
    """The numbered places of one kernel: number 0 is unknown, every other one a line of the author's."""

    def __init__(self, ir: str) -> None:
        self._nodes = {int(number): text for number, text in _NODE.findall(ir)}
        self._files: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._known: dict[tuple[str, int, tuple[int, ...]], int] = {("", 0, ()): 0}

    def _field(self, node: int, name: str) -> int | None:
        found = _FIELDS[name].search(self._nodes.get(node, ""))
        return int(found[1]) if found else None

    def _file(self, scope: int) -> str:
        if scope not in self._files:
            file = self._field(scope, "file")
            named = _FILENAME.search(self._nodes.get(file, "")) if file is not None else None
            self._files[scope] = _whole(named[1], named[2]) if named else ""
        return self._files[scope]

    @staticmethod
    def _own(file: str) -> bool:
        """Whether the author wrote the file, or MLX, and not this executor."""
        return bool(file) and file not in _GENERATED and Path(file).parent.resolve() != RUNTIME.resolve()

    def own(self, location: int) -> bool:
        """Whether a location, not counting where it was inlined, is the author's."""
        scope = self._field(location, "scope")
        return scope is not None and self._own(self._file(scope))

    def file(self, location: int) -> str:
        """The name of a location's file."""
        scope = self._field(location, "scope")
        return self._file(scope) if scope is not None else ""

    def number(self, location: int | None) -> int:
        """The number of the author's line nearest to a location, following where it was inlined."""
        if location is None:
            return 0
        if location not in self._numbers:
            self._numbers[location] = self._find(location, False)
        return self._numbers[location]

    def call(self, location: int | None) -> int:
        """As `number`, but other for each way on which the line is reached: calls of one function are several."""
        return 0 if location is None else self._find(location, True)

    def _find(self, location: int, by_way: bool) -> int:
        at: int | None = location
        while at is not None:
            if self.own(at) and (line := self._field(at, "line")):
                scope = self._field(at, "scope")
                assert scope is not None
                way = tuple(self._way(at)) if by_way else ()
                return self._known.setdefault((self._file(scope), line, way), len(self._known))
            at = self._field(at, "inlinedAt")
        return 0

    def _way(self, location: int) -> Iterator[int]:
        """Where the function of a location was inlined, from the inside; the kernel's own inlining is common to all."""
        at = self._field(location, "inlinedAt")
        while at is not None:
            if (outer := self._field(at, "inlinedAt")) is not None:
                yield at
            at = outer

    def name(self, node: int) -> str:
        """The name in a variable's node, or in the one that a global's expression holds."""
        variable = self._field(node, "var")
        found = _NAME.search(self._nodes.get(node if variable is None else variable, ""))
        return found[1] if found else ""

    def local(self, node: int) -> bool:
        """Whether a variable's node is of a local, not of a parameter, in the author's text."""
        text = self._nodes.get(node, "")
        return " arg: " not in text and self.own(node)

    def table(self) -> list[tuple[str, int]]:
        """File and line of every number so far."""
        return [(file, line) for file, line, _ in self._known]


@cache
def _header(file: str) -> tuple[str, ...]:
    """The lines of a header that a kernel includes, one of MLX's or another; none where it cannot be read."""
    try:
        return tuple((headers.root() / file).read_text(errors="replace").split("\n"))
    except (OSError, ValueError, headers.HeadersMissing):
        return ()


def places(table: Iterable[tuple[str, int]], texts: dict[str, str]) -> list[Place]:
    """The places of a table; `texts` holds what the author gave as "source" and "header"."""
    lines = {"": ()} | {name: tuple(text.split("\n")) for name, text in texts.items()}
    found = []
    for file, line in table:
        own = lines[file] if file in lines else _header(file)
        found.append(Place(file, line, own[line - 1].strip() if 0 < line <= len(own) else ""))
    return found
