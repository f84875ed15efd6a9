"""The evidence of one difference: both outputs, where they differ, and what else could have been written there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mlx_assay.conformance.judging.ulp import encodings, has_distance, magnitudes

SAMPLED = 1 << 17
"""Differing places that are looked at one by one; of more, so many are drawn."""

PLAIN_IDS = 8
"""Ids below are met by chance."""

Hook = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def distinct(values: np.ndarray) -> np.ndarray:
    """The values, rising, each once; NumPy's own hashes them, which takes a hundred times as long for some."""
    rising = np.sort(values)
    return np.asarray(rising[np.append(True, rising[1:] != rising[:-1])]) if rising.size else rising


@dataclass(frozen=True)
class Evidence:
    """Two outputs of one dtype and shape, and `at`, the rising flat places that break what was needed.

    `arguments` are the call's, as oracles see them; `marks`, `suspects`, `addends` and `broken` the contract's
    hooks. `poison`
    is the 32-bit pattern that the call found in its output; `other` and `other_poison` are output and pattern of the
    call of the same subcase in the other round. `earlier` are outputs and right answers of calls before
    it, by what they are called, the latest first.
    """

    got: np.ndarray
    want: np.ndarray
    at: np.ndarray
    arguments: Mapping[str, Any] = field(default_factory=dict)
    marks: Hook | None = None
    suspects: Hook | None = None
    addends: Callable[[Mapping[str, Any]], tuple[np.ndarray, ...]] | None = None
    broken: Hook | None = None
    poison: int | None = None
    other: np.ndarray | None = None
    other_poison: int | None = None
    earlier: Sequence[tuple[str, np.ndarray]] = ()

    @cached_property
    def _rules(self) -> Mapping[str, int]:
        return self.broken(self.arguments) if self.broken is not None else {}

    def rule(self, name: str = "") -> str:
        """The number of the rule that something with a name breaks, empty where the contract does not tell."""
        begun = [start for start in self._rules if name.startswith(start)]
        return str(self._rules[max(begun, key=len)]) if begun else ""

    @property
    def count(self) -> int:
        """Differing places."""
        return int(self.at.size)

    @property
    def total(self) -> int:
        """All places."""
        return int(self.want.size)

    @property
    def columns(self) -> int:
        """Extent of the last axis; 1 of a scalar."""
        return int(self.want.shape[-1]) if self.want.ndim else 1

    @property
    def rows(self) -> int:
        """Product of all axes but the last."""
        return self.total // self.columns

    @property
    def floats(self) -> bool:
        """Whether the outputs are numbers that have distances."""
        return has_distance(self.want.dtype)

    @property
    def noun(self) -> str:
        """What an index of the last axis is called: an output of one axis has places, another has columns."""
        return "column" if self.want.ndim > 1 else "place"

    @cached_property
    def places(self) -> np.ndarray:
        """The differing places that are looked at: all, or SAMPLED of them, the same ones each time."""
        if self.count <= SAMPLED:
            return self.at
        drawn = np.random.default_rng(self.count).integers(0, self.count, SAMPLED)
        return np.asarray(self.at[distinct(drawn)])

    def flat(self, array: np.ndarray) -> np.ndarray:
        """The elements of an array of the outputs' size at the places that are looked at."""
        return np.asarray(np.ascontiguousarray(array).reshape(-1)[self.places])

    @cached_property
    def came(self) -> np.ndarray:
        """What came there."""
        return self.flat(self.got)

    @cached_property
    def expected(self) -> np.ndarray:
        """What was expected there."""
        return self.flat(self.want)

    @cached_property
    def bits(self) -> np.ndarray:
        """The encodings of what came."""
        return encodings(self.came)

    @cached_property
    def wanted(self) -> np.ndarray:
        """The encodings of what was expected."""
        return encodings(self.expected)

    @cached_property
    def telling(self) -> np.ndarray:
        """Which of what came are values by which one array can be known from another: no zero, infinity or NaN, and no
        id that every vocabulary has or none."""
        if self.floats:
            size = magnitudes(self.came)
            return np.asarray((size != 0) & (np.abs(self.came.astype(np.float32)) < np.inf))
        return np.asarray((self.bits >= PLAIN_IDS) & (self.bits != np.iinfo(self.bits.dtype).max))

    def alike(self, array: np.ndarray) -> np.ndarray:
        """Where what came has the bits of an array of the outputs' dtype and size."""
        return np.asarray(self.bits == encodings(self.flat(array)))

    def comparable(self, array: Any) -> bool:
        """Whether an argument or an output could stand in the output's place."""
        return isinstance(array, np.ndarray) and array.dtype == self.want.dtype and array.size == self.want.size
