"""A benchmark: one operation at shapes that matter, the bytes that must move, and who runs beside the implementation.

A contract holds the benchmarks of its operation. Nothing here imports MLX: contracts are read where it is not wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.tensor import Kind

Shape = Mapping[str, int]
Fill = Callable[[Draw, str, int], np.ndarray]
"""`fill(draw, dtype, count)`: flat content of `count` elements, any run of which is a valid input."""

Library = Literal["mlx", "torch"]
GPUS = ("metal", "cuda")
NONE = "none"
"""Of the contenders beside the implementation, stock alone."""


def _possible(shape: Shape) -> str:
    return ""


@dataclass(frozen=True)
class Input:
    """One array argument. Each call sees another window of one flat array, so that no two calls have one content."""

    shape: tuple[int, ...]
    dtype: str
    fill: Fill
    kind: Kind = "mx"

    @property
    def size(self) -> int:
        """Elements of one call."""
        return int(np.prod(self.shape, dtype=np.int64))


Plain = float | int | str | None
Arguments = Mapping[str, Input | Plain]


@dataclass(frozen=True)
class Moved:
    """Bytes that one call must read and write at least: each input once, each output once."""

    read: int
    written: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.read + self.written


@dataclass(frozen=True)
class Contender:
    """What runs beside the implementation, in the same process on the same content.

    `place` is "module:function"; the function takes the shape and the dtype and returns a callable with the
    operation's parameters. `library` says whose arrays it gets. `needs` are modules without which it is missing.
    `same` tells whether it has the contract's bits; if not, `note` says what it computes.
    """

    name: str
    place: str
    library: Library = "mlx"
    needs: tuple[str, ...] = ()
    executors: tuple[str, ...] = ("metal", "cuda", "host")
    same: bool = True
    note: str = ""


@dataclass(frozen=True)
class Benchmark:
    """One operation at one shape for each of `dtypes`.

    `arguments(dtype, shape)` are those of a call by parameter name, `moved(dtype, shape)` its bytes. On the host, where
    kernels are counted, `host` is the shape; at `tiny` there is little to do but to call. Where `reference` names a
    contender, its bits are the contract's on any device, so that every timed output is held against it.
    `part(arguments, draw)` gives the arguments, as oracles see them, of a smaller call and the place of its answer in
    the whole one, which all oracles judge. `wholly` False: the first oracle is too slow for whole calls.
    `refused(shape)` says what the contract expects of a shape that it does not take; of others nothing.
    """

    dtypes: tuple[str, ...]
    shape: Shape
    host: Shape
    tiny: Shape
    arguments: Callable[[str, Shape], Arguments]
    moved: Callable[[str, Shape], Moved]
    part: Callable[[Mapping[str, Any], Draw], tuple[Mapping[str, Any], tuple[Any, ...]]]
    contenders: tuple[Contender, ...] = ()
    reference: str = ""
    wholly: bool = True
    refused: Callable[[Shape], str] = _possible


@dataclass(frozen=True)
class Asked:
    """A benchmark of an operation at one dtype and shape; the id reads `operation/dtype?rows=64&vocab=262144`."""

    operation: str
    dtype: str
    shape: Shape
    benchmark: Benchmark

    @property
    def path(self) -> str:
        """The id without the shape."""
        return f"{self.operation}/{self.dtype}"

    @property
    def id(self) -> str:
        """The whole id."""
        return f"{self.path}?{'&'.join(f'{key}={value}' for key, value in sorted(self.shape.items()))}"

    @property
    def arguments(self) -> Arguments:
        """Those of one call."""
        return self.benchmark.arguments(self.dtype, self.shape)

    @property
    def moved(self) -> Moved:
        """Bytes that one call must move."""
        return self.benchmark.moved(self.dtype, self.shape)


def contenders(asked: Asked, executor: str, beside: Sequence[str] = ()) -> Sequence[Contender]:
    """Those that have something to say on this executor, and whose names one of the globs means; stock always."""
    there = [one for one in asked.benchmark.contenders if executor in one.executors]
    if not beside:
        return there
    return [
        one
        for one in there
        if one.name == asked.benchmark.reference or any(fnmatchcase(one.name, text) for text in beside)
    ]
