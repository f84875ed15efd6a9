"""Integer division has a result for every pair of operands, and no pair ends the process."""

from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from machine import EXECUTOR

from mlx_assay.impl.executors import metal_kernel, use

TYPES = {"char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32}
TYPES |= {"uint": np.uint32, "long": np.int64, "ulong": np.uint64}


def run(source: str, kind: str, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> list[int]:
    kernel = metal_kernel("division", ["a", "b"], ["out"], f"uint i = thread_position_in_grid.x; {source}")
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=[mx.array(a), mx.array(b)],
            output_shapes=[(a.size,)],
            output_dtypes=[getattr(mx, np.dtype(TYPES[kind]).name)],
            grid=(a.size, 1, 1),
            threadgroup=(a.size, 1, 1),
        )
    return list(np.array(out).tolist())


def expected(a: int, b: int, bits: int, signed: bool) -> tuple[int, int]:
    """C's division, toward zero; by zero every bit set and the dividend; wrapped to the type."""
    quotient, remainder = (-1, a) if b == 0 else (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), 0)
    remainder = a if b == 0 else a - quotient * b
    wrapped = [v & ((1 << bits) - 1) for v in (quotient, remainder)]
    signs = [v - (1 << bits) if signed and v >> (bits - 1) else v for v in wrapped]
    return signs[0], signs[1]


@pytest.mark.parametrize("kind", TYPES)
def test_every_pair_of_edges_has_a_result(kind: str) -> None:
    info = np.iinfo(TYPES[kind])
    edges = [n for n in (info.min, info.min + 1, -7, -1, 0, 1, 2, 7, info.max - 1, info.max) if n >= info.min]
    pairs = [(a, b) for a in edges for b in edges]
    a, b = (np.array(column, TYPES[kind]) for column in zip(*pairs, strict=True))
    want = [expected(*pair, info.bits, info.min < 0) for pair in pairs]
    if kind in {"char", "uchar", "short", "ushort"}:
        # C computes these as int, which holds the quotient of the least number by -1.
        want = [expected(*pair, 32, True) for pair in pairs]
        want = [tuple(int(np.array(v).astype(TYPES[kind])) for v in w) for w in want]  # type: ignore[misc]
    assert run("out[i] = a[i] / b[i];", kind, a, b) == [q for q, _ in want]
    assert run("out[i] = a[i] % b[i];", kind, a, b) == [r for _, r in want]


@pytest.mark.parametrize("kind", ["int", "uint", "short"])
def test_vectors(kind: str) -> None:
    a, b = np.array([9, 9, 8, 7], TYPES[kind]), np.array([0, 2, 0, 3], TYPES[kind])
    minus = np.array(-1).astype(TYPES[kind])
    source = f"{kind}4 v = {kind}4(a[0], a[1], a[2], a[3]), w = {kind}4(b[0], b[1], b[2], b[3]);"
    assert run(f"{source} out[i] = (v / w)[i];", kind, a, b) == [minus, 4, minus, 2]
    assert run(f"{source} out[i] = (v % w)[i];", kind, a, b) == [9, 1, 8, 1]


def test_a_literal_zero() -> None:
    a = np.array([5, -5], np.int32)
    assert run("const int zero = 0; out[i] = a[i] / zero + b[i];", "int", a, a) == [4, -6]


def test_division_by_a_constant_is_left_to_the_compiler() -> None:
    from mlx_assay.impl.executors.division import untrapped

    text = "  %1 = sdiv i32 %0, 3\n  %2 = urem i32 %0, 8\n  %3 = sdiv exact i64 %0, 4\n"
    assert untrapped(text) == text
    assert untrapped("  %1 = sdiv i32 %0, -1\n") != "  %1 = sdiv i32 %0, -1\n"
