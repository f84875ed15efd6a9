"""Ways in which a token mask goes wrong, and places where it may: for a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np

from mlx_assay.conformance.contract import Arguments
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.rounding import denormal

WORD = 32
FLOAT32 = np.dtype(np.float32)
Make = Callable[[], np.ndarray]


class _Call:
    """One call's logits [..., V], and its mask's words, as many as ids need, absent ones 0."""

    def __init__(self, arguments: Arguments) -> None:
        self.logits = arguments["logits"]
        self.vocabulary = self.logits.shape[-1]
        self.given = arguments["bits"].reshape(-1).astype(np.int32).view(np.uint32)
        count = -(-self.vocabulary // WORD)
        self.words = np.zeros(count, np.uint32)
        self.words[: self.given.size] = self.given[:count]
        self.flags = self.of(self.words)

    def of(self, words: np.ndarray) -> np.ndarray:
        """bool [V] of words, the least significant bit first."""
        bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little")
        return bits[: self.vocabulary].astype(np.bool_)

    def added(self, flags: np.ndarray) -> np.ndarray:
        """The logits plus 0 where a flag is set, plus -inf elsewhere."""
        addends = np.where(flags, FLOAT32.type(0), FLOAT32.type(-np.inf))
        return np.asarray((self.logits.astype(FLOAT32) + addends).astype(self.logits.dtype))

    def put(self, value: float, plus: float | None = 0.0) -> np.ndarray:
        """The logits, plus 0 unless that is None, and a value in place of those that are rejected."""
        kept = (
            self.logits if plus is None else (self.logits.astype(FLOAT32) + FLOAT32.type(0)).astype(self.logits.dtype)
        )
        return np.where(self.flags, kept, np.asarray(value, FLOAT32).astype(self.logits.dtype))

    def by_bytes(self) -> np.ndarray:
        return self.added(self.of(self.words.byteswap()))

    def by_bits(self, size: int) -> np.ndarray:
        """Groups of so many bits in reverse."""
        bits = np.unpackbits(self.words.view(np.uint8), bitorder="little").reshape(-1, size)[:, ::-1]
        return self.added(bits.reshape(-1)[: self.vocabulary].astype(np.bool_))

    def by_row(self) -> np.ndarray:
        """Each row with words of its own, one row's behind the other's, absent ones 0."""
        rows, count = self.logits.size // self.vocabulary, self.words.size
        words = np.zeros(rows * count, np.uint32)
        words[: min(self.given.size, words.size)] = self.given[: words.size]
        flags = np.stack([self.of(row) for row in words.reshape(rows, count)])
        return self.added(flags.reshape(self.logits.shape))

    def times(self) -> np.ndarray:
        wide = self.logits.astype(FLOAT32)
        infinite = -np.abs(wide) * FLOAT32.type(np.inf)
        return np.asarray(np.where(self.flags, wide, infinite).astype(self.logits.dtype))

    def tail(self, value: np.ndarray) -> np.ndarray:
        """Right up to the last whole word of ids, another array behind it."""
        whole = np.arange(self.vocabulary) < self.vocabulary // WORD * WORD
        return np.where(whole, self.added(self.flags), value)


BROKEN = {
    "": 2,
    **dict.fromkeys(("bits counted", "each word's bytes", "bit 31", "a word with its sign", "the mask inverted"), 1),
    **dict.fromkeys(("-inf written", "the logit is NaN", "the logit is infinite", "the logit is -0"), 3),
    "a mask of its own": 4,
    **dict.fromkeys(("ids past the last word", "the mask has no word"), 5),
    "the logit is a denormal": 10,
}
"""Rules by what breaks them."""


def suspects(arguments: Arguments) -> Mapping[str, Make]:
    """Wrong outputs by name, like the logits each."""
    call = _Call(arguments)
    words, flags, dtype = call.words, call.flags, call.logits.dtype
    high = np.uint32(1 << 31)
    lowest = float(ml_dtypes.finfo(dtype).min)
    smeared = np.repeat((words & high) != 0, WORD)[: call.vocabulary]
    beyond = np.arange(call.vocabulary) >= WORD * call.given.size
    return {
        "bits counted from each word's highest": lambda: call.by_bits(32),
        "bits counted from each byte's highest": lambda: call.by_bits(8),
        "each word's bytes in reverse": call.by_bytes,
        "bit 31 lost": lambda: call.added(call.of(words & ~high)),
        "a word with its sign bit set allowing all its ids": lambda: call.added(flags | smeared),
        "ids past the last word allowed": lambda: call.added(flags | beyond),
        "a mask of its own for each row": call.by_row,
        "the mask inverted": lambda: call.added(~flags),
        "no mask at all": lambda: call.added(np.ones_like(flags)),
        "everything rejected": lambda: call.added(np.zeros_like(flags)),
        "-inf written in place of the logit, not added,": lambda: call.put(-np.inf),
        "-inf written in place of the logit, and no 0 added,": lambda: call.put(-np.inf, None),
        "the lowest finite number for -inf": lambda: call.put(lowest),
        "a product in place of a sum": call.times,
        "the ids behind the last whole word as zeros": lambda: call.tail(np.zeros_like(call.logits)),
        "the ids behind the last whole word as they are": lambda: call.tail(call.logits),
    }


def marks(arguments: Arguments) -> Mapping[str, np.ndarray]:
    """Places by name, bool like the logits each."""
    call = _Call(arguments)
    logits, ids = call.logits.astype(FLOAT32), np.arange(call.vocabulary)
    allowed = load("numpy_reference").allowed(arguments["bits"], call.vocabulary)
    return {
        "bit 31 speaks for the id": np.broadcast_to(ids % WORD == WORD - 1, logits.shape),
        "the mask has no word for the id": np.broadcast_to(ids >= WORD * call.given.size, logits.shape),
        "the logit is NaN": np.isnan(logits),
        "the logit is infinite": np.isinf(logits),
        "the logit is -0": (logits == 0) & np.signbit(logits),
        "the logit is a denormal": denormal(call.logits),
        "the id is rejected": np.broadcast_to(~allowed, logits.shape),
        "the id is allowed": np.broadcast_to(allowed, logits.shape),
    }
