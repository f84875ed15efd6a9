"""Diagnoses of planted outputs: each wrong in one known way, the first thing said of it, and twins that are silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance.diagnosis.claim import ORDER, PLACES
from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.diagnosis.pattern import pattern, told
from mlx_assay.conformance.judging.ulp import encodings
from mlx_assay.conformance.record import Pattern

BF16, F16, F32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32)
U32, I32 = np.dtype(np.uint32), np.dtype(np.int32)
Shape = tuple[int, ...]
Corrupt = Callable[[np.ndarray, np.random.Generator], Any]


def numbers(dtype: np.dtype[Any], shape: Shape, seed: int = 0) -> np.ndarray:
    """Normal numbers, or ids below 200,000."""
    rng = np.random.default_rng([seed, *shape])
    if dtype.kind in "ui":
        return rng.integers(0, 200_000, shape).astype(dtype)
    return np.asarray(rng.standard_normal(shape, dtype=np.float32)).astype(dtype)


def seen(want: np.ndarray, got: np.ndarray, **more: Any) -> Pattern:
    at = np.flatnonzero(encodings(np.ascontiguousarray(got)).reshape(-1) != encodings(want).reshape(-1))
    assert at.size, "the planted output must differ"
    return pattern(Evidence(np.ascontiguousarray(got), want, at, **more))


def flipped(got: np.ndarray, where: Any, mask: int = 0b1011) -> None:
    """Garbles low bits at some places."""
    bits = encodings(got)
    bits[where] ^= bits.dtype.type(mask)


def garbled(where: Any) -> Corrupt:
    """Other numbers at places that an index chooses."""

    def corrupt(got: np.ndarray, rng: np.random.Generator) -> None:
        other = numbers(got.dtype, got.shape, 77)
        got[where] = other[where]

    return corrupt


def put(where: Any, value: Any) -> Corrupt:
    def corrupt(got: np.ndarray, rng: np.random.Generator) -> None:
        got[where] = value

    return corrupt


def made(make: Callable[[np.ndarray], np.ndarray]) -> Corrupt:
    """A whole output from the right one."""
    return lambda got, rng: make(got)


def by_bits(make: Callable[[np.ndarray], np.ndarray]) -> Corrupt:
    return lambda got, rng: np.ascontiguousarray(make(encodings(got))).view(got.dtype)


def rolled_rows(got: np.ndarray) -> np.ndarray:
    turned = got.copy()
    turned[[3, 7]] = got[[7, 3]]
    return turned


ALL = np.s_[...]
PLANTED: list[tuple[str, np.dtype[Any], Shape, Corrupt, str]] = [
    # Places.
    ("everywhere", F32, (4, 96), garbled(ALL), "everywhere"),
    ("a tile of 1024", BF16, (2, 4096), garbled(np.s_[:, 1024:2048]), "tile"),
    ("a tile of 32", F32, (256,), garbled(np.s_[64:96]), "tile"),
    ("two tiles of 256", F16, (3, 2048), garbled(np.s_[:, np.r_[256:512, 1024:1280]]), "tile"),
    ("some of a tile", F32, (1, 8192), garbled(np.s_[:, 4096:5000:7]), "stride"),
    ("a tile of rows", F32, (128, 40), garbled(np.s_[64:96]), "tile"),
    ("the tail behind 1024", BF16, (3, 1100), garbled(np.s_[:, 1024:]), "tail"),
    ("the tail behind 32", F32, (5, 77), garbled(np.s_[:, 64:]), "tail"),
    ("the last column", BF16, (8, 1024), garbled(np.s_[:, -1]), "last-column"),
    ("the first column", F32, (9, 100), garbled(np.s_[:, 0]), "first-column"),
    ("the last row", F16, (17, 64), garbled(np.s_[-1]), "tail"),
    ("the last row of 12", F16, (12, 64), garbled(np.s_[-1]), "last-row"),
    ("the first row", F32, (12, 64), garbled(np.s_[0]), "first-row"),
    ("rows from 64 on", F32, (96, 10), garbled(np.s_[64:]), "tail"),
    ("rows from 64 on, of 200", F32, (200, 10), garbled(np.s_[64:]), "beyond"),
    ("three rows", F32, (64, 50), garbled(np.s_[[3, 20, 41]]), "rows"),
    ("two columns", F32, (40, 50), garbled(np.s_[:, [13, 40]]), "columns"),
    ("one lane", F32, (2, 1024), garbled(np.s_[:, 5::32]), "lane"),
    ("every 33rd", BF16, (4096,), garbled(np.s_[::33]), "stride"),
    ("odd places", F32, (600,), garbled(np.s_[1::2]), "stride"),
    ("every seventh", F16, (3, 700), garbled(np.s_[:, 2::7]), "stride"),
    ("a byte of each word", BF16, (1024,), garbled(np.arange(1024) % 32 // 8 == 2), "lane"),
    ("half a simdgroup", F32, (2048,), garbled(np.arange(2048) % 32 >= 16), "lane"),
    ("a run", F32, (4, 1000), garbled(np.s_[:, 101:164]), "run"),
    ("from 2^16 on", U32, (66_000,), garbled(np.s_[65_536:]), "tail"),
    ("from 2^16 on, of 100000", U32, (100_000,), garbled(np.s_[65_536:]), "beyond"),
    ("a block", F32, (48, 1024), garbled(np.s_[16:32, 512:768]), "tile"),
    ("a checkerboard", F32, (48, 64), garbled(np.add.outer(np.arange(48), np.arange(64)) % 2 == 1), "stride"),
    # Copies.
    ("zeros", BF16, (3, 100), put(np.s_[:, 3:90], 0), "zeros"),
    ("the first row's for all", F32, (5, 64), put(ALL, numbers(F32, (5, 64))[0]), "repeated-row"),
    ("the first id for all", U32, (9,), put(ALL, numbers(U32, (9,))[0]), "repeated-row"),
    ("two rows swapped", F32, (12, 40), made(rolled_rows), "swapped-rows"),
    ("transposed", F32, (32, 48), made(lambda got: got.T.reshape(got.shape)), "transposed"),
    ("reversed", F16, (2, 100), made(lambda got: got[:, ::-1]), "reversed"),
    ("shifted by one", F32, (1000,), made(lambda got: np.append(got[1:], got[:1])), "shifted"),
    ("shifted by 32", BF16, (2, 512), made(lambda got: np.roll(got.reshape(-1), 32).reshape(got.shape)), "shifted"),
    ("shifted by a row", F32, (7, 96), made(lambda got: np.roll(got, 1, 0)), "swapped-rows"),
    ("turned row by row", F32, (8, 1024), made(lambda got: np.roll(got, 1, 1)), "shifted"),
    ("rows of 16 further on", F32, (48, 40), put(np.s_[:32], numbers(F32, (48, 40))[16:48]), "shifted"),
    ("rows of anywhere", F32, (48, 40), put(np.s_[:16], numbers(F32, (48, 40))[16 + np.arange(16) * 5 % 16]),
     "swapped-rows"),
    ("each row's first value", F32, (12, 64), made(lambda got: np.repeat(got[:, :1], 64, 1)), "repeated-column"),
    ("neighbours swapped", BF16, (6, 64), made(lambda got: got[:, np.arange(64) ^ 1]), "permuted"),
    ("ids in order", U32, (64, 32), made(lambda got: np.sort(got, 1)), "permuted"),
    # Ids.
    ("the next id", U32, (40,), made(lambda got: got + 1), "off-by-one"),
    ("the id before", I32, (4,), made(lambda got: got - 1), "off-by-one"),
    ("ids of 16 bits", U32, (30,), made(lambda got: got & 0xFFFF), "modulo"),
    ("the tile's offset", U32, (30,), made(lambda got: got % 1024), "tile-lost"),
    ("ids 16 too high", U32, (30,), made(lambda got: got + 16), "offset"),
    # Values.
    ("the sign", F32, (300,), made(lambda got: -got), "sign"),
    ("the sign lost", F32, (300,), made(np.abs), "sign"),
    ("one more than right", F32, (4, 300), made(lambda got: got + 1), "offset"),
    ("halves swapped", F32, (300,), by_bits(lambda bits: bits >> 16 | bits << 16), "byte-order"),
    ("of another row, by another sum", F32, (200,),
     by_bits(lambda bits: bits + np.where(np.arange(200) % 9, np.arange(200) % 5 + 1, 3000).astype(np.uint32)),
     "few-ulps"),
    ("one of a bfloat16's values", F32, (4, 1000), put(np.s_[2, 300:400], 7.0), "constant"),
    ("all one value", F32, (12, 64), put(ALL, numbers(F32, (12, 64))[0, 0]), "constant"),
    ("this suite's poison", BF16, (12, 64), put(np.s_[5:], np.uint16(0x7B7B).view(BF16)), "unwritten"),
    ("bytes reversed", F32, (300,), by_bits(lambda bits: bits.byteswap()), "byte-order"),
    ("bytes of halves", BF16, (300,), by_bits(lambda bits: bits.byteswap()), "byte-order"),
    ("NaN", F16, (300,), put(np.s_[[3, 50, 121, 122, 280]], np.nan), "nan-extra"),
    ("infinities", F16, (300,), put(np.s_[[3, 50, 121, 122, 280]], np.inf), "infinity-extra"),
    ("saturated", F32, (300,), made(lambda got: np.clip(got, -1, 1)), "saturated"),
    ("doubled", BF16, (300,), made(lambda got: (got.astype(F32) * 2).astype(BF16)), "scaled"),
    ("rounded to bfloat16", F32, (300,), made(lambda got: got.astype(BF16).astype(F32)), "narrow"),
    ("cut to bfloat16", F32, (300,), by_bits(lambda bits: bits & np.uint32(0xFFFF0000)), "truncated"),
    ("one less in size", F32, (300,), by_bits(lambda bits: bits - 1), "truncated"),
    ("one more in size", F16, (300,), by_bits(lambda bits: bits + 1), "rounded-up"),
    ("one off", BF16, (300,), by_bits(lambda bits: bits + np.where(np.arange(300) % 5 < 3, 1, -1).astype(bits.dtype)),
     "last-place"),
    ("a byte of a word", F32, (300,), by_bits(lambda bits: bits ^ (np.arange(300).astype(np.uint32) % 7 + 1 << 8)),
     "byte-lane"),
    ("a constant", F32, (300,), put(np.s_[[1, 77, 78, 200]], 0.25), "constant"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "shape", "corrupt", "kind"), PLANTED, ids=[row[0] for row in PLANTED])
def test_the_first_diagnosis(name: str, dtype: np.dtype[Any], shape: Shape, corrupt: Corrupt, kind: str) -> None:
    want = numbers(dtype, shape)
    got = want.copy()
    other = corrupt(got, np.random.default_rng(1))
    found = seen(want, got if other is None else np.asarray(other, dtype))
    assert (found.diagnoses[0].kind, found.diagnoses[0].covers > 0) == (kind, True), found.diagnoses
    assert bool(told(found)) == (kind != "everywhere")


def overflowing(dtype: np.dtype[Any], shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    want = numbers(dtype, shape) * np.float32(1e5)
    with np.errstate(over="ignore"):
        return want, want.astype(F16).astype(F32)


def test_infinities_of_a_narrower_type_belong_to_its_rounding() -> None:
    want, got = overflowing(F32, (12, 100))
    found = seen(want, got)
    assert (found.diagnoses[0].kind, found.diagnoses[0].covers) == ("narrow", int((got != want).sum()))
    assert found.diagnoses[1].kind == "infinity-extra"


WORDED = [
    (np.roll(numbers(F32, (8, 96)), 1, 1), "shifted: each holds what belongs 1 place behind, each row by itself"),
    (np.abs(numbers(F32, (8, 96))), "the sign is lost: positive where negative is expected"),
    (-numbers(F32, (8, 96)), "the sign is flipped"),
    (np.sort(numbers(F32, (8, 96)), 1), "each row's values in another order: rising"),
]


@pytest.mark.parametrize(("got", "text"), WORDED, ids=[row[1] for row in WORDED])
def test_the_first_diagnosis_says(got: np.ndarray, text: str) -> None:
    assert seen(numbers(F32, (8, 96)), got).diagnoses[0].text == text


@pytest.mark.parametrize("row", [row for row in PLANTED if row[-1] != "everywhere"], ids=lambda row: row[0])
def test_that_all_differs_is_said_last(row: Any) -> None:
    _, dtype, shape, corrupt, _ = row
    want = numbers(dtype, shape)
    got = want.copy()
    other = corrupt(got, np.random.default_rng(1))
    kinds = [one.kind for one in seen(want, got if other is None else np.asarray(other, dtype)).diagnoses]
    assert "everywhere" not in kinds[:-1]
    assert not ("saturated" in kinds and "constant" in kinds)


STREWN = [
    (dtype, shape, count)
    for dtype, shape in ((F32, (16, 300)), (BF16, (4, 1025)), (F16, (900,)), (U32, (400,)), (F32, (3, 7, 65)))
    for count in (5, 40)
]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("dtype", "shape", "count"), STREWN)
def test_places_strewn_at_random_have_no_pattern(dtype: np.dtype[Any], shape: Shape, count: int, seed: int) -> None:
    want, rng = numbers(dtype, shape), np.random.default_rng([seed, count])
    got = want.copy()
    where = rng.choice(want.size, count, replace=False)
    got.reshape(-1)[where] = numbers(dtype, shape, 5 + seed).reshape(-1)[where]
    found = seen(want, got)
    assert [one.kind for one in found.diagnoses] == ["none"], found.diagnoses
    assert found.diagnoses[0].text.startswith(f"no pattern: {count} of {want.size} places")
    assert told(found) == ""


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_places_strewn_at_random_are_given_no_part_of_the_output(count: int) -> None:
    for seed in range(40):
        want, rng = numbers(F32, (8, 4000)), np.random.default_rng([seed, count])
        got = want.copy()
        where = rng.choice(np.arange(300, want.size - 300), count, replace=False)
        got.reshape(-1)[where] += 1.5
        kinds = {one.kind for one in seen(want, got).diagnoses}
        assert kinds & PLACES <= {"one-place", "none", "rows"}, (seed, kinds)


def test_half_of_a_fault_says_how_many_places_it_accounts_for() -> None:
    want = numbers(F32, (400,))
    got = want.copy()
    got[10:60] = 0
    got[np.arange(100, 400, 13)] *= -3.7
    found = seen(want, got)
    assert [(one.kind, one.covers) for one in found.diagnoses[:1]] == [("zeros", 50)]
    assert "(50 of 74 places)" in found.diagnoses[0].text


def test_every_kind_that_is_claimed_has_its_place_in_the_order() -> None:
    assert len(set(ORDER)) == len(ORDER)
    assert {row[-1] for row in PLANTED} <= set(ORDER)
