"""What passes between this process and a release's probe: two files each way, and no trust in what comes back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from mlx_assay.conformance.versions.inputs import Input
from mlx_assay.fixtures.tensor import DTYPES

SIZE_LIMIT = 1 << 30
"""The most bytes that a file of answers may have."""

AXES_LIMIT = 8


class Garbled(ValueError):
    """The answers of a probe that cannot be what it was asked for."""


@dataclass(frozen=True)
class Answer:
    """What one input gave: named arrays, "result" among them, or the name and text of an exception."""

    arrays: dict[str, np.ndarray]
    fault: str = ""


class _Told(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    arrays: dict[str, tuple[str, list[int], int]] = {}
    fault: str = ""


class _Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    release: str
    device: str
    answers: list[_Told]


def write(folder: Path, inputs: Sequence[Input]) -> None:
    """Leaves the inputs for a probe."""
    described = []
    with (folder / "inputs.bin").open("wb") as out:
        for given in inputs:
            arrays = {}
            for name, array in given.arrays.items():
                # NumPy wants the bytes of an array at a multiple of its element's size.
                out.write(bytes(-out.tell() % 16))
                arrays[name] = (str(array.dtype), array.shape, out.tell())
                out.write(array.tobytes())
            name, numbers = f"{given.case.id} {given.label}".strip(), {key: x.hex() for key, x in given.numbers.items()}
            described.append({"operation": given.operation, "name": name, "arrays": arrays, "numbers": numbers})
    (folder / "inputs.json").write_bytes(msgspec.json.encode({"inputs": described}))


def read(folder: Path, count: int, release: str) -> list[Answer]:
    """The answers that a probe left for `count` inputs; Garbled says what is wrong with them."""
    try:
        for name in ("outputs.json", "outputs.bin"):
            if (size := (folder / name).stat().st_size) > SIZE_LIMIT:
                raise Garbled(f"{name} has {size} bytes, expected at most {SIZE_LIMIT}")
        told = msgspec.json.decode((folder / "outputs.json").read_bytes(), type=_Output)
        content = (folder / "outputs.bin").read_bytes()
    except OSError as error:
        raise Garbled(f"the answers cannot be read: {error}") from error
    except msgspec.MsgspecError as error:
        raise Garbled(f"outputs.json is not what a probe writes: {error}") from error
    if told.release != release:
        raise Garbled(f"the environment has MLX {told.release[:40]!r}, expected {release!r}")
    if told.device != "cpu":
        raise Garbled(f"the answers come from device {told.device[:40]!r}, expected 'cpu'")
    if len(told.answers) != count:
        raise Garbled(f"there are {len(told.answers)} answers to {count} inputs")
    return [_answer(answer, content) for answer in told.answers]


def _answer(told: _Told, content: bytes) -> Answer:
    if bool(told.fault) == ("result" in told.arrays):
        raise Garbled(f"expected a result or a fault but got {sorted(told.arrays)} and {told.fault[:80]!r}")
    return Answer({name: _array(name, *where, content) for name, where in told.arrays.items()}, told.fault)


def _array(name: str, dtype: str, shape: list[int], offset: int, content: bytes) -> np.ndarray:
    if dtype not in DTYPES:
        raise Garbled(f"{name[:40]!r} has dtype {dtype[:40]!r}, expected one of {', '.join(DTYPES)}")
    if len(shape) > AXES_LIMIT or any(size < 0 for size in shape):
        raise Garbled(
            f"{name[:40]!r} has shape {shape[:AXES_LIMIT]}, expected at most {AXES_LIMIT} sizes of 0 and more"
        )
    kind, count = DTYPES[dtype], math.prod(shape)
    if offset < 0 or offset + count * kind.itemsize > len(content):
        raise Garbled(f"{name[:40]!r} stands at {offset}, {count} of {dtype}, in a file of {len(content)} bytes")
    return np.frombuffer(content, kind, count, offset).reshape(shape)
