"""The seal: what the suite's own files held before an implementation was let in, compared when the run ends.

An implementation runs as the same user, and could edit the files that judge it before another process loads them.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

JUDGING = ("conformance", "oracles", "fixtures", "impl")
UNSEALED = ("__pycache__",)
JUDGED = ("impl/kernels/", "impl/__init__.py")


@cache
def seal() -> Mapping[str, str]:
    """SHA-256 of every file of the suite, by its path, as of the first call in this process."""
    return _digests()


def digests() -> tuple[str, str]:
    """SHA-256 over the files of the fixtures, and over those of all else that judges, as of `seal`.

    Paths count from the package, so that two machines agree. Kernels are judged and have no part in it, nor has what
    Python or an editor leaves behind.
    """
    folders = _folders()
    files = {_name(Path(path), folders): digest for path, digest in seal().items()}
    judging = {name: digest for name, digest in files.items() if name and not name.startswith(JUDGED)}
    fixtures = {name for name in judging if name.startswith("fixtures/")}
    return _digest(judging, fixtures), _digest(judging, judging.keys() - fixtures)


def altered() -> list[str]:
    """Files of the suite that were changed, added or removed since `seal`."""
    before, now = seal(), _digests()
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


@cache
def preload() -> None:
    """Imports what judges, so that nothing of it is read from disk after an implementation could have written there."""
    from mlx_assay.conformance.contract import contracts
    from mlx_assay.fixtures.kind import kinds
    from mlx_assay.oracles import registry

    judging = importlib.import_module("mlx_assay.conformance.judging")
    for module in pkgutil.iter_modules(judging.__path__, "mlx_assay.conformance.judging."):
        importlib.import_module(module.name)
    contracts()
    kinds()
    # What kinds() passes over: exploration is collected after an implementation may have started.
    importlib.import_module("mlx_assay.fixtures.strategies")
    for name in registry.NAMES:
        registry.load(name)


def _digests() -> dict[str, str]:
    found = {}
    for folder in _folders():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not set(UNSEALED) & set(path.parts):
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _name(path: Path, folders: Sequence[Path]) -> str:
    """A file's path from the package on; empty for one that is no part of what was published."""
    folder = next(folder for folder in folders if path.is_relative_to(folder))
    inside = path.relative_to(folder)
    passing = inside.suffix == ".pyc" or any(part.startswith(".") for part in inside.parts)
    return "" if passing else f"{folder.name}/{inside.as_posix()}"


def _digest(files: Mapping[str, str], names: Collection[str]) -> str:
    text = "".join(f"{files[name]}  {name}\n" for name in sorted(names))
    return hashlib.sha256(text.encode()).hexdigest()


def _folders() -> list[Path]:
    specs = [find_spec(f"mlx_assay.{side}") for side in JUDGING]
    return [Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]
