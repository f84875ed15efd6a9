"""The identity of a campaign: all on which its results depend, so that results of two are never put together."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

import msgspec

from mlx_assay.conformance.adapters.target import target
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.process.seal import digests
from mlx_assay.conformance.reporting.environment import packages
from mlx_assay.conformance.reporting.report import Suite

BUILT_IN = "mlx_assay.impl"
LOCAL = ("compiler", "threads")
"""What an executor says of itself that no bit depends on: a path, and how many cores there are."""


class Identity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What judged, what was judged, and where it ran. `content` is a digest of the files of what was judged."""

    suite: Suite
    implementation: str
    content: str
    executor: dict[str, str]
    device: str
    machine: str
    python: str
    packages: dict[str, str]
    every: bool

    @property
    def digest(self) -> str:
        """SHA-256 over all of it."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def apart(self, other: Identity) -> list[str]:
        """The fields that are not the same."""
        return [name for name in self.__struct_fields__ if getattr(self, name) != getattr(other, name)]


def identity(implementation: Implementation, *, every: bool) -> Identity:
    """That of a campaign on this machine; imports MLX, not what is judged."""
    environment = implementation.environment
    fixtures, judge = digests()
    versions = packages()
    return Identity(
        suite=Suite(version=versions.get("mlx-assay", ""), fixtures=fixtures, judge=judge),
        implementation=implementation.target or BUILT_IN,
        content=content(implementation.target),
        executor={key: str(value) for key, value in environment["executor"].items() if key not in LOCAL},
        device=str(environment["device"]),
        machine=platform.machine(),
        python=platform.python_version(),
        packages=versions,
        every=every,
    )


def content(named: str | None) -> str:
    """SHA-256 over the files of an implementation: a program's own arguments that are files, a module, its package.

    What those import from elsewhere has no part in it. Empty where no file is found.
    """
    found = target(named)
    if found.argv:
        files = [(str(place), Path(part)) for place, part in enumerate(found.argv) if Path(part).is_file()]
    else:
        files = list(_files((found.module or BUILT_IN).partition(":")[0]))
    total = hashlib.sha256(repr(found.argv).encode())
    for name, path in files:
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest() if files else ""


def _files(module: str) -> Iterator[tuple[str, Path]]:
    """The files of the outermost package that a module stands in, or the module's own."""
    name, _, rest = module.partition(".")
    where: list[str] = [os.getcwd(), *sys.path]
    spec = PathFinder.find_spec(name, where)
    if spec is not None and spec.origin is None and rest and spec.submodule_search_locations:
        # A namespace has no files of its own.
        inner = rest.partition(".")[0]
        spec = PathFinder.find_spec(f"{name}.{inner}", list(spec.submodule_search_locations))
    if module.startswith(BUILT_IN):
        from importlib.util import find_spec

        spec = find_spec(BUILT_IN)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(folder).as_posix(), path
    if spec and not spec.submodule_search_locations and spec.origin and Path(spec.origin).is_file():
        yield Path(spec.origin).name, Path(spec.origin)
