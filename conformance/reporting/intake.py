"""The intake: a report from a file that nobody vouches for, bounded, strict, and with its digest.

A report that says, but for white space, byte for byte what this suite would write of it has no key twice, none that is
unknown, and no depth but that of the structs. Any other is read a second time, slowly, and refused for what a tolerant
reader passes over.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from mlx_assay.conformance.reporting.report import SCHEMA, Report, decode

LARGEST = 256 * 2**20
DEEPEST = 32
LONGEST_NUMBER = 40
EMPTY = hashlib.sha256().hexdigest()
TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class Damaged(ValueError):
    """A file that cannot be relied on; the message says what came and what was expected."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A report, the file that it was read from, and SHA-256 of that file's bytes."""

    file: str
    sha256: str
    report: Report


def take(file: str) -> Taken:
    """Reads a report; Damaged says why it cannot be one."""
    document = read(Path(file), LARGEST)
    return Taken(file=file, sha256=hashlib.sha256(document).hexdigest(), report=parse(document))


def read(path: Path, largest: int) -> bytes:
    """A regular file's bytes, `largest` at most; never a device or pipe, on which a read may not end."""
    with _opened(path) as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise Damaged(f"Expected at most {largest} bytes but there are more")
    if not content or content.isspace():
        raise Damaged("Expected a document but the file is empty")
    return content


def digest(path: Path) -> str:
    """SHA-256 of a regular file of any size that is not empty, in hex; Damaged for any other."""
    with _opened(path) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == EMPTY:
        raise Damaged("Expected content but the file is empty")
    return found


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """A regular file to read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise Damaged("Expected a file but there is none: look at its name") from None
    except (OSError, ValueError) as error:
        raise Damaged(f"Expected a file but it cannot be read ({getattr(error, 'strerror', None) or error})") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Damaged("Expected a regular file but got a folder, device, pipe or socket")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    except OSError as error:
        raise Damaged(f"Expected a file but it cannot be read ({error.strerror})") from None
    finally:
        os.close(descriptor)


def parse(document: bytes) -> Report:
    """A report from its bytes; Damaged says why they are none."""
    try:
        report = decode(document)
        if msgspec.json.format(document, indent=-1) == msgspec.json.encode(report):
            return report
    except RecursionError:
        raise Damaged(f"Expected at most {DEEPEST} levels but it is nested deeper") from None
    except (msgspec.DecodeError, UnicodeError, ValueError) as error:
        raise Damaged(f"Expected a report, {SCHEMA}, but {printed(error)}") from None
    tree, known = strict(document), msgspec.to_builtins(report)
    if unknown := next(_beyond(tree, known, "$"), None):
        raise Damaged(f"Expected no field beyond those of {SCHEMA} but got {printed(unknown)}")
    if absent := next(_beyond(known, tree, "$"), None):
        raise Damaged(f"Expected every field of {SCHEMA}, as each run writes it, but {printed(absent)} is not there")
    return report


def strict(document: bytes) -> Any:
    """JSON with every key once, finite and short numbers, UTF-8 and bounded depth; Damaged says what it breaks."""
    _check_depth(document)
    try:
        return json.loads(
            document.decode("utf-8"),
            object_pairs_hook=_once,
            parse_constant=_constant,
            parse_float=_real,
            parse_int=_whole,
        )
    except Damaged:
        raise
    except (ValueError, RecursionError) as error:
        raise Damaged(f"Expected JSON in UTF-8 but {printed(error)}") from None


def printed(value: object, limit: int = 200) -> str:
    """A text of unknown origin in one line that steers no terminal."""
    text = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in str(value)[: limit + 1])
    return text if len(text) <= limit else f"{text[:limit]}..."


def _check_depth(document: bytes) -> None:
    depth = 0
    for found in TOKENS.finditer(document):
        token = found.group()
        if token in b"[{":
            depth += 1
            if depth > DEEPEST:
                raise Damaged(f"Expected at most {DEEPEST} levels but it is nested deeper at byte {found.start()}")
        elif token in b"]}":
            depth -= 1


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Damaged(f"Expected each key once but {printed(twice)!r} stands twice in one object")
    return made


def _constant(text: str) -> float:
    raise Damaged(f"Expected a number but got {text}")


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or len(text) > LONGEST_NUMBER:
        raise Damaged(f"Expected a finite number of at most {LONGEST_NUMBER} signs but got {printed(text, 60)}")
    return value


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise Damaged(f"Expected a number of at most {LONGEST_NUMBER} digits but got {printed(text, 60)}")
    return int(text)


def _beyond(found: Any, known: Any, path: str) -> Iterator[str]:
    """Paths of fields that one document has and the other has not."""
    if isinstance(found, dict) and isinstance(known, dict):
        for key, value in found.items():
            if key not in known:
                yield f"{path}.{key}"
            else:
                yield from _beyond(value, known[key], f"{path}.{key}")
    elif isinstance(found, list) and isinstance(known, list):
        for place, (left, right) in enumerate(zip(found, known, strict=True)):
            yield from _beyond(left, right, f"{path}[{place}]")
