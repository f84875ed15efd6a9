"""The verb `bench`: judges, measures or counts, and tells."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from mlx_assay.conformance.adapters.target import BUILT_IN, NoTarget, target
from mlx_assay.conformance.bench.benchmark import Asked
from mlx_assay.conformance.bench.catalogue import check_beside, selected
from mlx_assay.conformance.bench.measurement import Plan
from mlx_assay.conformance.bench.process import Failure, Measuring
from mlx_assay.conformance.bench.rendering import head, lines, listed, markdown
from mlx_assay.conformance.bench.report import SCHEMA, Report, encode
from mlx_assay.conformance.bench.session import Session, Side
from mlx_assay.conformance.bench.speed import copied
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.process.seal import altered
from mlx_assay.conformance.quotation import passage
from mlx_assay.conformance.reporting.environment import packages
from mlx_assay.conformance.selection import check_oracles, select
from mlx_assay.conformance.verbs.outputs import asked as outputs
from mlx_assay.conformance.verbs.outputs import clear, write
from mlx_assay.conformance.verbs.refusal import Refusal, checked_executor, refusing
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE
from mlx_assay.impl.executors.counting import DEVICES, H200


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    queries: tuple[str, ...] = ()
    implementation: str | None = None
    executor: str | None = None
    dtype: str | None = None
    shape: str | None = None
    cases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    against: str | None = None
    models: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    rounds: int = 9
    calls: int = 64
    checks: int = 18
    limit: float = 60.0
    json: str | None = None
    markdown: str | None = None


def show(request: Request) -> int:
    """Lists the benchmarks that are meant."""
    executor = checked_executor(request.executor)
    with refusing():
        asked = selected(request.queries, executor, request.shape, request.dtype)
    for line in listed(asked, executor):
        print(line)
    return 0


def bench(request: Request) -> int:
    """Measures what is meant; returns the exit code."""
    paths = outputs((request.json, request.markdown))
    executor = checked_executor(request.executor)
    with refusing():
        asked = selected(request.queries, executor, request.shape, request.dtype)
        check_beside(asked, executor, request.beside)
        check_oracles(request.without)
        if request.cases:
            select(request.cases)
    _measurable(request, executor)
    clear(paths)
    report = _measured(request, executor, asked, paths)
    if changed := altered():
        raise Refusal(f"Files of this suite were changed while it measured: {', '.join(changed[:3])}", EXIT_INCOMPLETE)
    _write(report, paths)
    return report.exit_code


def _write(report: Report, paths: Sequence[Path | None]) -> None:
    for path, content in zip(paths, (encode(report), markdown(report).encode()), strict=True):
        if path is not None:
            write(path, content)


def _measurable(request: Request, executor: str) -> None:
    for option, text in (("--implementation", request.implementation), ("--against", request.against)):
        try:
            found = target(text)
        except NoTarget as error:
            raise Refusal(str(error)) from None
        if found.argv:
            raise Refusal(
                f"Expected a module, an object or an entry point for {option} but got the program {found.told}: "
                "behind a pipe its transport would be measured, and its kernels run where nothing can be timed; "
                "mlx-assay run judges it"
            )
    if request.against is not None and executor != "host":
        raise Refusal(f"Expected --against on the executor 'host', where kernels are counted, but got {executor!r}")
    if request.models and request.against is None:
        raise Refusal("Expected --model beside --against, whose two forms it sets in order, but got it alone")
    if unknown := [name for name in request.models if name not in DEVICES]:
        raise Refusal(f"Expected a modelled device, {', '.join(DEVICES)}, but got {unknown[0]!r}")


def _measured(request: Request, executor: str, asked: tuple[Asked, ...], paths: Sequence[Path | None]) -> Report:
    """Measures one after the other; what is there already stands in the files, as a part of a report."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with ExitStack() as stack:
        side = _side(request.implementation, executor, request.limit, stack)
        against = None if request.against is None else _side(request.against, executor, request.limit, stack)
        if against is not None:
            _comparable(asked, side, against)
        copy = copied(side.measuring, executor)
        report = Report(
            schema=SCHEMA,
            suite=packages().get("mlx-assay", ""),
            implementation=side.name,
            against=request.against or "",
            executor=executor,
            device=side.measuring.device,
            started=started,
            calls=request.calls,
            rounds=request.rounds,
            copied=copy,
            results=[],
        )
        _print(head(report))
        plan = Plan(request.rounds, request.calls, request.checks)
        models = request.models or (H200.name,)
        session = Session(plan, request.cases, request.without, request.beside, copy, models)
        try:
            for one in asked:
                if one.operation in side.measuring.operations:
                    report.results.append(session.result(one, side, against))
                    _print(lines(report.results[-1], copy))
                    if paths[0] is not None:
                        write(paths[0], encode(report))
        except KeyboardInterrupt:
            _write(report, paths)
            raise
    lacking = sorted({one.operation for one in asked} - {result.operation for result in report.results})
    if lacking:
        _print([f"not asked: the implementation lacks {', '.join(lacking)}"])
    if not report.results:
        print("mlx-assay: nothing was measured", file=sys.stderr)
    return msgspec.structs.replace(report, complete=True)


def _comparable(asked: Iterable[Asked], side: Side, against: Side) -> None:
    """What is measured must be there to stand beside it."""
    measured = {one.operation for one in asked} & set(side.measuring.operations)
    if lacking := sorted(measured - set(against.measuring.operations)):
        raise Refusal(
            f"Expected an implementation of {', '.join(lacking)} for --against but {against.name} has none: "
            "name benchmarks of operations that both have"
        )


def _side(text: str | None, executor: str, limit: float, stack: ExitStack) -> Side:
    try:
        implementation = stack.enter_context(Implementation(text, executor, limit))
        return Side(text or BUILT_IN, implementation, stack.enter_context(Measuring(text, executor, limit)))
    except (ImplementationError, Failure) as error:
        raise Refusal(str(error)) from error


def _print(told: Iterable[str]) -> None:
    for line in told:
        print(passage(line), flush=True)
