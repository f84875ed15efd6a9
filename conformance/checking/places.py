"""From places in a kernel's text to places in files: the line, and what in it is meant."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import FrameType

from mlx_assay.conformance.checking import sources
from mlx_assay.conformance.checking.origin import Line
from mlx_assay.conformance.checking.report import Location
from mlx_assay.impl.executors.checker.finding import Place
from mlx_assay.impl.executors.signature import Definition

LONGEST_LINE = 500
_DECLARED = re.compile(r"\b(?!return\b|else\b|case\b)[A-Za-z_]\w*[\s*&]+$")
_ASSIGNED = re.compile(r"\s*(?:(?:[-+*/%|&^]|<<|>>)?=(?!=)|\+\+|--)")
_STORED = re.compile(r"\s*=(?!=)")
_FOLDER = os.getcwd()
_OURS = tuple(
    os.path.join(str(Path(__file__).parents[2]), *parts) + os.sep
    for parts in (("impl", "executors"), ("conformance", "checking"))
)


def start_from(folder: str) -> None:
    """Files are named from a folder: that where the check was started, where this process was started in another."""
    global _FOLDER
    _FOLDER = folder


def shown(path: str) -> str:
    """A file's name as a report has it: relative to where the check was started if it lies there, else absolute."""
    path = os.path.abspath(path)
    inside = path.startswith(_FOLDER.rstrip(os.sep) + os.sep)
    return os.path.relpath(path, _FOLDER) if inside else path


def ours(file: str) -> bool:
    """Whether a frame's file is of this suite's machinery, or of Python's import system."""
    return file.startswith((*_OURS, "<frozen"))


def frames() -> Iterator[FrameType]:
    """The stack without this suite's own machinery, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not ours(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def stack() -> dict[str, list[int]]:
    """The lines of the stack by file, without this suite's own machinery and without code of no file."""
    found: dict[str, list[int]] = {}
    for frame in frames():
        if not frame.f_code.co_filename.startswith("<"):
            found.setdefault(frame.f_code.co_filename, []).append(frame.f_lineno)
    return found


def site() -> Location | None:
    """The line of Python that is calling a kernel."""
    for frame in frames():
        return python_line(frame.f_code.co_filename, frame.f_lineno)
    return None


@lru_cache(maxsize=10_000)
def python_line(file: str, number: int) -> Location:
    """A line of a Python file, all of it meant."""
    text = linecache.getline(file, number).rstrip("\n")[:LONGEST_LINE]
    begin, end = _whole(text)
    name = shown(file) if os.path.isfile(file) else file
    return Location(file=name, line=number, column=begin + 1, end_column=end + 1, text=text)


class Texts:
    """A kernel's source and header, and where their lines stand in files; looked up when first asked for."""

    def __init__(self, definition: Definition, first: Mapping[str, Sequence[int]]) -> None:
        self._texts = {"source": definition.source, "header": definition.header}
        self._first = first
        self._lines: dict[str, list[Line | None]] = {}

    def begin(self) -> Location | None:
        """The first line of the source that stands in a file."""
        for index, line in enumerate(self._of("source")):
            if line is not None:
                return self._in_file(line, Place("source", index + 1), "", "")
        return None

    def location(self, place: Place, array: str = "", how: str = "") -> Location:
        """Where a place is; `array` is what is accessed there, and `how`."""
        lines = self._of(place.file)
        line = lines[place.line - 1] if 0 < place.line <= len(lines) else None
        if line is not None:
            return self._in_file(line, place, array, how)
        own = self._texts.get(place.file, "").split("\n")
        text = own[place.line - 1] if 0 < place.line <= len(own) and own[place.line - 1].strip() else place.text
        text = text[:LONGEST_LINE]
        begin, end = meant(text, place.text, array, how)
        return Location(
            column=begin + 1, end_column=end + 1, text=text, part=place.file[:LONGEST_LINE], kernel_line=place.line
        )

    def _in_file(self, line: Line, place: Place, array: str, how: str) -> Location:
        text = line.text[:LONGEST_LINE]
        begin, end = meant(text, place.text, array, how)
        return Location(
            file=shown(str(line.path)),
            line=line.number,
            column=begin + 1,
            end_column=end + 1,
            text=text,
            part=place.file,
            kernel_line=place.line,
        )

    def _of(self, part: str) -> list[Line | None]:
        if part not in self._texts:
            return []
        if part not in self._lines:
            self._lines[part] = sources.find(self._texts[part], self._first)
        return self._lines[part]


def meant(text: str, statement: str, array: str, how: str) -> tuple[int, int]:
    """Begin and end, from 0, of what a reader should look at in a line: the access where it can be told, else all.

    `statement` is the line of the kernel, which may be a part of the file's line.
    """
    statement, at = _written(text, statement.strip())
    begin, end = (at, at + len(statement)) if at >= 0 else _whole(text)
    found = _accesses(text[begin:end], array, how) if array else []
    if len(found) == 1:
        return begin + found[0][0], begin + found[0][1]
    return begin, end


def _written(text: str, statement: str) -> tuple[str, int]:
    """A statement as it is written in a line, and where; a literal's quotes may be escaped, its braces doubled."""
    escaped = re.sub(r"([\"'\\])", r"\\\1", statement)
    for one in (statement, escaped, statement.replace("{", "{{").replace("}", "}}")):
        if one and (at := text.find(one)) >= 0:
            return one, at
    return statement, -1


def _accesses(code: str, array: str, how: str) -> list[tuple[int, int]]:
    """Begin and end of the one place where an array is accessed so; none, or several, where it cannot be told."""
    found = []
    for match in re.finditer(rf"(?<![\w.]){re.escape(array)}(?!\w)", code):
        if not _DECLARED.search(code[: match.start()]):
            found.append((match.start(), _closed(code, match.end())))
    written = [span for span in found if _ASSIGNED.match(code, span[1])]
    if "write" in how:
        # What is given to an atomic function, or by a pointer, is not assigned to.
        return written[:1] or found
    if how == "read":
        return [span for span in found if not _STORED.match(code, span[1])][-1:]
    return found


def _whole(text: str) -> tuple[int, int]:
    """Begin and end of a line without blanks around it and without a comment at its end."""
    code = text.split("//")[0].rstrip() or text.rstrip()
    return len(code) - len(code.lstrip()), len(code)


def _closed(text: str, at: int) -> int:
    """Where the subscripts that begin at `at` end."""
    while at < len(text) and text[at] == "[":
        depth = 0
        for index in range(at, len(text)):
            depth += (text[index] == "[") - (text[index] == "]")
            if not depth:
                at = index + 1
                break
        else:
            return len(text)
    return at
