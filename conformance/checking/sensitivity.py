"""Which outputs depend on which switch: a launch again under each value of each, compared bit by bit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import numpy as np

from mlx_assay.conformance.checking.report import Sensitivity
from mlx_assay.impl.executors.observation import Launch

SCHEDULE = "schedule"
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

Change = tuple[str, str, Callable[[], AbstractContextManager[Any]]]


def changes(schedules: Sequence[str]) -> Iterator[Change]:
    """Each switch with each value that it does not have now, and what sets it; the first schedule is the baseline."""
    from mlx_assay.impl.executors import choice, fidelity

    held = fidelity.current()
    for switch, values in fidelity.SWITCHES.items():
        for value in values:
            if value != getattr(held, switch):
                yield switch, value, _Switched(fidelity.switched, {switch: value})
    for name in schedules[1:]:
        yield SCHEDULE, name, _Switched(choice.schedule, {"name": name})


class _Switched:
    """Makes a context manager, with the arguments that it had at first."""

    def __init__(self, make: Callable[..., AbstractContextManager[Any]], named: dict[str, str]) -> None:
        self._make = make
        self._named = named

    def __call__(self) -> AbstractContextManager[Any]:
        return self._make(**self._named)


class Senses:
    """How a kernel's outputs have depended on the switches so far."""

    def __init__(self, outputs: Sequence[str]) -> None:
        self._outputs = outputs
        self._found: dict[tuple[str, str, str], Sensitivity] = {}
        self._lock = threading.Lock()
        self.launches = 0

    def feel(self, launch: Launch, schedules: Sequence[str]) -> None:
        """Runs a launch under every change. Nothing here is checked."""
        from mlx_assay.impl.executors import choice

        with choice.schedule(schedules[0]):
            default = [encodings(output) for output in launch.run()]
        for switch, value, change in changes(schedules):
            with change():
                changed = [encodings(output) for output in launch.run()]
            for name, one, other in zip(self._outputs, default, changed, strict=True):
                self._add(compared(name, switch, value, one, other))
        with self._lock:
            self.launches += 1

    def told(self) -> list[Sensitivity]:
        """One for each output and each value of a switch, also where nothing differs."""
        return list(self._found.values())

    def _add(self, new: Sensitivity) -> None:
        key = (new.output, new.switch, new.value)
        with self._lock:
            old = self._found.get(key)
            self._found[key] = new if old is None else _sum(old, new)


def _sum(old: Sensitivity, new: Sensitivity) -> Sensitivity:
    """Both launches' counts, and the first difference of the two."""
    first = old if old.differing else new
    return msgspec.structs.replace(first, differing=old.differing + new.differing, elements=old.elements + new.elements)


def encodings(array: Any) -> np.ndarray:
    """The bits of an mx.array, flat, as unsigned integers of its dtype's size."""
    import mlx.core as mx

    size = array.dtype.size
    words = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}
    return np.array(mx.view(mx.reshape(array, (-1,)), words[size])).astype(_WORDS[size], copy=False)


def compared(output: str, switch: str, value: str, default: np.ndarray, changed: np.ndarray) -> Sensitivity:
    """Counts elements whose bits differ, and shows the first."""
    places = np.flatnonzero(default != changed)
    plain = Sensitivity(output=output, switch=switch, value=value, differing=len(places), elements=default.size)
    if not len(places):
        return plain
    index = int(places[0])
    digits = 2 * default.itemsize
    return Sensitivity(
        output=output,
        switch=switch,
        value=value,
        differing=len(places),
        elements=default.size,
        index=index,
        default=f"0x{int(default[index]):0{digits}x}",
        changed=f"0x{int(changed[index]):0{digits}x}",
    )
