"""The 1MAD codebook of QTIP, computed in Python's integers and one division a state: the host's table.

Tseng et al., "QTIP: Quantization with Trellises and Incoherence Processing" (2024): a state is hashed by one multiply
and add modulo 2^32, and the sum of the four bytes of the result is nearly normal. Here it is centred and divided.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version as installed

import numpy as np

from mlx_assay.oracles.fault import require, require_bits
from mlx_assay.oracles.fused import fma

NAME = "host-lut"
REQUIRES = ("numpy", "pip install numpy")

MULTIPLIER, INCREMENT, CENTRE = 34038481, 76625530, 510
DIVISOR = np.float32(147.800537109375)
"""Exact in float32."""
RECIPROCAL = np.float32(1) / DIVISOR
"""0x3bddb447: the reciprocal, rounded to float32."""

DIGESTS = {
    "exact": "e80d1f7d4e0a4a5f67d49a59ae3402c4117ceddf5a034a986c4f6d394a94aa63",
    "unrefined": "666add5c0a9e1d84cc79ad8b9166dd9dd4f51f010b9c3b4253ecf7a70cdaab10",
    "sums": "8e89e4c7936c7fa3e47e22875840ace4e34686affde8055b49cfaacbb3c174ae",
}
"""SHA-256 over the little-endian bytes of states 0 to 4,095: float32 values, and int16 byte sums."""

LARGEST_TABLE = 16
"""State bits up to which a table is made: 2^16 sums take some 40 ms."""


def version() -> str:
    """The release of NumPy, which divides and rounds."""
    return installed("numpy")


def byte_sum(state: int) -> int:
    """The centred sum of the four bytes of a state's hash, in [-510, 510]."""
    return sum(((state * MULTIPLIER + INCREMENT) % 2**32).to_bytes(4, "little")) - CENTRE


@cache
def sums(L: int) -> np.ndarray:
    """int16 [2^L]: the centred byte sum of each state."""
    table = np.fromiter(map(byte_sum, range(1 << L)), np.int16, 1 << L)
    table.flags.writeable = False
    return table


def sums_of(states: np.ndarray, L: int) -> np.ndarray:
    """int16, like the states: each one's sum, out of the table of all where there are few."""
    if L <= LARGEST_TABLE:
        return np.asarray(sums(L)[states])
    return np.fromiter(map(byte_sum, states.ravel().tolist()), np.int16, states.size).reshape(states.shape)


def exact_of(y: np.ndarray) -> np.ndarray:
    """float32: byte sums over the divisor, divided in float64 and rounded once more, which is innocuous here."""
    return (y.astype(np.float64) / np.float64(DIVISOR)).astype(np.float32)


def unrefined_of(y: np.ndarray) -> np.ndarray:
    """float32: byte sums times the rounded reciprocal; another function, on 398 of the 1,021 sums by one place."""
    return np.asarray(y.astype(np.float32) * RECIPROCAL)


def refined_of(y: np.ndarray) -> np.ndarray:
    """float32: the product with the reciprocal and one residual step; equal to `exact_of` on every byte sum."""
    wide = y.astype(np.float32)
    reciprocal = np.broadcast_to(RECIPROCAL, wide.shape)
    quotient = wide * RECIPROCAL
    residual = fma(-quotient, np.broadcast_to(DIVISOR, wide.shape), wide)
    return fma(residual, reciprocal, quotient)


def exact(L: int) -> np.ndarray:
    """float32 [2^L]: the host's table."""
    return exact_of(sums(L))


def unrefined(L: int) -> np.ndarray:
    """float32 [2^L]: the codes of the packed row and scatter kernels."""
    return unrefined_of(sums(L))


def self_test() -> None:
    """Published digests and known states; raises OracleFault."""
    for state, value in ((0, -185), (1, -124), (126, -150), (127, -344), (4, 59), (65535, 61)):
        require(NAME, f"the byte sum of state {state}", byte_sum(state), value)
    # 126 wraps in the addition and 127 in the product: signed or wider arithmetic gives other sums.
    first = np.array([0xBFA03747, 0xBF56C6A4, 0xBEDA3D75, 0xBC5DB447], np.uint32)
    other = np.array([0xBFA03747, 0xBF56C6A5, 0xBEDA3D76, 0xBC5DB447], np.uint32)
    require_bits(NAME, "the first four codes", exact(12)[:4].view(np.uint32), first)
    require_bits(NAME, "the first four unrefined codes", unrefined(12)[:4].view(np.uint32), other)
    for name, table in (("exact", exact(12)), ("unrefined", unrefined(12)), ("sums", sums(12))):
        digest = hashlib.sha256(table.astype(table.dtype.newbyteorder("<")).tobytes()).hexdigest()
        require(NAME, f"the digest of the 4,096 {name}", digest, DIGESTS[name])
    every = np.arange(-CENTRE, CENTRE + 1)
    require_bits(NAME, "the refined codes of every byte sum", refined_of(every), exact_of(every))
    require(NAME, "the sums at which unrefined differs", int((unrefined_of(every) != exact_of(every)).sum()), 398)
