"""Sweeps of a device's functions: the stream, the correctly rounded values, and what is made of results."""

from __future__ import annotations

import hashlib
import random

import mpmath
import numpy as np
import pytest

from mlx_assay.conformance.capture import sweeps
from mlx_assay.conformance.capture.reference import FUNCTIONS, rounded
from mlx_assay.impl.executors import use

TRUE = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "log": mpmath.log,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sin": mpmath.sin,
    "tanh": mpmath.tanh,
}


def mixed(place: int) -> int:
    """MurmurHash3's finalizer, in Python's integers."""
    place ^= place >> 16
    place = place * 0x85EBCA6B % 2**32
    place ^= place >> 13
    place = place * 0xC2B2AE35 % 2**32
    return place ^ place >> 16


def test_the_stream_is_as_it_is_specified() -> None:
    floats = sweeps.stream("float32").view(np.uint32)
    assert floats.size == sweeps.STREAM == 2**20
    for place in (0, 1, 77, 2**19, 2**20 - 1):
        assert int(floats[place]) == place << 12 | mixed(place) & 0xFFF
    for dtype in ("float16", "bfloat16"):
        assert np.array_equal(sweeps.stream(dtype).view(np.uint16), np.arange(65536))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", sweeps.DTYPES)
def test_no_encoding_lies_nearer_to_the_true_value(function: str, dtype: str) -> None:
    arguments = sweeps.stream(dtype)
    with np.errstate(all="ignore"):
        inside = np.flatnonzero(np.isfinite(FUNCTIONS[function](arguments.astype(np.float64))))
    places = random.Random(f"{function}/{dtype}").sample(inside.tolist(), 40)
    chosen = arguments[places]
    for argument, found in zip(chosen, rounded(function, chosen), strict=True):
        word = found.view(f"u{found.itemsize}")
        if not np.isfinite(np.float64(found)) or not float(found):
            continue
        around = [np.array([int(word) + step], word.dtype).view(found.dtype)[0] for step in (-1, 0, 1)]
        with mpmath.workprec(300):
            true = TRUE[function](mpmath.mpf(float(argument)))
            below, own, above = (abs(true - mpmath.mpf(float(one))) for one in around)
        assert own <= below
        assert own <= above


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        ("exp", 2.0**-24, 0x3F800001),
        ("exp", -(2.0**-25), 0x3F7FFFFF + 1),
        ("exp2", -149.0, 1),
        ("exp2", -150.0, 0),
        ("tanh", 2.0**-30, 0x30800000),
        ("rsqrt", 4.0, 0x3F000000),
        ("log", 1.0, 0),
        ("exp", float("inf"), 0x7F800000),
        ("exp", float("-inf"), 0),
        ("rsqrt", 0.0, 0x7F800000),
    ],
)
def test_values_beside_midpoints_and_at_ends(function: str, argument: float, expected: int) -> None:
    assert int(rounded(function, np.array([argument], np.float32)).view(np.uint32)[0]) == expected


def test_without_mpmath_a_value_beside_a_midpoint_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mpmath", None)
    with pytest.raises(ImportError, match=r"mlx-assay\[precise\]"):
        rounded("exp", np.array([2.0**-24], np.float32))
    assert float(rounded("exp", np.array([1.0], np.float32))[0]) == np.float32(np.e)


def reference(function: str, dtype: str) -> np.ndarray:
    return rounded(function, sweeps.stream(dtype)).copy()


def test_correct_results_have_no_distance() -> None:
    made = sweeps.judged("exp", "fast", "float16", reference("exp", "float16"))
    assert (made.inexact, made.lost, made.special, made.worst_ulp, made.worst) == (0, 0, 0, 0, None)
    assert made.arguments == 65536
    assert 0 < made.normal < 65536


def test_the_worst_place_is_found_and_special_ones_are_kept_apart() -> None:
    results = reference("exp", "float16")
    words = results.view(np.uint16)
    one, half, denormal, nan, large = 0x3C00, 0x3800, 0x0001, 0x7E00, 0x7BFF
    words[one] += 3
    words[half] -= 1
    words[denormal] ^= 1
    words[nan] = 0x3C00
    words[large] = 0x3C00
    made = sweeps.judged("exp", "fast", "float16", results)
    assert (made.inexact, made.lost, made.special, made.worst_ulp) == (2, 0, 3, 3)
    assert made.worst is not None
    assert (made.worst.argument, int(made.worst.result, 16) - int(made.worst.reference, 16)) == ("3c00", 3)
    words[0xBC00] = 0x7C00
    made = sweeps.judged("exp", "fast", "float16", results)
    assert (made.inexact, made.lost, made.worst_ulp) == (3, 1, 3)


def test_the_digest_is_of_encodings_with_one_nan() -> None:
    bits = np.array([0x3F800000, 0x7F800001, 0xFFC01234, 0x80000000], np.uint32)
    expected = hashlib.sha256(bytes.fromhex("0000803f0000c07f0000c07f00000080")).hexdigest()
    assert sweeps.digest(bits.view(np.float32)) == expected
    assert bits[1] == 0x7F800001
    halves = np.array([0x3C00, 0xFC01], np.uint16).view(np.float16)
    assert sweeps.digest(halves) == hashlib.sha256(bytes.fromhex("003c007e")).hexdigest()


def test_host_computes_the_function_that_is_asked_in_the_way_that_is_asked() -> None:
    with use("host"):
        for function in FUNCTIONS:
            made = sweeps.judged(function, "precise", "float16", sweeps._run(function, "precise", "float16"))
            assert (made.worst_ulp <= 1, made.lost, made.inexact < 10) == (True, 0, True), function
        fast = sweeps.judged("tanh", "fast", "float16", sweeps._run("tanh", "fast", "float16"))
    # The formula by exponentials loses small arguments.
    assert fast.lost > 1000
