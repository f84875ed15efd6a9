"""The verb `run`: checks the request, lets pytest judge, and reads the exit code off the report."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TextIO

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.options import Options, output
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.reporting.intake import Damaged
from mlx_assay.conformance.reporting.outlet import Outlet, opened
from mlx_assay.conformance.reporting.progress import screen
from mlx_assay.conformance.reporting.report import Report, decode
from mlx_assay.conformance.reporting.summary import closing, header
from mlx_assay.conformance.selection import Selection, check_oracles, select
from mlx_assay.conformance.session import Session
from mlx_assay.conformance.splitting import part
from mlx_assay.conformance.verbs import bundle, engine
from mlx_assay.conformance.verbs.interruption import interruptible
from mlx_assay.conformance.verbs.refusal import (
    Refusal,
    checkable_executor,
    checked_executor,
    checked_profile,
    damaged,
    refusing,
)
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

CLEAN = frozenset({0, 1})
"""pytest's statuses of a run that came to its end: all passed, some failed."""


def run(options: Options, count: int | None, junit: str | None, bundles: str | None = None) -> int:
    """Runs the selected cases; returns the exit code. `count` is the number of workers, None for a fitting one.

    In the folder `bundles` the first failing cases are kept. SIGTERM and SIGHUP raise KeyboardInterrupt from the
    beginning: from when an earlier run's report is gone.
    """
    if options.report is None:
        raise Refusal("Expected a file for the report")
    with interruptible(), stopwatch.counting(options.stages):
        return _run(options, options.report, count, junit, bundles)


def _run(options: Options, file: str, count: int | None, junit: str | None, bundles: str | None) -> int:
    _check_outputs(file, junit)
    kept = None if bundles is None else bundle.folder(bundles)
    try:
        selection, executor = _prepare(options)
        told = "" if options.profile is None else checked_profile(options.profile, options.executor)
    except Refusal as refusal:
        if refusal.code == EXIT_INCOMPLETE:
            # No report of an earlier run may stand for this one.
            Session(options).finish()
        raise
    stream, outlet = _own_stdout()
    show = screen(stream)
    for line in header(options):
        show.say(line)
    if told:
        show.say(told)
    chosen = engine.workers(executor, len(selection.cases)) if count is None else count
    with stopwatch.stage("pytest"):
        status = engine.run(options, chosen, junit, show)
    report = _read(Path(file))
    if kept is not None:
        bundle.make_all(report.cases, options, kept, show.say)
    for line in closing(report, Path(file).absolute(), stopwatch.whole()):
        show.say(line)
    stream.flush()
    if outlet and outlet.failure:
        raise Refusal(f"Standard output cannot be written: {outlet.failure}", EXIT_INCOMPLETE)
    return _exit_code(report, len(selection.cases), status)


def _own_stdout() -> tuple[TextIO, Outlet | None]:
    """Standard output on a descriptor that pytest does not turn aside while it captures."""
    own = sys.stdout
    if not isinstance(own, io.TextIOWrapper):
        return own, None
    try:
        return opened(own.fileno(), own)
    except OSError:
        return own, None


def _prepare(options: Options) -> tuple[Selection, str]:
    with refusing():
        check_oracles(options.without)
        select(options.queries, options.tier, options.seed)
        executor = (checkable_executor if options.checked else checked_executor)(options.executor)
        # From here on no report of an earlier run may stand for this one, however it ends.
        Session(options).begin()
        selection = select(options.queries, options.tier, options.seed, _operations(options))
    try:
        return part(selection, options), executor
    except Damaged as error:
        raise damaged(error) from error
    except ValueError as error:
        raise Refusal(str(error)) from error


def _operations(options: Options) -> tuple[str, ...]:
    implementation = Implementation(options.implementation, options.executor, options.limit)
    try:
        return implementation.operations
    except ImplementationError as error:
        raise Refusal(str(error)) from error
    finally:
        implementation.close()


def _check_outputs(report: str, junit: str | None) -> None:
    try:
        files = [output(path) for path in (report, junit) if path is not None]
    except ValueError as error:
        raise Refusal(str(error)) from error
    if len(set(files)) < len(files):
        raise Refusal(f"Expected two files, for the report and for JUnit, but got {report!r} for both")


def _read(path: Path) -> Report:
    try:
        return decode(path.read_bytes())
    except (OSError, ValueError) as error:
        raise Refusal(f"The run left no valid report at {path}: {error}", EXIT_INCOMPLETE) from error


def _exit_code(report: Report, selected: int, status: int) -> int:
    """The report's own exit code, unless pytest saw less than was selected or did not come to its end."""
    if report.exit_code == EXIT_INCOMPLETE:
        return EXIT_INCOMPLETE
    if report.totals.declared != selected:
        raise Refusal(f"Expected {selected} cases but {report.totals.declared} were declared", EXIT_INCOMPLETE)
    if status not in CLEAN:
        raise Refusal(f"Expected pytest to end with status 0 or 1 but got {status}", EXIT_INCOMPLETE)
    return report.exit_code
