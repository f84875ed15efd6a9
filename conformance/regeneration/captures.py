"""Captures of devices among the fixtures: one a device class, read as a stranger's file, asserted on no other class."""

from __future__ import annotations

import re
from pathlib import Path

import mlx_assay.fixtures
from mlx_assay.conformance.capture.document import HOST
from mlx_assay.conformance.capture.reading import BadCapture, read
from mlx_assay.conformance.regeneration.holding import Held

FOLDER = Path(mlx_assay.fixtures.__path__[0]) / "capture_data"
SUFFIX = ".json"


def filename(device_class: str) -> str:
    """Where the capture of a device class belongs."""
    return re.sub(r"[^a-z0-9]+", "-", device_class.lower()).strip("-") + SUFFIX


def adopt(path: Path, folder: Path = FOLDER) -> Path:
    """Keeps a capture as it is and returns where; ValueError where it is unsound, the host's own, or not the first."""
    capture = read(path)
    if capture.device_class == HOST:
        raise ValueError(f"{path}: Expected a capture of a device but it is the host executor's, no golden of hardware")
    target = folder / filename(capture.device_class)
    if target.exists():
        raise ValueError(
            f"{path}: Expected the first capture of {capture.device_class!r} but {target} is kept: hold one to "
            f"the other with `mlx-assay capture --compare {target} {path}`, and remove the kept one to take this"
        )
    folder.mkdir(exist_ok=True)
    target.write_bytes(path.read_bytes())
    return target


def hold_captures(folder: Path = FOLDER) -> Held:
    """Each kept capture against itself: nothing of it is asserted on this machine."""
    faults, count = [], 0
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        count += 1
        try:
            device_class = read(path).device_class
        except BadCapture as error:
            faults.append(str(error))
            continue
        if device_class == HOST or path.name != filename(device_class):
            faults.append(f"{path}: Expected the capture of a device at its class's name but it is of {device_class!r}")
    return Held("captures", "fault" if faults else "holds", tuple(faults), count)
