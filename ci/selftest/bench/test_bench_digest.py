"""The digest: the device's and NumPy's are one, and every bit counts."""

from __future__ import annotations

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.conformance.bench import digest as module
from mlx_assay.conformance.bench.digest import OnDevice, digest

KEY = (0x12345678, 0x9ABCDEF0)


def by_hand(words: list[int], half: int) -> int:
    """The sum, in Python's integers."""

    def mixed(word: int) -> int:
        word = (word ^ word >> 16) * 0x85EBCA6B % 2**32
        word = (word ^ word >> 13) * 0xC2B2AE35 % 2**32
        return word ^ word >> 16

    places = (mixed(place * 0x9E3779B1 % 2**32 ^ half) for place in range(len(words)))
    return sum(mixed(word ^ place) for word, place in zip(words, places, strict=True)) % 2**32


@pytest.mark.parametrize("dtype", [np.uint32, np.float32, np.float16, ml_dtypes.bfloat16, np.uint8])
def test_it_is_the_sum_that_is_written_down(dtype: type) -> None:
    array = np.arange(-40, 40).astype(np.int64).astype(dtype).reshape(4, 20)
    words = array.reshape(-1).view(f"u{array.dtype.itemsize}")
    assert digest(array, KEY) == tuple(by_hand([int(word) for word in words], half) for half in KEY)


@pytest.mark.parametrize("bits", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_device_agrees(bits: type, compiled: bool) -> None:
    words = np.random.Philox(key=3).random_raw(1000).astype(bits).reshape(10, 100)
    on_device = OnDevice(mx, compiled)
    on_device.ready()
    assert on_device(mx.array(words), KEY) == digest(words, KEY)
    assert on_device(mx.array(words)[1:, ::3], KEY) == digest(words[1:, ::3].copy(), KEY)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 127, 128, 200])
def test_pieces_make_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 64)
    words = np.random.Philox(key=5).random_raw(size).astype(np.uint16)
    assert OnDevice(mx, True)(mx.array(words), KEY) == digest(words, KEY)


def test_a_large_one_takes_little_memory_beside_itself() -> None:
    words = np.random.Philox(key=6).random_raw(2 * module.PIECE).astype(np.uint8)
    held = mx.array(words)
    on_device = OnDevice(mx, True)
    on_device.ready()
    mx.eval(held)
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    assert on_device(held, KEY) == digest(words, KEY)
    assert mx.get_peak_memory() - before <= 40 * module.PIECE


def test_nothing_of_its_kernel_is_made_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.arange(100, dtype=np.uint32)
    on_device = OnDevice(mx, True)
    on_device.ready()
    for name in ("_sum", "_mixed"):
        monkeypatch.setattr(module, name, None)
    for name in ("arange", "eval", "array", "compile"):
        monkeypatch.setattr(mx, name, None)
    found = on_device(on_device._array(words), KEY)
    monkeypatch.undo()
    assert found == digest(words, KEY)


def test_every_bit_and_every_place_counts() -> None:
    words = np.random.Philox(key=4).random_raw(64).astype(np.uint32)
    seen = {digest(words, KEY)}
    for place in range(64):
        for bit in range(32):
            other = words.copy()
            other[place] ^= np.uint32(1 << bit)
            seen.add(digest(other, KEY))
    assert len(seen) == 1 + 64 * 32
    assert digest(words[::-1].copy(), KEY) not in seen
    assert digest(words, (KEY[0], KEY[1] + 1)) not in seen
