"""The run of a bundle's launches in another process, and what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from mlx_assay.conformance.bundling import archive, launches
from mlx_assay.conformance.bundling.document import Bundle, Round
from mlx_assay.conformance.bundling.launches import NUMPY, Buffer, Launch, Launches
from mlx_assay.conformance.bundling.pool import Pool
from mlx_assay.conformance.bundling.relaunch import name
from mlx_assay.conformance.process.descendants import kill_all
from mlx_assay.fixtures import codec
from mlx_assay.impl.executors.fidelity import SWITCHES

MEMORY = 8 << 30
"""Bytes of private memory that a process gets for a bundle."""

LARGEST = launches.LARGEST + (1 << 20)
SAID = 2000
"""Bytes at the end of what the process printed that are told."""


@dataclass(frozen=True)
class Rerun:
    """Outputs by launch and place, as far as it came; `failure` says why no farther, or is empty."""

    outputs: Mapping[tuple[int, int], np.ndarray] = field(default_factory=dict)
    failure: str = ""


def rerun(bundle: Bundle, each: Round, pool: Pool, limit: float) -> Rerun:
    """Runs the launches of a round on the host executor: with its poison and order of threads, and the bundle's
    switches where it was made there. `limit` is in seconds."""
    details = bundle.executor.details
    switches = {key: details[key] for key in SWITCHES if details.get(key) in SWITCHES[key]}
    with tempfile.TemporaryDirectory(prefix="mlx-assay-") as folder:
        given, made, said = (Path(folder, name) for name in ("launches", "outputs", "said"))
        given.write_bytes(_file(bundle, each, pool))
        asked = {
            "launches": str(given),
            "outputs": str(made),
            "poison": each.poison,
            "schedule": each.schedule,
            "switches": switches,
            "memory": MEMORY,
        }
        failure = _process(json.dumps(asked), said, limit, folder)
        try:
            outputs = _outputs(made, each.launches)
        except (OSError, ValueError) as error:
            outputs, failure = {}, failure or f"its outputs cannot be read: {error}"
    if not failure and len(outputs) < sum(len(launch.outputs) for launch in each.launches):
        failure = "it left less than all outputs"
    return Rerun(outputs, failure)


def _file(bundle: Bundle, each: Round, pool: Pool) -> bytes:
    """The launches of one round and their arrays alone."""
    own = Pool()

    def named(buffer: Buffer, place: str) -> Buffer:
        if not buffer.tensor:
            return buffer
        return msgspec.structs.replace(buffer, tensor=own.add(place, archive.array(buffer, pool)))

    renamed = [
        msgspec.structs.replace(
            launch,
            inputs=[named(buffer, f"{index}/in-{place}") for place, buffer in enumerate(launch.inputs)],
            outputs=[named(buffer, name(index, place)) for place, buffer in enumerate(launch.outputs)],
        )
        for index, launch in enumerate(each.launches)
    ]
    return launches.encode(Launches(kernels=bundle.kernels, launches=renamed), own)


def _process(asked: str, said: Path, limit: float, folder: str) -> str:
    """Why it failed, or an empty text."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))}
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
    with said.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mlx_assay.conformance.bundling.relaunch", asked],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment | {"PYTHONPATH": paths},
            cwd=folder,
            start_new_session=True,
        )
    late = False
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        kill_all(process.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if late:
        return f"it took more than {limit:g} s"
    if process.returncode == 0:
        return ""
    with said.open("rb") as output:
        output.seek(max(0, said.stat().st_size - SAID))
        text = output.read(SAID).decode("utf-8", "replace").strip()
    if process.returncode < 0:
        return f"it was killed by signal {-process.returncode}: {text}"
    return text or f"it ended with exit code {process.returncode}"


def _outputs(path: Path, made: Sequence[Launch]) -> dict[tuple[int, int], np.ndarray]:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
        raise ValueError("expected a file of the outputs' size")
    pool = Pool(codec.decode(path.read_bytes()).tensors)
    return {
        (index, place): pool.array(name(index, place), NUMPY[buffer.dtype], buffer.shape)
        for index, launch in enumerate(made)
        for place, buffer in enumerate(launch.outputs)
        if name(index, place) in pool.tensors
    }
