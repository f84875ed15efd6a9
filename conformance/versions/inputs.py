"""The inputs: of the suite's quick cases, each content once, and of rows that versions have treated differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import zip_longest
from typing import Any

import numpy as np

from mlx_assay.conformance.query import Query
from mlx_assay.conformance.selection import NothingSelected
from mlx_assay.conformance.versions.rows import special
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import all_cases, kind_of
from mlx_assay.fixtures.tensor import Tensor

DERIVED = {
    "normalized_argmax": ("normalized_argmax", "logsumexp", "argmax"),
    "argmax_given": ("argmax_given",),
    "apply_token_bitmask": ("apply_token_bitmask",),
    "logit_softcap": ("logit_softcap", "tanh", "exp", "divide"),
}
"""Operations that are asked with the inputs of an operation's cases."""

OPERATIONS = (
    *(name for names in DERIVED.values() for name in names),
    *("compiled_logit_softcap", "sum_rows", "sum_columns", "sum_all"),
)
ELEMENTS = 1 << 16
"""The largest array of an input."""

EACH = 400
"""The most inputs of an operation and dtype that come from the suite's cases."""


@dataclass(frozen=True)
class Input:
    """One question: an operation, where its input comes from, its arrays (row-contiguous) and numbers by name."""

    operation: str
    case: Case
    label: str
    arrays: dict[str, np.ndarray]
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def dtype(self) -> str:
        return str(next(iter(self.arrays.values())).dtype)

    @property
    def key(self) -> bytes:
        """A digest of everything that the answer depends on."""
        digest = sha256(self.operation.encode())
        for name, array in sorted(self.arrays.items()):
            digest.update(f"/{name}:{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
        digest.update(repr(sorted((name, value.hex()) for name, value in self.numbers.items())).encode())
        return digest.digest()


def gathered(queries: Sequence[str] = ()) -> list[Input]:
    """The inputs that any of the queries means, all without one; QueryError, and NothingSelected where none is meant.

    A query asks for an operation's name, or for that of the cases that its inputs come from.
    """
    parsed = [Query.parse(text) for text in queries]
    for query in parsed:
        query.check(
            (*OPERATIONS, "rows", "matrices"), ("bfloat16", "float16", "float32", "int32", "uint32", "int8", "uint8")
        )
    found: dict[bytes, Input] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for given in special():
        if _meant(given, parsed):
            found.setdefault(given.key, given)
    for given in _of_cases(parsed):
        place = given.operation, given.dtype
        if counts[place] < EACH and _meant(given, parsed) and given.key not in found:
            found[given.key] = given
            counts[place] += 1
    for query in parsed:
        if not any(_meant(given, [query]) for given in found.values()):
            raise NothingSelected(f"Query {query.text!r} matches no input of {', '.join(OPERATIONS)}")
    return list(found.values())


def _meant(given: Input, queries: Sequence[Query]) -> bool:
    return _chosen(given.case, (given.operation,), queries)


def _chosen(case: Case, operations: Sequence[str], queries: Sequence[Query]) -> bool:
    named = [Case(operation, case.dtype, case.kind, case.parameters) for operation in operations]
    return not queries or any(query.matches(known) for query in queries for known in (case, *named))


def _of_cases(queries: Sequence[Query]) -> Iterator[Input]:
    """Every case's first subcase, then every case's second, and so on: no kind is left out for another's many."""
    asked = [case for case in all_cases("quick") if case.operation in DERIVED]
    columns = [_of_case(case) for case in asked if _chosen(case, DERIVED[case.operation], queries)]
    for turn in zip_longest(*columns):
        for inputs in turn:
            yield from inputs or ()


def _of_case(case: Case) -> Iterator[list[Input]]:
    for subcase in kind_of(case).subcases(case):
        if not subcase.raises:
            yield [Input(name, case, subcase.label, *taken) for name, taken in _taken(case.operation, subcase)]


def _taken(operation: str, subcase: Subcase) -> Iterable[tuple[str, tuple[dict[str, np.ndarray], dict[str, float]]]]:
    arrays = {name: value.array for name, value in subcase.arguments.items() if isinstance(value, Tensor)}
    numbers = {name: float(value) for name, value in subcase.arguments.items() if isinstance(value, (int, float))}
    if not all(0 < array.size <= ELEMENTS and array.ndim for array in arrays.values()):
        return
    for name in DERIVED[operation]:
        if name == operation or name == "logsumexp":
            yield name, (arrays, numbers)
            continue
        x = next(iter(arrays.values()))
        yield name, ({"x": x, **_divisor(name, x, numbers)}, {})


def _divisor(operation: str, x: np.ndarray, numbers: dict[str, Any]) -> dict[str, np.ndarray]:
    if operation != "divide":
        return {}
    with np.errstate(all="ignore"):
        return {"y": np.full(x.shape, np.float32(numbers["cap"])).astype(x.dtype)}
