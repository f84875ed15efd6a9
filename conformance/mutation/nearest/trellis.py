"""Wrong rules of the operations on trellis codes, beside those that their diagnosis suspects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.conformance.contracts.trellis_faults import layouts
from mlx_assay.conformance.mutation.nearest.answers import drawn, off_by_one
from mlx_assay.conformance.mutation.nearest.trial import EXECUTOR, Trial, Wrong
from mlx_assay.oracles import host_lut
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.trellis_layout import Packed
from mlx_assay.oracles.trellis_row import MISTAKES

FAR = 1 << 16
"""Weights that an index of 16 bits counts."""


def packed(trial: Trial) -> Packed:
    """The codes, and what their bits mean."""
    k, L, T = (trial.plain[name] for name in ("k", "L", "T"))
    return Packed(trial.plain["codes"], k, L, T, trial.plain["block_interleave"] is not None)


def reading(name: str) -> Wrong:
    """Another reading of the same codes, by the name that the diagnosis has for it, of a matrix of any size."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        plain = trial.plain
        for found in (other for known, other in layouts(packed(trial)) if known == name):
            if "x" in plain:
                given = (plain["x"], found, plain["scales"], trial.right.dtype)
                yield load("trellis_row").down_row(*given, EXECUTOR["simd_sum"])
            else:
                yield load("trellis_decode").trellis_decode(found, plain["scales"], plain["variant"], plain["form"])

    return Wrong(name, make)


def row(name: str, **changes: Any) -> Wrong:
    """The row, or the fold of partials, with another argument of its oracle."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        plain, oracle, dtype = trial.plain, load("trellis_row"), trial.right.dtype
        call = {"order": EXECUTOR["simd_sum"], "flush": False, **changes}
        if "partial" in plain:
            yield oracle.trellis_fold(plain["partial"], dtype, **call)
        elif "x" in plain:
            yield oracle.down_row(plain["x"], packed(trial), plain["scales"], dtype, **call)
        else:
            yield load("trellis_decode").trellis_decode(
                packed(trial), plain["scales"], plain["variant"], plain["form"], flush=call["flush"]
            )

    return Wrong(name, make)


def order(name: str) -> Wrong:
    """A SIMD group's sum in another order."""
    return row(f"the {name} order of a SIMD group's sum", order=name)


def mistake(name: str) -> Wrong:
    """A mistake that the oracle knows by this name."""
    return row(name, **MISTAKES[name])


def rows_without(name: str, rows: Callable[[Trial], slice | None]) -> Wrong:
    """The rule that leaves rows of x out."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        left_out = rows(trial)
        if left_out is not None:
            x = trial.plain["x"].copy()
            x[:, left_out] = 0
            yield trial.answer(x=x)

    return Wrong(name, make)


def _short_split(trial: Trial) -> slice | None:
    """The rows of the last split, where it has fewer than the others."""
    rows = trial.plain["rows"]
    each = -(-rows // 128)
    return slice(rows // each * each, None) if rows % each else None


def _scale_moved(trial: Trial) -> Iterator[np.ndarray]:
    scales = trial.plain["scales"]
    if scales is not None:
        yield trial.answer(scales=np.roll(scales, -1))


def _wider(trial: Trial, step: int) -> Iterator[np.ndarray]:
    """States of a bit more or less, of codes of as many bits as before."""
    if 1 <= trial.plain["L"] + step <= 24:
        yield trial.answer(L=trial.plain["L"] + step)


def _other_k(trial: Trial) -> Iterator[np.ndarray]:
    """The codes of a matrix of k's neighbour, as far as they go."""
    codes, k = trial.plain["codes"], trial.plain["k"]
    other = k - 1 if k > 2 else k + 1
    if trial.plain["block_interleave"] is not None:
        return
    words = trial.plain["cols"] * other // 32
    read = np.zeros((len(codes), words), codes.dtype)
    read[:, : codes.shape[1]] = codes[:, :words]
    yield trial.answer(codes=read, k=other)


def one_bit(turn: int) -> Wrong:
    """The rule that reads one drawn bit of each block as 0."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        codes, k, T = (trial.plain[name] for name in ("codes", "k", "T"))
        bit = drawn(trial, 0, T * k, turn)
        read = codes.copy()
        read[..., bit // 32 :: T * k // 32] &= ~np.uint32(1 << bit % 32)
        yield trial.answer(codes=read)

    return Wrong(f"one drawn bit of each block read as 0, {turn}", make)


def one_state(turn: int) -> Wrong:
    """The rule whose value of one drawn state is off by its last bit, or the one beside it."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        codes = packed(trial)
        state = drawn(trial, 0, 1 << codes.L, turn)
        if "x" not in trial.plain:
            yield off_by_one(trial.right, codes.states(codes.words) == state)
            return
        table = host_lut.unrefined(codes.L).copy()
        table[state] = np.nextafter(table[state], np.float32(9))
        dtype = trial.right.dtype
        yield load("trellis_row").down_row(
            trial.plain["x"], codes, trial.plain["scales"], dtype, EXECUTOR["simd_sum"], table=lambda L: table
        )

    return Wrong(f"one drawn state of a value that is off by its last bit, {turn}", make)


def _one_sum(turn: int) -> Wrong:
    def make(trial: Trial) -> Iterator[np.ndarray]:
        yield off_by_one(trial.right, trial.plain["sums"] == drawn(trial, -510, 511, turn))

    return Wrong(f"one drawn sum of a value that is off by its last bit, {turn}", make)


def _other_dtype(trial: Trial) -> Iterator[np.ndarray]:
    """Scales read from their bytes as if they were of float16."""
    scales = trial.plain["scales"]
    if scales.dtype != np.float16:
        yield trial.answer(scales=np.ascontiguousarray(scales).view(np.float16)[: len(scales)])


def _cut_weights(trial: Trial) -> Iterator[np.ndarray]:
    """Stored weights cut to bfloat16, where they are rounded."""
    wide = trial.answer(variant=5, form=trial.plain["form"] or load("trellis_decode").VARIANTS[trial.plain["variant"]])
    yield (wide.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def _stored(trial: Trial) -> Iterator[np.ndarray]:
    yield trial.right.astype(ml_dtypes.bfloat16).astype(np.float32)


def _minus_zero(trial: Trial) -> Iterator[np.ndarray]:
    """The sum of -0 alone, which +0 before it makes +0."""
    alone = (trial.plain["partial"] == 0).all((0, 1)) & np.signbit(trial.plain["partial"]).all((0, 1))
    yield np.where(alone, trial.right.dtype.type(-0.0), trial.right)


MINUS_ZERO = Wrong("a sum that begins at -0", _minus_zero)
STORED = Wrong("values rounded to bfloat16 as stored weights are", _stored)
SCALES_HALF = Wrong("scales read as if they were of float16", _other_dtype)
CUT_WEIGHTS = Wrong("stored weights that are cut", _cut_weights)
OTHERWISE = row("denormals that are flushed", flush=True)
WRAP = reading("bits that do not wrap around a block's end")
BYTES = reading("each word's bytes in reverse")
BITS = reading("each byte's bits in reverse")
UPWARD = reading("positions taken from a block's first bit upward")
SWAPPED = reading("the two blocks of each pair swapped")
BACKWARD = reading("blocks in reverse")
ROW_BY_ROW = reading("interleaved codes read row by row")
SHORT_SPLIT = rows_without("the last, short split left out", _short_split)
LAST_ROW = rows_without("the last row left out", lambda trial: slice(-1, None))
FAR_ROWS = rows_without(
    f"what lies past {FAR:,} weights left out",
    lambda trial: slice(FAR // trial.plain["cols"], None) if trial.plain["rows"] * trial.plain["cols"] > FAR else None,
)
SCALE_MOVED = Wrong("the scale of the next row", _scale_moved)
WIDER = Wrong("a window of one bit more", lambda trial: _wider(trial, 1))
NARROWER = Wrong("a window of one bit less", lambda trial: _wider(trial, -1))
OTHER_K = Wrong("codes of k's neighbour", _other_k)
ONE_SUM = tuple((_one_sum(turn),) for turn in range(4))
ONE_STATE = tuple((one_state(turn),) for turn in range(4))
ONE_BIT = tuple((one_bit(turn),) for turn in range(4))
