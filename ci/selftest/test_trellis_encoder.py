"""Packed words and the encoder: inverse to each other, closed to rings, and near the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlx_assay.fixtures import trellis_words
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.trellis_encoder import Coder, encoded, lut, scales_of

MSE = {2: 0.13, 3: 0.04, 4: 0.012}
"""What a unit Gaussian may lose at k bits a weight."""

bits = pytest.mark.parametrize("k", [2, 3, 4])


def gaussian(rows: int, cols: int, seed: int = 0) -> np.ndarray:
    return Draw(seed).normal(np.dtype(np.float32), (rows, cols))


def decoded(codes: np.ndarray, scales: np.ndarray, k: int, L: int) -> np.ndarray:
    states = trellis_words.states_of(codes.reshape(-1, 8 * k), k, L)
    return np.asarray(lut(L)[states].reshape(len(codes), -1) * scales[:, None].astype(np.float32))


@bits
def test_packing_is_undone(k: int) -> None:
    symbols = Draw(k).integers(0, 1 << k, (3, 2, 256))
    words = trellis_words.packed(symbols, k)
    assert words.shape == (3, 2, 8 * k)
    assert np.array_equal(trellis_words.symbols_of(words, k), symbols)


@bits
def test_packed_bits_lie_where_the_format_says(k: int) -> None:
    """Position t at bit (255 - t) * k of the block, the word's least significant bit first."""
    for t, symbol in ((0, 1), (255, 1), (17, (1 << k) - 1), (254, 1 << (k - 1))):
        symbols = np.zeros(256, np.int64)
        symbols[t] = symbol
        block = int.from_bytes(trellis_words.packed(symbols, k).astype("<u4").tobytes(), "little")
        assert block == symbol << (255 - t) * k


@bits
@pytest.mark.parametrize("L", [8, 9, 10, 11, 12])
def test_states_follow_each_other_around_the_ring(k: int, L: int) -> None:
    states = trellis_words.states_of(trellis_words.random_words(Draw(L), 4, 256, k), k, L)
    after = np.roll(states, -1, axis=-1)
    assert np.array_equal(after >> k, states & (1 << (L - k)) - 1)
    assert len(np.unique(states & 15)) == 16


def test_random_words_fill_whole_rows() -> None:
    words = trellis_words.random_words(Draw(1), 3, 512, 3)
    assert words.shape == (3, 48)
    assert len(np.unique(words)) == words.size


def test_interleaving_puts_two_blocks_of_a_row_side_by_side() -> None:
    codes = np.arange(3 * 96, dtype=np.uint32).reshape(3, 96)
    pairs = trellis_words.interleaved(codes)
    assert pairs.shape == (2, 3, 48)
    assert pairs[1, 2].tolist() == codes[2, 48:].tolist()
    assert np.array_equal(trellis_words.row_major(pairs), codes)


@bits
@pytest.mark.parametrize("L", [8, 9, 10, 11, 12])
def test_every_position_takes_every_state_once(k: int, L: int) -> None:
    states = trellis_words.states_of(trellis_words.every_state(k, L), k, L)
    assert np.array_equal(np.sort(states, axis=0), np.broadcast_to(np.arange(1 << L)[:, None], (1 << L, 256)))


@bits
def test_the_encoder_is_near(k: int) -> None:
    weights = gaussian(4, 2048)
    codes, scales = encoded(weights, k)
    assert ((decoded(codes, scales, k, 12) - weights) ** 2).mean() < MSE[k]
    assert ((decoded(np.roll(codes, 1, axis=0), scales, k, 12) - weights) ** 2).mean() > 1.5


@bits
def test_paths_are_rings_of_which_the_words_show_the_states(k: int) -> None:
    blocks = gaussian(6, 256, 1)
    paths = Coder.of(k, 12).ring(blocks)
    assert np.array_equal(np.roll(paths, -1, axis=1) >> k, paths & (1 << (12 - k)) - 1)
    words = trellis_words.packed(paths & (1 << k) - 1, k)
    assert np.array_equal(trellis_words.states_of(words, k, 12), paths)


@pytest.mark.parametrize(("k", "L"), [(2, 4), (1, 3), (3, 6)])
def test_a_path_is_the_best_of_all(k: int, L: int) -> None:
    """A short trellis, walked in full: no path of states loses less."""
    blocks = gaussian(3, 4, 2)
    codes = lut(L).astype(np.float64)
    least: Any = [np.inf] * 3
    for start in range(1 << L):
        for steps in np.ndindex(*(1 << k,) * 3):
            path = [start]
            for step in steps:
                path.append((path[-1] << k | step) & ((1 << L) - 1))
            least = np.minimum(least, ((codes[path] - blocks) ** 2).sum(axis=1))
    found = Coder.of(k, L).path(blocks, None)
    assert np.abs(((codes[found] - blocks) ** 2).sum(axis=1) - least).max() < 1e-5


def test_scales_follow_the_rows() -> None:
    weights = gaussian(5, 512) * np.float32([[1], [0.01], [30], [0], [2**-15]])
    codes, scales = encoded(weights, 4)
    assert scales.dtype == np.float16
    assert scales[3] == 1
    kept = np.arange(5) != 3
    assert np.allclose(scales[kept], np.sqrt((weights[kept] ** 2).mean(axis=1)) / 1.0041, rtol=0.02)
    relative = (decoded(codes, scales, 4, 12) - weights)[:3] / scales[:3, None].astype(np.float32)
    assert (relative**2).mean() < MSE[4]
    assert np.array_equal(scales, scales_of(weights, 12))


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 256"):
        encoded(gaussian(1, 300), 2)


def test_threads_do_not_change_the_codes() -> None:
    weights = gaussian(40, 256, 3)
    assert encoded(weights, 4, 8, threads=1)[0].tobytes() == encoded(weights, 4, 8, threads=2)[0].tobytes()
