"""Forms of one work whose times on a GPU are known: launches as data, replayed small on the host executor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import mlx.core as mx
import msgspec
import numpy as np

from mlx_assay.impl.executors import Counts, counted, metal_kernel, use
from mlx_assay.impl.executors.counting import scaled
from mlx_assay.impl.executors.stock import StockLibrary, dispatch

LOGSUMEXP = "logsumexp"
"""A launch of MLX's own kernel by this name has no text here."""

FOLDER = Path(__file__).with_name("measured")


class Argument(msgspec.Struct, omit_defaults=True):
    """An input: drawn ("normal", "words", "fill"), given by its values, or an output of an earlier launch."""

    dtype: str
    shape: list[int]
    draw: str = ""
    scale: float = 1.0
    values: list[float] = []
    made_by: list[int] = []  # launch and output


class Output(msgspec.Struct):
    """An output's dtype and shape."""

    dtype: str
    shape: list[int]


class Launch(msgspec.Struct):
    """One launch; `source` and `header` name texts of the record."""

    kernel: str
    source: str
    header: str
    input_names: list[str]
    output_names: list[str]
    template: list[tuple[str, int | bool | str]]
    grid: list[int]
    threadgroup: list[int]
    inputs: list[Argument]
    outputs: list[Output]


class Form(msgspec.Struct):
    """A form of a work: its launches at a part of the size, and the median microseconds at the whole one.

    `factor`: how many times the part the whole is. `apart`: why the model says too little of it; "" where it does not.
    """

    name: str
    microseconds: float
    factor: int
    launches: list[Launch]
    apart: str = ""


class Work(msgspec.Struct):
    """What the forms compute, and how its times were measured, all in one process.

    `byte_sum`: instructions that the sum of a word's four bytes was; 7 before the executor cuda made one of them.
    """

    name: str
    how: str
    noise: float  # relative; times that are nearer have no order
    forms: list[Form]
    byte_sum: int = 1


class Profile(msgspec.Struct):
    """What a GPU's own counters say of the last of some launches, which are given as a form's are.

    `shared`: bytes of the arrays that the whole has once.
    """

    name: str
    factor: int
    launches: list[Launch]
    instructions: int  # that simdgroups executed
    bytes_read: int  # from device memory
    registers: int
    shared: int = 0


class Record(msgspec.Struct):
    """Times of one device, and its counters."""

    device: str
    driver: str
    versions: dict[str, str]
    works: list[Work]
    profiles: list[Profile]


def records() -> list[Record]:
    """Every record."""
    return [msgspec.json.decode(path.read_bytes(), type=Record) for path in sorted(FOLDER.glob("*.json"))]


def counts(form: Form | Profile) -> list[Counts]:
    """The counts of the launches, for the whole size."""
    made: list[list[Any]] = []
    with use("host"), counted() as found:
        for launch in form.launches:
            made.append(_launched(launch, made))
            mx.eval(made[-1])
    return [scaled(each, form.factor) for each in found]


def _launched(launch: Launch, made: list[list[Any]]) -> list[Any]:
    arrays = [_array(argument, seed, made) for seed, argument in enumerate(launch.inputs)]
    if launch.kernel == LOGSUMEXP:
        return [_logsumexp(*arrays)]
    kernel = metal_kernel(
        launch.kernel, launch.input_names, launch.output_names, _text(launch.source), _text(launch.header)
    )
    outputs: list[Any] = kernel(
        inputs=arrays,
        output_shapes=[tuple(o.shape) for o in launch.outputs],
        output_dtypes=[getattr(mx, o.dtype) for o in launch.outputs],
        grid=_axes(launch.grid),
        threadgroup=_axes(launch.threadgroup),
        template=[(name, getattr(mx, v) if isinstance(v, str) else v) for name, v in launch.template],
    )
    return outputs


def _logsumexp(logits: Any) -> Any:
    """By MLX's own kernel for Metal, out of its headers."""
    host = (
        np.array(logits.view(mx.uint16)).view(ml_dtypes.bfloat16) if logits.dtype == mx.bfloat16 else np.array(logits)
    )
    return mx.array(dispatch.logsumexp(StockLibrary(), host).astype(np.float32)).astype(logits.dtype)


def _axes(axes: list[int]) -> tuple[int, int, int]:
    x, y, z = axes
    return x, y, z


def _text(name: str) -> str:
    return (FOLDER / name).read_text() if name else ""


def _array(argument: Argument, seed: int, made: list[list[Any]]) -> Any:
    if argument.made_by:
        launch, output = argument.made_by
        return made[launch][output].reshape(argument.shape)
    dtype = getattr(mx, argument.dtype)
    if argument.values:
        return mx.array(np.array(argument.values), dtype).reshape(argument.shape)
    if argument.draw == "fill":
        return mx.full(argument.shape, argument.scale, dtype)
    if argument.draw == "words":
        return mx.array(np.random.default_rng(seed).integers(0, 2**32, argument.shape, np.uint32)).view(dtype)
    return (mx.random.normal(argument.shape, key=mx.random.key(seed)) * argument.scale).astype(dtype)
