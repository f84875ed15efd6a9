"""Correctly rounded values of the swept functions: float64 where it suffices, mpmath beside a midpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mlx_assay.oracles.rounding import round_once

FUNCTIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sin": np.sin,
    "tanh": np.tanh,
}
MARGIN_ULPS = 16
"""How far NumPy's float64 may be from the true value, with room: four units in the last place are its own promise."""

_BITS = 200


def rounded(function: str, arguments: np.ndarray) -> np.ndarray:
    """The function's values in the arguments' dtype (float16, bfloat16 or float32), rounded once to nearest even.

    ImportError: mpmath is needed for one of them, and is not installed.
    """
    with np.errstate(all="ignore"):
        wide = arguments.astype(np.float64)
        values = FUNCTIONS[function](wide)
        margin = np.abs(values) * (MARGIN_ULPS * 2.0**-53)
        low, high = round_once(values - margin, arguments.dtype), round_once(values + margin, arguments.dtype)
        result = round_once(values, arguments.dtype)
        # Where both ends of the margin round to one encoding, so does the true value. NaN differs from NaN.
        told = (low == high) | ~np.isfinite(wide) | np.isnan(values) | _exact(function, wide, values)
    unsure = np.flatnonzero(~told)
    for place in unsure:
        result[place] = _decided(function, float(wide[place]), arguments.dtype)
    return result


def _exact(function: str, wide: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Where float64 holds the value itself: zeros, ones and infinities, powers of two of exp2."""
    exact: np.ndarray = (values == 0) & (wide == 0) | np.isinf(values) & (wide == 0) | (values == 1) & (wide == 0)
    if function == "exp2":
        exact |= (wide == np.rint(wide)) & (np.abs(wide) < 1000)
    return exact


def _decided(function: str, argument: float, dtype: np.dtype[Any]) -> np.ndarray:
    """By 200 bits, brought to float64 by rounding to odd, so that the last rounding is the only one."""
    try:
        import mpmath
    except ImportError as error:
        raise ImportError(
            f"{function}({argument.hex()}) lies near a midpoint, and mpmath is not there to decide: "
            "pip install 'mlx-assay[precise]'"
        ) from error
    with mpmath.workprec(_BITS):
        x = mpmath.mpf(argument)
        value = {
            "exp": mpmath.exp,
            "exp2": lambda y: mpmath.power(2, y),
            "log": mpmath.log,
            "rsqrt": lambda y: 1 / mpmath.sqrt(y),
            "sin": mpmath.sin,
            "tanh": mpmath.tanh,
        }[function](x)
        near = float(value)
        if np.isfinite(near) and near != 0 and value != near and not np.float64(near).view(np.uint64) & np.uint64(1):
            near = float(np.nextafter(near, np.inf if value > near else -np.inf))
    return round_once(np.array([near]), dtype)[0]  # type: ignore[no-any-return]
