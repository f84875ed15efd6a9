"""The exhibit: inputs, both outputs and every expected output of one subcase that differs, as a file holds them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mlx_assay.conformance.diagnosis.evidence import distinct
from mlx_assay.fixtures.case import Subcase
from mlx_assay.fixtures.codec import encode
from mlx_assay.fixtures.tensor import DTYPES, Tensor

MARK = ("mlx-assay", "tensors:1")
"""Metadata by which this suite knows its own files."""
FILE_LIMIT = 64 << 20
"""Bytes of one file; of more, the rows that differ are kept."""


@dataclass(frozen=True)
class Exhibit:
    """What is known of a difference as arrays.

    `rounds` are what the two calls returned, None where one returned no array; `wants` what each oracle expects, by its
    name; `at` the flat places that differ. `texts` say what it is of: case, subcase, oracle, executor, implementation.
    """

    subcase: Subcase
    rounds: Sequence[np.ndarray | None]
    wants: Sequence[tuple[str, np.ndarray]]
    at: np.ndarray
    texts: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> bytes:
        """A safetensors file of at most FILE_LIMIT bytes of data; ValueError where one row takes more than that."""
        tensors, kept = self.tensors(), dict[str, str]()
        if sum(array.nbytes for array in tensors.values()) > FILE_LIMIT:
            tensors, kept = self._rows(tensors)
        return encode(tensors, {MARK[0]: MARK[1], **self.texts, **self._plain(), **kept})

    def tensors(self) -> dict[str, np.ndarray]:
        """All arrays: `input.x`, of a view its base `base.x` too, `got.first`, `got.second`, `want.ORACLE`."""
        found: dict[str, np.ndarray] = {}
        for name, value in self.subcase.arguments.items():
            if isinstance(value, Tensor):
                found[f"input.{name}"] = value.array
                if value.steps:
                    found[f"base.{name}"] = value.base
        for name, array in zip(("first", "second"), self.rounds, strict=False):
            if array is not None and array.dtype in DTYPES.values():
                found[f"got.{name}"] = array
        for oracle, array in self.wants:
            again = sum(name.partition("#")[0] == f"want.{oracle}" for name in found)
            found[f"want.{oracle}" if not again else f"want.{oracle}#{again + 1}"] = array
        return found

    def _plain(self) -> dict[str, str]:
        """Arguments that are no arrays, floats as hex, and how views are made of their bases."""
        told: dict[str, str] = {}
        for name, value in self.subcase.arguments.items():
            if isinstance(value, Tensor):
                if value.steps:
                    told[f"steps.{name}"] = json.dumps(value.steps)
            else:
                told[f"argument.{name}"] = value.hex() if isinstance(value, float) else repr(value)
        return told

    def _rows(self, tensors: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        """The rows that differ, as many as fit, of all arrays that have such rows; and a text that says so.

        A row is one of the last axis, or where the output has an element for each row of an input, that element's.
        """
        shape = self.wants[0][1].shape
        inputs = [array for name, array in tensors.items() if name.startswith("input.")]
        single = any(array.shape[:-1] == shape and array.ndim == len(shape) + 1 for array in inputs)
        lead = shape if single else shape[:-1]
        rows = distinct(self.at if single else self.at // shape[-1])
        parted = {
            name: array.reshape(int(np.prod(lead)), -1)
            for name, array in tensors.items()
            if not name.startswith("base.") and array.shape[: len(lead)] == lead and array.size
        }
        each = sum(array[:1].nbytes for array in parted.values()) + rows.itemsize
        fitting = FILE_LIMIT // each
        if fitting == 0:
            raise ValueError(f"one row takes {each} bytes, more than {FILE_LIMIT}")
        chosen = rows[:fitting].astype(np.int64)
        found = {name: np.ascontiguousarray(array[chosen]) for name, array in parted.items()}
        left = sorted(set(tensors) - set(parted))
        text = f"rows {chosen.size} of {rows.size} that differ, numbered in 'rows', of {int(np.prod(lead))}"
        return {**found, "rows": chosen}, {"kept": f"{text}; left out: {', '.join(left) or 'nothing'}"}
