"""A bundle as a file: one safetensors archive of canonical bytes, read as if an enemy had written it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mlx_assay.conformance.bundling import launches
from mlx_assay.conformance.bundling.document import DOCUMENT, Array, Bundle, BundledSubcase, Plain
from mlx_assay.conformance.bundling.launches import NUMPY, Buffer, Launches
from mlx_assay.conformance.bundling.pool import Pool
from mlx_assay.conformance.judging.relaxation import RELAXATIONS
from mlx_assay.conformance.process.protocol import PlainArgument
from mlx_assay.fixtures import codec
from mlx_assay.fixtures.case import Subcase
from mlx_assay.fixtures.tensor import Tensor, viewed

LARGEST = 256 << 20
"""Bytes of a bundle that is read."""

LARGEST_DOCUMENT = 32 << 20
ELEMENT_LIMIT = 1 << 26
"""Of a view: a broadcast step could claim more than any memory holds."""


class NoBundle(ValueError):
    """A file that is no bundle, in words that say why."""


def encode(bundle: Bundle, pool: Pool) -> bytes:
    """The file's bytes: the same bundle gives the same ones."""
    document = np.frombuffer(msgspec.json.encode(bundle), np.uint8)
    return codec.encode({DOCUMENT: document, **pool.tensors}, {})


def load(path: Path) -> tuple[Bundle, Pool]:
    """Reads a bundle. NoBundle: what there is, is none."""
    try:
        if not path.is_file():
            raise NoBundle(f"Expected a bundle but there is no file {str(path)!r}")
        if (size := path.stat().st_size) > LARGEST:
            raise NoBundle(f"{path}: Expected a bundle of {LARGEST} bytes at most but got {size}")
        return decode(path.read_bytes())
    except OSError as error:
        raise NoBundle(f"{path}: Expected a bundle to read but: {error.strerror}") from error
    except NoBundle:
        raise
    except ValueError as error:
        raise NoBundle(f"{path}: Expected a bundle but: {error}") from error


def decode(data: bytes) -> tuple[Bundle, Pool]:
    """Reads a bundle's bytes; every array that it speaks of is there and fits. ValueError says what is wrong."""
    tensors = codec.decode(data).tensors
    if DOCUMENT not in tensors:
        raise ValueError(f"a tensor {DOCUMENT!r} is missing")
    document = tensors.pop(DOCUMENT)
    if document.nbytes > LARGEST_DOCUMENT:
        raise ValueError(f"its document has {document.nbytes} bytes, more than {LARGEST_DOCUMENT}")
    try:
        bundle = msgspec.json.decode(document.tobytes(), type=Bundle)
    except RecursionError:
        raise ValueError("its document is nested too deep") from None
    pool = Pool(tensors)
    _check(bundle, pool)
    return bundle, pool


def _check(bundle: Bundle, pool: Pool) -> None:
    if unknown := set(bundle.relaxations) - RELAXATIONS.keys():
        raise ValueError(f"it names a relaxation {min(unknown)!r} that this version does not know")
    for subcase in bundle.subcases:
        given(subcase, pool)
        for want in subcase.wants:
            output = array(want.output, pool)
            if isinstance(want.ulps, Buffer):
                np.broadcast_to(array(want.ulps, pool), output.shape)
        for each in subcase.rounds:
            launches.check(Launches(kernels=bundle.kernels, launches=each.launches), pool)
            if each.got is not None:
                array(each.got, pool)


def array(buffer: Buffer, pool: Pool) -> np.ndarray:
    """The array that a buffer names; ValueError where it does not fit."""
    return pool.array(buffer.tensor, NUMPY[buffer.dtype], buffer.shape)


def given(subcase: BundledSubcase, pool: Pool) -> Subcase:
    """The subcase with its arguments as oracles and implementations are given them; ValueError: they are none."""
    arguments = {each.name: _value(each, pool) for each in subcase.arguments}
    return Subcase(subcase.label, arguments, tuple(subcase.raises))


def _value(argument: Array | Plain, pool: Pool) -> Any:
    if isinstance(argument, Plain):
        return PlainArgument(argument.type, argument.text).value
    steps = tuple((name, _frozen(values)) for name, values in argument.steps)
    try:
        tensor = Tensor(np.ascontiguousarray(array(argument.base, pool)), steps, argument.kind)
        view = viewed(tensor.base, tensor.steps, np)
    except (TypeError, IndexError, AttributeError, MemoryError) as error:
        raise ValueError(f"argument {argument.name!r} has no such view: {error}") from error
    if math.prod(view.shape) > ELEMENT_LIMIT:
        raise ValueError(f"the view of argument {argument.name!r} has more than {ELEMENT_LIMIT} elements")
    return tensor


def _frozen(values: Any) -> Any:
    return tuple(map(_frozen, values)) if isinstance(values, list | tuple) else values
