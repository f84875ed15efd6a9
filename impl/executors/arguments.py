"""What a kernel is made and called with: taken and refused as MLX's binding does, with its kinds of errors.

The binding is nanobind's, whose rules were read off MLX 0.32: an integer is whatever has an `__index__`, a float is no
integer, a truth is a bool and nothing else.
"""

import operator
from collections.abc import Iterable
from typing import Any, cast

import mlx.core as mx

MAX_AXIS = 2**31 - 1
_DEVICES = tuple(
    getattr(mx, name) for name in ("Stream", "ThreadLocalStream", "Device", "DeviceType") if hasattr(mx, name)
)

_NO_LISTS = (str, bytes, dict)


def _refused(name: str, value: object, expected: str) -> TypeError:
    return TypeError(f"[metal_kernel] Expected `{name}` to be {expected} but got {value!r}.")


def _listed(name: str, value: object, expected: str) -> list[Any]:
    if type(value) in (list, tuple):
        return list(cast("Iterable[Any]", value))
    sequence = hasattr(value, "__getitem__") and hasattr(value, "__len__") and not isinstance(value, _NO_LISTS)
    if not sequence:
        raise _refused(name, value, expected)
    return list(cast("Iterable[Any]", value))


def check_texts(**values: object) -> None:
    """TypeError: one is no text."""
    for name, value in values.items():
        if not isinstance(value, str):
            raise _refused(name, value, "a str")


def check_truths(**values: object) -> None:
    """TypeError: one is neither True nor False."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise _refused(name, value, "True or False")


def names(name: str, value: object) -> tuple[str, ...]:
    """Names of arguments. TypeError: no list of texts; a text alone is none."""
    given = _listed(name, value, "a list of names")
    if not all(isinstance(one, str) for one in given):
        raise _refused(name, value, "a list of names")
    return tuple(given)


def arrays(value: object) -> list[mx.array]:
    """Arrays, and scalars as arrays. TypeError: neither. ValueError: a list or a text in the place of an array."""
    return [_array(one) for one in _listed("inputs", value, "a list of arrays and scalars")]


def _array(value: Any) -> mx.array:
    if isinstance(value, mx.array):
        return value
    if isinstance(value, (list, tuple)):
        raise ValueError(f"Invalid type {type(value).__name__} received in array initialization.")
    return mx.array(value)


def _plain(value: Any) -> bool:
    """Whether it is a tuple of Python's integers of MLX's range, as nearly always; six are looked at a launch."""
    if type(value) is not tuple:
        return False
    for one in value:  # noqa: SIM110 - a generator costs more than the rest
        if type(one) is not int or not -MAX_AXIS <= one <= MAX_AXIS:
            return False
    return True


def _integers(name: str, value: Any, expected: str) -> tuple[int, ...]:
    if _plain(value):
        return cast("tuple[int, ...]", value)
    try:
        given = tuple(operator.index(one) for one in _listed(name, value, expected))
    except TypeError:
        raise _refused(name, value, expected) from None
    if any(abs(one) > MAX_AXIS for one in given):
        raise TypeError(
            f"[metal_kernel] Expected `{name}` to be {expected} of at most {MAX_AXIS} but got {given}: "
            "split the work over more axes."
        )
    return given


def axes(name: str, value: object) -> tuple[int, ...]:
    """A grid or a threadgroup. TypeError: not three integers of MLX's range."""
    given = _integers(name, value, "3 integers")
    if len(given) != 3:
        raise TypeError(
            f"[metal_kernel] Expected `{name}` to be 3 integers but got {given}, {len(given)} of them: "
            "an axis that is not used is 1."
        )
    return given


def shapes(value: object) -> list[tuple[int, ...]]:
    """Shapes of outputs. TypeError: no list of lists of integers."""
    return [
        _integers("output_shapes", one, "lists of integers")
        for one in _listed("output_shapes", value, "a list of shapes")
    ]


def dtypes(value: object) -> list[mx.Dtype]:
    """Dtypes of outputs. TypeError: one is none of MLX's, such as a name or a NumPy type."""
    given = _listed("output_dtypes", value, "a list of mlx.core.Dtype")
    if not all(isinstance(one, mx.Dtype) for one in given):
        raise _refused("output_dtypes", value, "a list of mlx.core.Dtype")
    return given


def template(value: object) -> list[tuple[str, Any]]:
    """Template arguments. TypeError: no list of pairs of a name and a value."""
    if value is None:
        return []
    given = _listed("template", value, "a list of pairs (name, value)")
    for one in given:
        if not isinstance(one, (tuple, list)) or len(one) != 2 or not isinstance(one[0], str):
            raise _refused("template", value, "a list of pairs (name, value)")
    return [(one[0], one[1]) for one in given]


def number(name: str, value: Any) -> float | None:
    """A float or None. TypeError: neither."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)):
        raise _refused(name, value, "a number")
    try:
        return float(value)
    except (TypeError, OverflowError):
        raise _refused(name, value, "a number") from None


def check_way(verbose: object, stream: object) -> None:
    """TypeError: `verbose` is no bool, or `stream` neither a stream nor a device."""
    check_truths(verbose=verbose)
    if stream is not None and not isinstance(stream, _DEVICES):
        raise _refused("stream", stream, "a stream or a device")


def check_size(name: str, actual: int, expected: int) -> None:
    """ValueError: MLX's own, where a call has another number of something than its kernel."""
    if actual != expected:
        raise ValueError(f"[metal_kernel] Expected `{name}` to have size {expected} but got size {actual}.\n")
