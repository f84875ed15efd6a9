"""Ways in which operations on trellis codes go wrong: for a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.conformance.contract import EXECUTOR, Arguments
from mlx_assay.fixtures.tensor import DTYPES
from mlx_assay.oracles import fused
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.trellis_layout import Packed

HEAVY = 1 << 17
"""Weights beyond which a matrix is not decoded again for each suspicion."""
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT32 = np.dtype(np.float32)
Make = Callable[[], np.ndarray]


class _Unwrapped(Packed):
    """Windows that end with their block: what would wrap around is zero."""

    def states(self, words: np.ndarray) -> np.ndarray:
        whole = super().states(words).reshape(len(words), -1, self.T)
        bits = np.minimum((np.arange(self.T) + 1) * self.k, 31)
        return np.asarray((whole & ((np.int64(1) << bits) - 1)).astype(np.int32).reshape(len(words), -1))


def layouts(packed: Packed) -> Iterator[tuple[str, Packed]]:
    """Other readings of the same codes."""
    words = packed.words
    own = packed[1:4]
    yield "bits that do not wrap around a block's end", _Unwrapped(words, *own)
    yield "positions taken from a block's first bit upward", Packed(_backward(words, *own), *own)
    yield "each byte's bits in reverse", Packed(_mirrored(words), *own)
    yield "each word's bytes in reverse", Packed(words.byteswap(), *own)
    if words.shape[1] % 2 == 0:
        swapped = np.ascontiguousarray(words.reshape(len(words), -1, 2)[..., ::-1]).reshape(words.shape)
        yield "the two words of each pair swapped", Packed(swapped, *own)
    size = packed.T * packed.k // 32
    blocks = words.reshape(len(words), -1, size)
    if blocks.shape[1] > 1:
        paired = blocks.shape[1] // 2 * 2
        crossed = blocks.copy()
        crossed[:, :paired] = (
            blocks[:, :paired].reshape(len(words), -1, 2, size)[:, :, ::-1].reshape(len(words), -1, size)
        )
        yield "the two blocks of each pair swapped", Packed(crossed.reshape(words.shape), *own)
        yield "blocks in reverse", Packed(np.ascontiguousarray(blocks[:, ::-1]).reshape(words.shape), *own)
    if packed.interleaved:
        yield "interleaved codes read row by row", Packed(packed.codes.reshape(words.shape), *own)
    yield "rows in reverse", Packed(np.ascontiguousarray(words[::-1]), *own)


def _mirrored(words: np.ndarray) -> np.ndarray:
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
    return np.packbits(bits, axis=-1, bitorder="big").view(np.uint32)


def _backward(words: np.ndarray, k: int, L: int, T: int) -> np.ndarray:
    """The symbols of each block in the other order."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
    turned = bits.reshape(len(words), -1, T, k)[:, :, ::-1].reshape(len(words), -1)
    return np.packbits(turned, axis=-1, bitorder="little").view(np.uint32)


def _packed(arguments: Arguments) -> Packed:
    k, L, T = (arguments[name] for name in ("k", "L", "T"))
    return Packed(arguments["codes"], k, L, T, arguments["block_interleave"] is not None)


def _flushes(arguments: Arguments) -> bool:
    return bool(arguments[EXECUTOR]["f32_denormals"] == "flushed")


def decoded(arguments: Arguments) -> Mapping[str, Make]:
    """Wrong weights by name, float32 [rows, cols] each."""
    if arguments["rows"] * arguments["cols"] > HEAVY:
        return {}
    oracle, packed, scales = load("trellis_decode"), _packed(arguments), arguments["scales"]
    variant, form, flush = arguments["variant"], arguments["form"], _flushes(arguments)

    def made(**changes: Any) -> np.ndarray:
        call = {"packed": packed, "scales": scales, "variant": variant, "form": form, "flush": flush, **changes}
        weights: np.ndarray = oracle.trellis_decode(**call)
        return weights

    found: dict[str, Make] = {}
    usual = form or oracle.VARIANTS[variant]
    for other in oracle.FORMS:
        if other != usual:
            found[f"the form {other}"] = partial(made, form=other)
    if scales is not None:
        found["weights that are not rounded to bfloat16"] = partial(made, variant=5, form=usual)
        found["weights rounded to bfloat16"] = partial(made, variant=0, form=usual)
        found["the first row's scale for all"] = partial(made, scales=np.full_like(scales, scales[0]))
        found["no scales"] = partial(made, scales=None)
        found["the scale of the row before"] = partial(made, scales=np.roll(scales, 1))
    for name, other in layouts(packed):
        found[name] = partial(made, packed=other)
    found["denormals otherwise"] = partial(made, flush=not flush)
    halved = lambda: made().astype(np.float16).astype(FLOAT32)  # noqa: E731
    found["weights rounded to float16"] = halved
    return found


def row(arguments: Arguments) -> Mapping[str, Make]:
    """Wrong rows by name, [1, cols] each."""
    if arguments["rows"] * arguments["cols"] > HEAVY:
        return {}
    oracle, packed = load("trellis_row"), _packed(arguments)
    x, scales, flush = arguments["x"], arguments["scales"], _flushes(arguments)
    order = str(arguments[EXECUTOR].get("simd_sum", "unknown"))
    dtype = x.dtype if arguments["output_dtype"] is None else DTYPES[arguments["output_dtype"]]

    def made(**changes: Any) -> np.ndarray:
        call = {"x": x, "packed": packed, "scales": scales, "dtype": dtype, "order": order, "flush": flush, **changes}
        sums: np.ndarray = oracle.down_row(**call)
        return sums

    found: dict[str, Make] = {name: partial(made, **changes) for name, changes in oracle.MISTAKES.items()}
    for other in fused.ORDERS:
        if other != order:
            found[f"the {other} order of a SIMD group's sum"] = partial(made, order=other)
    rows = packed.words.shape[0]
    backward = Packed(np.ascontiguousarray(packed.words[::-1]), *packed[1:4])
    found["rows added in descending order"] = partial(made, x=x[:, ::-1], packed=backward, scales=scales[::-1])
    if rows % oracle.SPLITS == 0 and rows > oracle.SPLITS:
        deal = np.arange(rows).reshape(-1, oracle.SPLITS).T.reshape(-1)
        strided = Packed(np.ascontiguousarray(packed.words[deal]), *packed[1:4])
        found["splits of rows that lie 128 apart"] = partial(made, x=x[:, deal], packed=strided, scales=scales[deal])
    for splits in (1, 32, 64):
        found[f"{splits} split{'s' * (splits > 1)} in place of 128"] = partial(
            _chained, arguments, dtype, order, splits
        )
    late = (x.astype(FLOAT32) * scales.astype(FLOAT32)).astype(FLOAT32)
    found["the scale applied to x"] = partial(made, x=late, scales=np.ones(rows, FLOAT32))
    found["the first row's scale for all"] = partial(made, scales=np.full_like(scales, scales[0]))
    found["no scales"] = partial(made, scales=np.ones(rows, FLOAT32))
    found["denormals otherwise"] = partial(made, flush=not flush)
    for half in (BFLOAT16, np.dtype(np.float16)):
        if x.dtype == FLOAT32:
            found[f"x rounded to {half}"] = partial(made, x=x.astype(half))
        if dtype == FLOAT32:
            found[f"sums rounded to {half}"] = partial(_narrowed, made, half)
    found["a result cut to bfloat16, not rounded,"] = partial(_cut, made, dtype)
    for name, other_packed in layouts(packed):
        found[name] = partial(made, packed=other_packed)
    return found


def _chained(arguments: Arguments, dtype: np.dtype[Any], order: str, splits: int) -> np.ndarray:
    """Chains of another length: so many splits of ceil(rows / splits) rows, folded as 128 are."""
    oracle, packed, flush = load("trellis_row"), _packed(arguments), _flushes(arguments)
    x, each = arguments["x"].reshape(-1).astype(FLOAT32), -(-arguments["rows"] // splits)
    weights = load("trellis_decode").trellis_decode(packed, arguments["scales"], flush=flush)
    partials = np.zeros((oracle.SPLITS, packed.cols), FLOAT32)
    for first in range(each):
        rows = slice(first, None, each)
        spread = np.broadcast_to(x[rows, None], weights[rows].shape)
        count = len(spread)
        partials[:count] = fused.fma(weights[rows], spread, partials[:count], flush)
    folded: np.ndarray = oracle.trellis_fold(partials[None], dtype, order, flush)
    return folded


def _narrowed(make: Make, dtype: np.dtype[Any]) -> np.ndarray:
    return np.asarray(make().astype(dtype).astype(FLOAT32))


def _kept(rows: np.ndarray, order: str, dtype: np.dtype[Any]) -> np.ndarray:
    """The fold of partials [128, cols] with every sum rounded to their own dtype."""
    lanes = np.zeros_like(rows[: fused.LANES])
    for first in range(0, len(rows), fused.LANES):
        lanes = np.asarray(rows[first : first + fused.LANES] + lanes)
    return np.asarray(fused.simd_sum(lanes, order, False).astype(FLOAT32).astype(dtype))[None]


def _cut(make: Callable[..., np.ndarray], dtype: np.dtype[Any]) -> np.ndarray:
    wide = make(dtype=FLOAT32)
    return np.asarray((wide.view(np.uint32) & np.uint32(0xFFFF0000)).view(FLOAT32).astype(dtype))


def values(arguments: Arguments) -> Mapping[str, Make]:
    """Wrong values of byte sums by name, float32 [n] each."""
    oracle, sums, own = load("trellis_decode"), arguments["sums"], arguments["form"]
    found: dict[str, Make] = {
        f"the form {form}": partial(oracle.trellis_code_values, sums, form) for form in oracle.SUM_FORMS if form != own
    }
    right = partial(oracle.trellis_code_values, sums, own)
    for half in (BFLOAT16, np.dtype(np.float16)):
        found[f"values rounded to {half}"] = partial(_narrowed, right, half)
    return found


def folded(arguments: Arguments) -> Mapping[str, Make]:
    """Wrong sums of partials by name, [1, cols] each; other orders are found by `addends`."""
    oracle, flush = load("trellis_row"), _flushes(arguments)
    own, dtype = str(arguments[EXECUTOR].get("simd_sum", "unknown")), DTYPES[arguments["output_dtype"]]
    found: dict[str, Make] = {}
    for order in fused.ORDERS:
        if order != own:
            name = f"the {order} order of a SIMD group's sum"
            found[name] = partial(oracle.trellis_fold, arguments["partial"], dtype, order, flush)
    right = partial(oracle.trellis_fold, arguments["partial"], order=own, flush=flush)
    found["a result cut to bfloat16, not rounded,"] = partial(_cut, right, dtype)
    found["denormals otherwise"] = partial(oracle.trellis_fold, arguments["partial"], dtype, own, not flush)
    for half in (BFLOAT16, np.dtype(np.float16)):
        found[f"sums kept in {half}"] = partial(_kept, arguments["partial"][0].astype(half), own, dtype)
    return found
