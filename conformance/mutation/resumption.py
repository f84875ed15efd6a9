"""What an earlier report of a campaign still says: rulings whose mutant, and all that ruled on it, are as they were."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import distributions
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from mlx_assay.conformance.mutation.ruling import EQUIVALENT, KILLED, Ruling
from mlx_assay.impl.executors.toolchain import toolchain

if TYPE_CHECKING:
    from mlx_assay.conformance.mutation.mutant import Mutant
    from mlx_assay.conformance.mutation.report import Campaign, Row

PACKAGES = ("conformance", "fixtures", "impl", "oracles")
REASONS = "conformance/mutation/equivalents.toml"
"""Reasons are asked anew in every campaign: they decide no ruling that is kept."""

Tests = Mapping[str, Mapping[str, str]]
"""Text -> its files of self-tests -> digest."""


def packages() -> dict[str, Path]:
    """Where the parts of mlx-assay are installed."""
    return {name: Path(str(files(f"mlx_assay.{name}"))) for name in PACKAGES}


def ground(parts: Mapping[str, Path], left_out: Collection[str] = (REASONS,)) -> str:
    """A digest of what rules on mutants, self-tests apart: files, by the part they lie in, and all that is installed.

    `left_out` are files that decide nothing, as part/path.
    """
    digest = hashlib.sha256()
    for name, root in sorted(parts.items()):
        for path in _files(root):
            place = name if path == root else f"{name}/{path.relative_to(root).as_posix()}"
            if place not in left_out:
                digest.update(f"{place}\0{_of(path)}\0".encode())
    installed = sorted({f"{one.name}=={one.version}" for one in distributions()})
    for text in (platform.python_version(), platform.machine(), toolchain().version, *installed):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for path in sorted(root.rglob("*")):
        hidden = any(part == "__pycache__" or part.startswith(".") for part in path.relative_to(root).parts)
        if path.is_file() and not hidden:
            yield path


def _of(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def digest_of_tests(folder: Path, name: str) -> str:
    """Of a file of self-tests, conftest.py, and the modules and folders of `folder` that one of these names."""
    beside = [path for path in folder.iterdir() if path.name[0] not in "._"]
    there = {path.stem: path for path in beside if path.is_dir() or path.suffix == ".py"}
    found: set[Path] = set()
    waiting = [folder / name, *(there[one] for one in ("conftest", name.partition("/")[0]) if one in there)]
    while waiting:
        path = waiting.pop()
        if path.is_dir():
            waiting += [one for one in _files(path) if one not in found]
        elif path not in found:
            found.add(path)
            words = set(re.findall(rb"\w+", path.read_bytes()))
            waiting += [one for word, one in there.items() if word.encode() in words and one not in found]
            found.update(one for one in waiting if one.is_dir())
    return _of(*sorted(path for path in found if path.is_file()))


def kept(
    earlier: Campaign, mutants: Iterable[Mutant], ground: str, tests: Tests | None = None, lasting: Sequence[str] = ()
) -> list[Ruling]:
    """The rulings of an earlier report that would be the same again.

    None where the ground is another one. `tests` are those of a campaign against what judges: a test that killed has to
    be as it was, and so have all tests of a text where a fault lived, or where no test is named as its killer.
    `lasting` are beginnings of reasons that do not come from a file of reasons.
    """
    if not earlier.ground or earlier.ground != ground:
        return []
    rows = {row.id: row for row in earlier.mutants}
    return [
        Ruling(row.id, row.outcome, row.killed_by, earlier.reasons.get(row.id, ""))
        for mutant in mutants
        if (row := rows.get(mutant.id)) is not None
        and earlier.sources.get(mutant.source.name) == mutant.source.digest
        and (tests is None or _as_it_was(row, earlier.tests.get(mutant.source.name, {}), tests[mutant.source.name]))
        and (row.outcome != EQUIVALENT or earlier.reasons.get(row.id, "").startswith(tuple(lasting)))
    ]


def _as_it_was(row: Row, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    file, named, _ = row.killed_by.partition(": ")[2].partition("::")
    if row.outcome == KILLED and named and file in now:
        return before.get(file) == now[file]
    # Time decides of what took too long, and another day it may not.
    return before == now and "more than" not in row.killed_by
