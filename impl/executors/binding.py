"""Binding a launch's buffers: by index, checked against what is known of the kernel's arguments."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np

from mlx_assay.impl.executors import launch

ConstantValue = bool | int | float


class Argument(msgspec.Struct, frozen=True):
    """One argument of a kernel.

    `kind` is "buffer", or the attribute behind the value, as "thread_position_in_grid". `type` is its type in the
    language that the kernel is written in. `location` is a buffer's index; `condition` names the function constant
    without which it is not there.
    """

    kind: str
    type: str
    name: str
    location: int = -1
    space: int = 0
    writable: bool = False
    bytes: int = 0
    alignment: int = 1
    type_name: str = ""
    condition: str | None = None


# Metal's names of element types, as the class and the bytes of a dtype. Signs are not told apart.
_ELEMENTS = {
    **{"float": "f4", "half": "f2", "bfloat": "bf2", "bool": "b1", "complex64_t": "c8"},
    **{name: f"i{size}" for name, size in (("char", 1), ("short", 2), ("int", 4), ("long", 8))},
    **{name: f"i{size}" for name, size in (("uchar", 1), ("ushort", 2), ("uint", 4), ("ulong", 8))},
    **{f"{sign}int{size}_t": f"i{size // 8}" for sign in ("", "u") for size in (8, 16, 32, 64)},
}
_RAW = "i1"


@cache
def _element(dtype: Any) -> str:
    name = str(dtype).rpartition(".")[2]
    if name == "bfloat16":
        return "bf2"
    plain = np.dtype({"bool_": "bool"}.get(name, name))
    return f"{'i' if plain.kind == 'u' else plain.kind}{plain.itemsize}"


class Binding:
    """Turns the buffers of a call into addresses, in the order of the kernel's arguments."""

    def __init__(self, name: str, buffers: Sequence[Argument], constants: Mapping[str, ConstantValue]) -> None:
        self._name = name
        self._buffers = buffers
        self._constants = constants
        self._known = {a.location for a in buffers}

    def addresses(self, buffers: Sequence[Any] | Mapping[int, Any], keep: list[object]) -> list[int]:
        """One address a buffer, 0 for one that is not bound; the arrays behind them are put into `keep`.

        ValueError, TypeError: a buffer is missing, unknown, too small, read-only, misaligned, or of another type.
        """
        given = dict(buffers) if isinstance(buffers, Mapping) else dict(enumerate(buffers))
        if extra := sorted(given.keys() - self._known):
            raise ValueError(f"kernel {self._name!r} has no buffer {extra[0]}: expected {self._described()}")
        out = []
        for argument in self._buffers:
            value = given.get(argument.location)
            if value is not None:
                out.append(self._address(argument, value, keep))
                continue
            if argument.location not in given and self._needed(argument):
                raise ValueError(
                    f"kernel {self._name!r}: buffer {argument.location} is missing: expected {self._described()}"
                )
            out.append(0)
        return out

    def _needed(self, argument: Argument) -> bool:
        return argument.condition is None or bool(self._constants.get(argument.condition, False))

    def _described(self) -> str:
        return ", ".join(f"{a.location}: {a.type_name} {a.name}" for a in self._buffers)

    def _address(self, argument: Argument, value: Any, keep: list[object]) -> int:
        if argument.writable and not (isinstance(value, np.ndarray) and value.flags.writeable):
            raise ValueError(
                f"{self._label(argument)}: the kernel writes it, expected a writable NumPy array but got "
                f"{type(value).__name__}"
            )
        array = value if isinstance(value, np.ndarray) else _array(self._label(argument), value)
        expected, element = _ELEMENTS.get(argument.type_name), _element(array.dtype)
        if expected and element not in (expected, _RAW) and not (expected == "bf2" and element == "i2"):
            raise TypeError(
                f"{self._label(argument)}: got {array.dtype}, expected {argument.type_name}, or its bytes as uint8"
            )
        keep.append(array)
        address = launch.address(array)
        if array.nbytes < argument.bytes:
            raise ValueError(f"{self._label(argument)}: got {array.nbytes} bytes, expected {argument.bytes} or more")
        if address % argument.alignment:
            told = f"lies at {address:#x}, expected a multiple of {argument.alignment}: give a copy"
            raise ValueError(f"{self._label(argument)}: {told}")
        return address

    def _label(self, argument: Argument) -> str:
        return f"kernel {self._name!r}, buffer {argument.location} ({argument.type_name} {argument.name})"


def _array(label: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        return np.array([value])
    if isinstance(value, bytes | bytearray | memoryview):
        return np.frombuffer(value, np.uint8)
    if type(value).__module__.startswith("mlx."):
        import mlx.core as mx

        mx.eval(value)
        return value
    raise TypeError(
        f"{label}: got {type(value).__name__}, expected a NumPy or MLX array, a scalar such as np.int32(3), or bytes"
    )
