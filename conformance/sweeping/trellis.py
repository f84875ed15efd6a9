"""Sweeps of trellis decoding: every state of every number of state bits, in every form."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.fixtures.trellis_call import Layout
from mlx_assay.fixtures.trellis_matrix import FORMS, Matrix, arguments
from mlx_assay.fixtures.trellis_words import T, packed

WIDTHS = (2, 3, 4)
LARGEST = 24
TABLE = 12
"""State bits up to which a form keeps its table in threadgroup memory."""

STATES = 1 << 14
"""States of a block of the sweep."""

STEP = 8

WHY = "Hunts one state that decodes wrongly, or one that a window of bits misses."


def symbols(k: int, L: int) -> int:
    """Symbols that hold a state."""
    return -(-L // k)


def words_of(k: int, L: int, first: int) -> np.ndarray:
    """uint32 [rows, T * k / 32]: STATES states from `first` on, each at windows that share no symbol.

    A block holds as many as fit beside each other; what lies between is decoded too, as states come.
    """
    each = symbols(k, L)
    fit = T // each
    rows = -(-STATES // fit)
    states = (first + np.arange(rows * fit)) % (1 << L)
    steps = k * np.arange(each)[::-1]
    digits = (states[:, None] >> steps) & ((1 << k) - 1)
    found = np.zeros((rows, T), np.int64)
    found[:, : fit * each] = digits.reshape(rows, -1)
    return packed(found, k)


def parts(form: str) -> Iterator[tuple[int, int, int]]:
    """k, L and the first state of each block of a form."""
    for k in WIDTHS:
        for L in range(k, (TABLE if form == "lut-threadgroup" else LARGEST) + 1):
            for first in range(0, 1 << L, STATES):
                yield k, L, first


@cache
def _parts(form: str) -> list[tuple[int, int, int]]:
    return list(parts(form))


def decoded(form: str, block: int) -> Subcase:
    """The bare values of a range of states; fewer than STATES come again and again."""
    k, L, first = _parts(form)[block]
    words = words_of(k, L, first)
    matrix = Matrix(f"k-{k}-L-{L}-from-{first}", words, None, 13, form, L)
    return Subcase(matrix.label, arguments(Layout(k), matrix, Tensor(words)))


def told(subcase: Subcase, index: tuple[int, ...]) -> str:
    """Row and position; the state is in the judge's words."""
    given = subcase.arguments
    return f"k {given['k']}, L {given['L']}, form {given['form']}, row {index[0]}, position {index[1]}"


SWEEPS = [
    Sweep(
        Case.make("trellis_decode", "float32", "every/state", {"form": form}),
        WHY,
        len(_parts(form)),
        STATES,
        partial(decoded, form),
        told,
        step=STEP,
    )
    for form in FORMS
]
