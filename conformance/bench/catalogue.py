"""The catalogue: every benchmark that a contract declares, and what of it a command line means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from mlx_assay.conformance.bench.benchmark import NONE, Asked, Benchmark, Shape, contenders
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.query import Query, QueryError, nearest
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import LARGEST


def declared(executor: str) -> Iterator[Asked]:
    """Every benchmark at its own shape, or on the host at the one in which it is counted, contracts in order."""
    for operation, contract in contracts().items():
        for benchmark in contract.benchmarks:
            for dtype in benchmark.dtypes:
                yield Asked(operation, dtype, _own(benchmark, executor), benchmark)


def selected(
    queries: Sequence[str], executor: str, shape: str | None = None, dtype: str | None = None
) -> tuple[Asked, ...]:
    """What the queries mean, each once; all without a query. QueryError where one means none, or for a bad shape.

    `shape` and `dtype` take the place of the declared ones.
    """
    known = list(declared(executor))
    asked = [one for text in queries for one in _matched(text, known)] if queries else known
    if dtype is not None:
        asked = [Asked(one.operation, dtype, one.shape, one.benchmark) for one in asked]
        _check_dtype(asked, dtype)
    if shape is not None:
        sizes = shape_of(shape)
        asked = [Asked(one.operation, one.dtype, _reshaped(one, sizes), one.benchmark) for one in asked]
        for one in asked:
            if expected := one.benchmark.refused(one.shape):
                raise QueryError(f"Expected {expected} of {one.operation} but got the shape {shape!r}")
    return tuple({one.id: one for one in asked}.values())


def check_beside(asked: Sequence[Asked], executor: str, beside: Sequence[str]) -> None:
    """QueryError where one of the globs means none of the contenders on this executor."""
    names = list(dict.fromkeys(one.name for each in asked for one in contenders(each, executor)))
    for text in beside:
        if text != NONE and not any(fnmatchcase(name, text) for name in names):
            known = ", ".join(names) or "nobody"
            raise QueryError(f"Expected a glob for contenders on {executor}, {known}, or {NONE} but got {text!r}")


def shape_of(text: str) -> Shape:
    """`rows=64,vocab=262144` as sizes by axis; QueryError for anything else."""
    sizes: dict[str, int] = {}
    for pair in text.split(","):
        axis, separator, size = pair.partition("=")
        if not separator or not axis.isidentifier() or not (size.isascii() and size.isdigit()) or axis in sizes:
            raise QueryError(f"Expected a shape such as rows=8,vocab=32768, each axis once, but got {text!r}")
        sizes[axis] = int(size)
        if not 1 <= sizes[axis] <= LARGEST:
            raise QueryError(f"Expected sizes from 1 to {LARGEST} but got {axis}={size}")
    return sizes


def _own(benchmark: Benchmark, executor: str) -> Shape:
    return benchmark.host if executor == "host" else benchmark.shape


def _matched(text: str, known: Sequence[Asked]) -> list[Asked]:
    query = Query.parse(text)
    cases = [Case.make(one.operation, one.dtype, "", one.shape) for one in known]
    found = [
        one
        for one, case in zip(known, cases, strict=True)
        if (query.leads_to(one.path) or query.leads_to(f"{one.path}/")) and query.admits(case)
    ]
    if not found:
        ids = [one.id for one in known]
        near = ", ".join(nearest(text, ids) or ids[:5])
        raise QueryError(f"Expected a benchmark such as {near} but got {text!r}: mlx-assay bench --list shows all")
    return found


def _check_dtype(asked: Sequence[Asked], dtype: str) -> None:
    for one in asked:
        known = contracts()[one.operation].dtypes
        if dtype not in known:
            raise QueryError(f"Expected a dtype of {one.operation}, {', '.join(known)}, but got {dtype!r}")


def _reshaped(asked: Asked, sizes: Mapping[str, int]) -> Shape:
    if unknown := set(sizes) - set(asked.shape):
        raise QueryError(
            f"Expected axes of {asked.operation}, {', '.join(asked.shape)}, but got {', '.join(sorted(unknown))}"
        )
    return {**asked.shape, **sizes}
