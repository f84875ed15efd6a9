"""What a self-test says of a broken oracle."""

from __future__ import annotations

from typing import Any

import numpy as np


class OracleFault(RuntimeError):
    """An oracle's self-test found a wrong value: what was asked, what was expected, what came."""


def require(oracle: str, asked: str, got: object, want: object) -> None:
    """Raises OracleFault unless two plain values are equal and of one type."""
    if type(got) is not type(want) or got != want:
        raise OracleFault(f"Expected {want!r} from oracle {oracle} for {asked} but got {got!r}: do not judge with it")


def require_bits(oracle: str, asked: str, got: np.ndarray, want: np.ndarray) -> None:
    """Raises OracleFault unless two arrays agree in shape, dtype and every encoding; a NaN equals any NaN."""
    if got.shape != want.shape or got.dtype != want.dtype:
        raise OracleFault(
            f"Expected {want.dtype}{list(want.shape)} from oracle {oracle} for {asked} "
            f"but got {got.dtype}{list(got.shape)}"
        )
    both_nan = (got != got) & (want != want)
    wrong = np.flatnonzero(~(both_nan | (encodings(got) == encodings(want))))
    if wrong.size:
        first = int(wrong[0])
        raise OracleFault(
            f"Expected {_hex(want, first)} from oracle {oracle} for {asked} at flat index {first} but got "
            f"{_hex(got, first)} ({wrong.size} of {got.size} differ): do not judge with it"
        )


def encodings(array: np.ndarray) -> np.ndarray:
    """The bits of each element, as unsigned integers of the element's width."""
    dtype: np.dtype[Any] = np.dtype(f"u{array.dtype.itemsize}")
    return np.ascontiguousarray(array).view(dtype).reshape(array.shape)


def _hex(array: np.ndarray, flat: int) -> str:
    return f"0x{int(encodings(array).reshape(-1)[flat]):0{2 * array.dtype.itemsize}x}"
