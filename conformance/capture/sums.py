"""Questions about the order in which a simdgroup adds and multiplies: operands that tell the known orders apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.conformance.capture.question import UNKNOWN, Kind, Question, Words
from mlx_assay.conformance.judging.order import diagnose
from mlx_assay.oracles.accumulation import Groups, Lanes, same_bits

LANES, ROWS = 32, 4
SWITCH_ORDERS = ("ascending-butterfly", "descending-butterfly", "sequential", "reverse-sequential")
DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
_TYPES = {"f32": ("float", "uint"), "f16": ("half", "ushort"), "bf16": ("bfloat16_t", "ushort")}
_SCALES = {
    "f32": np.array([(20, 0)] * ROWS),
    "f16": np.array([(8, 0), (8, 0), (8, -10), (8, -10)]),
    "bf16": np.array([(20, 0), (20, 0), (5, 0), (5, 0)]),
}
"""Binary exponents of each row's large and small numbers, so that sums in float32 and in the dtype itself lose bits."""

_ADDENDS_KEY, _FACTORS_KEY = 5, 16
_LANES_DIFFER = "the lanes' results differ"
Operation = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _drawn(key: int) -> np.ndarray:
    """uint64 [rows, lanes]: the same on every machine."""
    return np.random.Philox(key=key).random_raw(ROWS * LANES).astype(np.uint64).reshape(ROWS, LANES)


@cache
def addends(kind: Kind) -> np.ndarray:
    """[rows, 32] of both signs: pairs of large numbers that cancel, and small ones of which each order loses others."""
    drawn = _drawn(_ADDENDS_KEY)
    fraction = 1 + (drawn & np.uint64(0x7F)).astype(np.float64) / 2**7
    small = fraction * np.where(drawn >> np.uint64(63), -1.0, 1.0)
    large, small = (
        part * np.exp2(scale)[:, None]
        for part, scale in zip((fraction[:, : LANES // 4], small), _SCALES[kind].T, strict=True)
    )
    values = np.concatenate([large, -large, small[:, LANES // 2 :]], axis=1)
    place = np.argsort(drawn >> np.uint64(8), axis=1)
    return np.take_along_axis(values, place, axis=1).astype(np.float32).astype(DTYPES[kind])


@cache
def factors() -> np.ndarray:
    """float32 [rows, 32] of 0.75 to 1.25."""
    return (0.75 + (_drawn(_FACTORS_KEY) & np.uint64(0xFFFFFF)).astype(np.float64) / 2**25).astype(np.float32)


def words(values: np.ndarray) -> Words:
    """The encodings, flat."""
    return tuple(int(word) for word in values.view(f"u{values.itemsize}").reshape(-1))


def _values(results: Words, kind: Kind) -> np.ndarray:
    """[rows, 32]."""
    dtype = DTYPES[kind]
    return np.array(results, f"u{dtype.itemsize}").view(dtype).reshape(ROWS, LANES)


def ordered(values: np.ndarray, order: str, operation: Operation) -> np.ndarray:
    """[rows]: values [rows, n] in one of SWITCH_ORDERS, each step rounded to their dtype."""
    if order == "reverse-sequential":
        return ordered(values[:, ::-1], "sequential", operation)
    if order == "sequential":
        total = values[:, 0]
        for i in range(1, values.shape[1]):
            total = operation(total, values[:, i])
        return total
    while (half := values.shape[1] // 2) >= 1:
        ascending = order == "ascending-butterfly"
        pairs = (values[:, ::2], values[:, 1::2]) if ascending else (values[:, :half], values[:, half:])
        values = operation(*pairs)
    return values[:, 0]


def _prefixes(values: np.ndarray, order: str) -> np.ndarray:
    """[rows, 32]: a ladder for butterflies, in which each lane adds the one below it at the distance."""
    if not order.endswith("butterfly"):
        columns = [ordered(values[:, : i + 1], order, np.add) for i in range(values.shape[1])]
        return np.stack(columns, axis=1)
    distances = [1, 2, 4, 8, 16]
    for d in distances if order == "ascending-butterfly" else distances[::-1]:
        values = np.concatenate([values[:, :d], values[:, d:] + values[:, :-d]], axis=1)
    return values


def _strided(order: str) -> Iterator[tuple[str, Callable[[np.ndarray, Operation], np.ndarray]]]:
    for count in (2, 4, 8, 16):
        for contiguous in (False, True):
            dealt = Lanes(count, contiguous=contiguous)

            def multiplied(values: np.ndarray, operation: Operation, dealt: Lanes = dealt) -> np.ndarray:
                parts = dealt.dealt(values, 1.0)
                each = [ordered(parts[:, i], "sequential", operation) for i in range(dealt.count)]
                return ordered(np.stack(each, axis=1), order, operation)

            yield f"{count} contiguous parts, {order}" if contiguous else f"stride {count}, {order}", multiplied


def products() -> Iterator[tuple[str, np.ndarray]]:
    """Every order of products that is known, by name, with its results [rows]."""
    for order in SWITCH_ORDERS:
        yield order, ordered(factors(), order, np.multiply)
    for order in SWITCH_ORDERS:
        for name, multiplied in _strided(order):
            yield name, multiplied(factors(), np.multiply)


def _summed(kind: Kind) -> Callable[[Words], str]:
    def answer(results: Words) -> str:
        got, values = _values(results, kind), addends(kind)
        if not _uniform(got):
            return _LANES_DIFFER
        total = np.ascontiguousarray(got[:, 0])
        found = diagnose(total, values)
        for order in SWITCH_ORDERS:
            for wide in (False, True):
                if _plain(values, order, wide).tobytes() == total.tobytes():
                    return f"{order}, in float32" if wide and kind != "f32" else order
        return found.matches[0].name if found.matches else UNKNOWN

    return answer


def _plain(values: np.ndarray, order: str, wide: bool) -> np.ndarray:
    group = Groups(None, "reverse" if order == "reverse-sequential" else order)  # type: ignore[arg-type]
    return group(values.astype(np.float32) if wide else values).astype(values.dtype)[:, 0]


def _multiplied(results: Words) -> str:
    got = _values(results, "f32")
    if not _uniform(got):
        return _LANES_DIFFER
    for name, product in products():
        if np.all(same_bits(product, np.ascontiguousarray(got[:, 0]))):
            return name
    return UNKNOWN


def _scanned(results: Words) -> str:
    got = _values(results, "f32")
    for order in SWITCH_ORDERS:
        if np.all(same_bits(_prefixes(addends("f32"), order), got)):
            return order
    return UNKNOWN


def _uniform(values: np.ndarray) -> bool:
    return bool(np.all(same_bits(values, np.ascontiguousarray(np.broadcast_to(values[:, :1], values.shape)))))


def _question(
    name: str, call: str, kind: Kind, operands: np.ndarray, answer: Callable[[Words], str], wide: bool = False
) -> Question:
    type_, word = _TYPES[kind]
    return Question(
        name,
        f"{call} of {ROWS} x 32 numbers, in every lane",
        kind,
        words(operands),
        ROWS * LANES,
        f"{type_} v = as_type<{type_}>({word}(a[at])); {type_} t = {call}(v); r[at] = as_type<{word}>(t);",
        answer,
        {order: f"{order}, in float32" if wide else order for order in SWITCH_ORDERS},
        "simd_sum",
        group="simdgroups",
    )


QUESTIONS = (
    _question("simd-sum.f32", "simd_sum", "f32", addends("f32"), _summed("f32")),
    _question("simd-sum.f16", "simd_sum", "f16", addends("f16"), _summed("f16")),
    _question("simd-sum.bf16", "simd_sum", "bf16", addends("bf16"), _summed("bf16"), wide=True),
    _question("simd-product.f32", "simd_product", "f32", factors(), _multiplied),
    _question("simd-prefix-sum.f32", "simd_prefix_inclusive_sum", "f32", addends("f32"), _scanned),
)
