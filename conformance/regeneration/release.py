"""The release of the recorded vectors: one set of files, as a tarball and an npm package, reproducible."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from importlib.metadata import distribution, version
from importlib.resources import files
from pathlib import Path

from mlx_assay.fixtures.goldens import store
from mlx_assay.fixtures.goldens.store import FOLDER

NAME = "mlx-assay-vectors"
INDEX = "vectors/index.json"
PROSE = ("README.md", "LICENSE")


def vectors(root: Path = FOLDER) -> dict[str, bytes]:
    """Every golden file by its path in a release, and an index of them; store.Damage where one is not what it says."""
    found: dict[str, bytes] = {}
    index = []
    for path in store.documents(root):
        document = store.load(path).document
        place = f"{store.folder_of(document.key)}/{document.group}"
        for file in store.paths(root, document.group, document.key):
            if file.exists():
                found[f"vectors/{place}{file.suffix}"] = file.read_bytes()
        index.append(
            {
                "name": document.group,
                "path": place,
                "form": document.form,
                "scope": document.scope,
                "key": document.key,
                "oracle": document.oracle,
                "operation": document.operation,
                "sha256": document.file,
            }
        )
    if not index:
        raise store.Damage(f"{root}: Expected goldens to release but there are none")
    found[INDEX] = (json.dumps({"groups": index}, indent=1) + "\n").encode()
    return found


def licence() -> dict[str, bytes]:
    """The licence's text as the distribution carries it."""
    text = distribution("mlx-assay").read_text("licenses/LICENSE")
    if not text:
        raise store.Damage(
            "Expected licenses/LICENSE in the distribution's metadata but there is none: install it anew"
        )
    return {"LICENSE": text.encode()}


def npm(root: Path = FOLDER) -> dict[str, bytes]:
    """The files of the npm package by their path in it."""
    manifest = {
        "name": NAME,
        "version": version("mlx-assay"),
        "description": "Inputs and expected values of GPU kernels, bit by bit",
        "license": "MIT",
        "type": "module",
        "exports": {".": {"types": "./index.d.ts", "default": "./index.js"}, "./vectors/*": "./vectors/*"},
        "files": ["index.js", "index.d.ts", "vectors"],
        "engines": {"node": ">=18"},
    }
    return {
        "package.json": (json.dumps(manifest, indent=2) + "\n").encode(),
        "index.js": _own("vectors.js"),
        "index.d.ts": _own("vectors.d.ts"),
        "README.md": _own("vectors.md"),
        **licence(),
        **vectors(root),
    }


def _own(name: str) -> bytes:
    return (files("mlx_assay.conformance.regeneration") / name).read_bytes()


def packed(content: Mapping[str, bytes], prefix: str) -> bytes:
    """A gzipped tar of files under a folder: sorted, without owners and times, so that equal files give equal bytes."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(content.items()):
            entry = tarfile.TarInfo(f"{prefix}/{name}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    squeezed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=squeezed, mode="wb", compresslevel=6, mtime=0) as stream:
        stream.write(plain.getvalue())
    return squeezed.getvalue()


def release(out: Path, root: Path = FOLDER) -> dict[Path, str]:
    """Writes both into a folder; returns each file's SHA-256."""
    package = npm(root)
    plain = {name: data for name, data in package.items() if name.startswith("vectors/") or name in PROSE}
    full = f"{NAME}-{version('mlx-assay')}"
    made = {out / f"{full}.tar.gz": packed(plain, full), out / f"{full}.tgz": packed(package, "package")}
    out.mkdir(parents=True, exist_ok=True)
    for path, data in made.items():
        path.write_bytes(data)
    return {path: hashlib.sha256(data).hexdigest() for path, data in made.items()}
