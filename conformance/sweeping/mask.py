"""Sweeps of the token mask: every byte at every byte position, every word of one and two bits, at 32 offsets.

An offset is that of the row's first logit in its base, and as many ids reach into a last, partial word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations

import numpy as np

from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.encoding import FLOATS
from mlx_assay.fixtures.tensor import DTYPES, Tensor

OFFSETS = 32
BYTES = 4096
"""Byte positions: 1,024 words, the ids of 32 of a kernel's tiles."""

ROWS = 2
FEW_BITS = np.array([sum(1 << bit for bit in bits) for count in (1, 2) for bits in combinations(range(32), count)])
"""The 32 words of one bit and the 496 of two."""

SHIFTS = 33
"""Calls in which the words of few bits move on, so that each comes to stand at other positions."""


def byte_words(call: int) -> np.ndarray:
    """int32 [1024] whose byte p is (call + 167 p) modulo 256: in 256 calls each position has every value once."""
    octets = (call + 167 * np.arange(BYTES)) % 256
    return octets.astype(np.uint8).view("<i4").astype(np.int32)


def few_bit_words(call: int) -> np.ndarray:
    """int32 [528]: the words of few bits, moved on by 16 a call; every second call rejects what they allow."""
    words = np.roll(FEW_BITS.astype(np.uint32), 16 * (call // 2))
    return (~words if call % 2 else words).view(np.int32)


def masked(dtype: str, words: Callable[[int], np.ndarray], calls: int, block: int) -> Subcase:
    """Two rows of numbers other than zero; the words, one more of which the first `offset` bits count, and the rest."""
    offset, call = divmod(block, calls)
    given = words(call)
    vocab = 32 * len(given) + offset
    numbers = 1 + np.arange(ROWS * (vocab + OFFSETS)).reshape(ROWS, -1) % 120
    base = np.where(np.arange(numbers.shape[1]) % 3, numbers, -numbers).astype(np.float32).astype(DTYPES[dtype])
    logits = Tensor(base, (("slice", ((None, None, None), (offset, offset + vocab, None))),))
    return Subcase(
        f"offset-{offset}-call-{call}", {"logits": logits, "bits": Tensor(np.append(given, ~given[:1]), kind="numpy")}
    )


def told(subcase: Subcase, index: tuple[int, ...]) -> str:
    """The id, its word and the offset."""
    bits = subcase.arguments["bits"]
    assert isinstance(bits, Tensor)
    identity = index[-1]
    word = int(bits.base.view(np.uint32)[identity >> 5])
    return f"{subcase.label}, row {index[0]}, id {identity}, word {identity >> 5} 0x{word:08x}"


def _sweeps() -> Iterator[Sweep]:
    for name, why, words, calls, size in (
        ("byte", "Hunts one value of one byte that is read wrongly, at one place.", byte_words, 256, BYTES),
        ("word", "Hunts one bit, or two together, that are read from another place.", few_bit_words, 2 * SHIFTS, 528),
    ):
        for dtype in FLOATS:
            case = Case.make("apply_token_bitmask", dtype, f"every/{name}", {})
            make = partial(masked, dtype, words, calls)
            yield Sweep(case, why, OFFSETS * calls, size, make, told, step=calls)


SWEEPS = list(_sweeps())
