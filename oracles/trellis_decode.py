"""Weights of packed trellis codes: states from the words, codes from the host's table, one product a weight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version as installed

import ml_dtypes
import numpy as np

from mlx_assay.oracles import host_lut
from mlx_assay.oracles.fault import require, require_bits
from mlx_assay.oracles.fused import flushed, multiplied
from mlx_assay.oracles.trellis_layout import Packed, whole_states

NAME = "trellis-decode"
REQUIRES = ("numpy", "pip install numpy")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

FORMS: Mapping[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "precise": lambda states, L: host_lut.exact_of(host_lut.sums_of(states, L)),
    "refined": lambda states, L: host_lut.refined_of(host_lut.sums_of(states, L)),
    "unrefined": lambda states, L: host_lut.unrefined_of(host_lut.sums_of(states, L)),
    "lut-threadgroup": lambda states, L: host_lut.exact_of(host_lut.sums_of(states, L)),
    "lut-device": lambda states, L: host_lut.exact_of(host_lut.sums_of(states, L)),
    "integer": lambda states, L: host_lut.sums_of(states, L).astype(np.float32),
    "bits": lambda states, L: host_lut.unrefined_of(host_lut.sums_of(states, L)),
    "state": lambda states, L: states.astype(np.float32),
}
"""The float32 values of states of L bits in each form; "integer" is the byte sum itself, before any scaling."""

SUM_FORMS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "precise": host_lut.exact_of,
    "refined": host_lut.refined_of,
    "unrefined": host_lut.unrefined_of,
    "integer": lambda sums: sums.astype(np.float32),
    "bits": host_lut.unrefined_of,
}
"""The float32 value of a byte sum, int32 in [-510, 510], in the forms that start from it."""

VARIANTS: Mapping[int, str] = {
    0: "precise",
    1: "refined",
    2: "lut-threadgroup",
    3: "lut-device",
    4: "state",
    5: "refined",
    **dict.fromkeys(range(6, 14), "unrefined"),
}
"""The form of each variant."""
ROUNDED = (0, 1, 2, 3)
"""Variants whose weights are the stored ones: rounded to bfloat16."""


def version() -> str:
    """The releases of NumPy and ml_dtypes."""
    return f"{installed('numpy')} with ml_dtypes {installed('ml_dtypes')}"


def trellis_code_values(sums: np.ndarray, form: str) -> np.ndarray:
    """float32 [n] of byte sums int32 [n] in a form of SUM_FORMS."""
    return SUM_FORMS[form](sums)


def trellis_decode(
    packed: Packed,
    scales: np.ndarray | None,
    variant: int = 13,
    form: str | None = None,
    *,
    flush: bool = False,
    whole: bool = False,
) -> np.ndarray:
    """float32 [rows, cols]: code * scale[row] of each weight, rounded as the variant says; bare values without scales.

    `form` instead of the variant's. `whole` takes each block as one Python integer.
    """
    found = whole_states(packed.words, *packed[1:4]) if whole else packed.states(packed.words)
    decoded = _values(form or VARIANTS[variant], found, packed.L)
    if scales is None:
        return decoded
    factors = scales.astype(np.float32)[:, None]
    weights = multiplied(decoded, flushed(factors) if flush else factors, flush)
    return weights.astype(BFLOAT16).astype(np.float32) if variant in ROUNDED else weights


def _values(form: str, found: np.ndarray, L: int) -> np.ndarray:
    """float32, like the states found; by a table of all of them where it is the smaller."""
    every = 1 << L
    return FORMS[form](found, L) if found.size < every else FORMS[form](np.arange(every), L)[found]


def self_test() -> None:
    """A block written out by hand, layouts against each other, and published codes; raises OracleFault."""
    host_lut.self_test()
    _test_one_bit()
    _test_layout()
    _test_weights()


def _test_one_bit() -> None:
    """Bit 2j of a block of 2-bit symbols is bit 2i of the state of position 255 - j + i, around the end."""
    for bit, want in (
        (510, {0: 1, 1: 4, 2: 16, 3: 64, 4: 256, 5: 1024}),
        (0, {255: 1, 0: 4, 1: 16, 2: 64, 3: 256, 4: 1024}),
        (511, {0: 2, 1: 8, 2: 32, 3: 128, 4: 512, 5: 2048}),
        (33, {239: 2, 240: 8, 241: 32, 242: 128, 243: 512, 244: 2048}),
    ):
        words = np.zeros((1, 16), np.uint32)
        words[0, bit // 32] = 1 << (bit % 32)
        found = Packed(words, 2, 12).states(words)[0]
        got = {int(t): int(found[t]) for t in np.flatnonzero(found)}
        require(NAME, f"the states around bit {bit}", sorted(got.items()), sorted(want.items()))


def _test_layout() -> None:
    for k in (2, 3, 4):
        words = (np.arange(2 * 16 * k, dtype=np.uint64) * 2654435761 % 2**32).astype(np.uint32).reshape(2, -1)
        for L in (8, 12):
            require_bits(
                NAME, f"states of k {k}, L {L}", Packed(words, k, L).states(words), whole_states(words, k, L, 256)
            )
            found = Packed(words, k, L).states(words).reshape(-1, 256)
            follow = (np.roll(found, 1, axis=-1) << k | found & (1 << k) - 1) & ((1 << L) - 1)
            require_bits(NAME, f"successors of k {k}, L {L}", found, follow.astype(np.int32))
    pairs = np.arange(2 * 3 * 48, dtype=np.uint32).reshape(2, 3, 48)
    first = [*range(48), *range(144, 192)]
    require(NAME, "the words of an interleaved row", Packed(pairs, 3, 12, 256, True).words[0].tolist(), first)


def _test_weights() -> None:
    zero = np.zeros((2, 16), np.uint32)
    scales = np.array([1.0, 0.0131], np.float16)
    got = trellis_decode(Packed(zero, 2, 12), scales)[:, 0]
    require_bits(NAME, "unrefined codes", got.view(np.uint32), np.array([0xBFA03747, 0xBC865258], np.uint32))
    stored = trellis_decode(Packed(zero, 2, 12), scales, 0)[:, 7]
    require_bits(NAME, "stored weights", stored, np.array([-1.25, -0.016357421875], np.float32))
