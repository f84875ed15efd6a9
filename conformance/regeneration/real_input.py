"""The recorded real input, computed again from the model's package by the tools that recorded it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from mlx_assay.conformance.regeneration.machine import Absent
from mlx_assay.fixtures import codec, recorded

DATA = Path(recorded.__file__).parent / "data"
TOOLS = Path(recorded.__file__).parents[1] / "ci"
FILES = {"record_real_input": ("logits", "grammar"), "record_trellis": ("trellis",)}
"""The tools, and the files that each records."""


class Fresh(NamedTuple):
    """A file as it is computed today; `faults` say where it lies beyond the tool's stated bounds."""

    name: str
    data: bytes
    faults: list[str]

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def holds(self) -> bool:
        """Whether it is the recorded file, byte for byte."""
        return self.digest == recorded.DIGESTS[self.name]

    def told(self) -> str:
        """What came of it, with the releases on either side where bytes differ within the bounds."""
        if self.holds:
            return f"{self.name}: byte for byte, its digest holds"
        versions = [json.loads(made["versions"]) for made in (recorded.archive(self.name).metadata, self.metadata())]
        if self.faults:
            return f"{self.name}: {'; '.join(self.faults)}"
        return f"{self.name}: other bytes within the stated bounds; recorded with {versions[0]}, here {versions[1]}"

    def metadata(self) -> dict[str, str]:
        """What the new file says of itself."""
        return codec.decode(self.data).metadata

    def accounted(self) -> bool:
        """Whether the releases differ from those it was recorded with."""
        return self.metadata()["versions"] != recorded.archive(self.name).metadata["versions"]


def tool(name: str, folder: Path = TOOLS) -> ModuleType:
    """A recording tool of the checkout; Absent where this is no checkout."""
    path = folder / f"{name}.py"
    if not path.is_file():
        raise Absent(f"{path} is not there: the real input is recorded in a checkout of the repository")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def fresh(folder: Path = TOOLS) -> Iterator[Fresh]:
    """Each file, computed from the model; Absent names a package that is missing."""
    first, second = (tool(name, folder) for name in FILES)
    try:
        model = first.model_folder()
        files = dict(first.record(model))
        files["trellis"] = codec.encode(*second.record(model))
    except (RuntimeError, ImportError) as error:
        raise Absent(str(error)) from error
    for module, names in zip((first, second), FILES.values(), strict=True):
        made = [Fresh(name, files[name], []) for name in names]
        beyond = [] if all(one.holds for one in made) else module.differences(model)
        yield from (one._replace(faults=[] if one.holds else beyond) for one in made)
