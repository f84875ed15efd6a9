"""How packed trellis words become states: a block's bits as one integer, and the same for whole matrices.

Position t of a block of T weights has its k bits at bit (T - 1 - t) * k of the block, bit i being bit i % 32 of word
i // 32. Its state is the window of L bits that begins there; the window wraps around the block's end (tail-biting).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def block_states(words: np.ndarray, k: int, L: int, T: int) -> list[int]:
    """The T states of one block of uint32 words [T * k / 32], taken from the block as one Python integer."""
    width = T * k
    block = int.from_bytes(words.astype("<u4").tobytes(), "little")
    ring = block | block << width
    return [(ring >> (T - 1 - t) * k) & ((1 << L) - 1) for t in range(T)]


def rows_of(codes: np.ndarray, interleaved: bool) -> np.ndarray:
    """uint32 [rows, words]: row-major codes as they are; interleaved ones [pairs, rows, a pair's words] undone."""
    if not interleaved:
        return codes
    return np.ascontiguousarray(codes.transpose(1, 0, 2)).reshape(codes.shape[1], -1)


def states(words: np.ndarray, k: int, L: int, T: int) -> np.ndarray:
    """int32 [rows, cols] of row-major words uint32 [rows, cols * k / 32]: every state at once."""
    size = T * k // 32
    blocks = words.reshape(len(words), -1, size).astype(np.uint64)
    pairs = blocks | np.roll(blocks, -1, axis=-1) << np.uint64(32)
    bit = (T - 1 - np.arange(T)) * k
    windows = (pairs[..., bit // 32] >> (bit % 32).astype(np.uint64)).astype(np.uint32)
    return (windows & np.uint32((1 << L) - 1)).astype(np.int32).reshape(len(words), -1)


def whole_states(words: np.ndarray, k: int, L: int, T: int) -> np.ndarray:
    """The same by Python's integers, block by block."""
    blocks = words.reshape(-1, T * k // 32)
    every = [block_states(block, k, L, T) for block in blocks]
    return np.array(every, np.int32).reshape(len(words), -1)


class Packed(NamedTuple):
    """Codes, and what their bits mean: k bits a weight, states of L bits, blocks of T weights.

    Row-major codes are uint32 [rows, cols * k / 32], interleaved ones [pairs of blocks, rows, 2 * T * k / 32].
    """

    codes: np.ndarray
    k: int
    L: int
    T: int = 256
    interleaved: bool = False

    @property
    def words(self) -> np.ndarray:
        """The words, row by row."""
        return rows_of(self.codes, self.interleaved)

    @property
    def cols(self) -> int:
        """Weights of a row."""
        return int(self.words.shape[1]) * 32 // self.k

    def states(self, words: np.ndarray) -> np.ndarray:
        """int32 [rows, cols] of some rows of `words`."""
        return states(words, self.k, self.L, self.T)
