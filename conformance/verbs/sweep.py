"""The verb `sweep`: every input of a range, in chunks that a journal keeps, and the report of what came of them."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.options import DEFAULT_LIMIT, output
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.process.seal import altered
from mlx_assay.conformance.reporting.environment import environment
from mlx_assay.conformance.reporting.source import source
from mlx_assay.conformance.sweeping import report as reports
from mlx_assay.conformance.sweeping.account import Account
from mlx_assay.conformance.sweeping.campaign import Campaign, Job
from mlx_assay.conformance.sweeping.catalogue import chosen
from mlx_assay.conformance.sweeping.chunk import Chunk
from mlx_assay.conformance.sweeping.identity import identity
from mlx_assay.conformance.sweeping.journal import Journal, JournalError
from mlx_assay.conformance.sweeping.progress import Screen, screen
from mlx_assay.conformance.sweeping.rendering import closing, listed
from mlx_assay.conformance.sweeping.scheduler import Scheduler, SchedulerError, cluster, processes
from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.conformance.sweeping.worker import Order
from mlx_assay.conformance.verbs.interruption import postponed
from mlx_assay.conformance.verbs.refusal import Refusal, checked_executor, refusing
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE

MOST_PROCESSES = 4


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for; `chunks` are numbers, first and behind the last, of every sweep."""

    queries: Sequence[str] = ()
    implementation: str | None = None
    executor: str | None = None
    limit: float = DEFAULT_LIMIT
    count: int | None = None
    scheduler: str | None = None
    journal: str
    resume: bool = False
    report: str
    chunks: tuple[int, int] | None = None
    every: bool = False


def show(queries: Sequence[str]) -> int:
    """Prints the sweeps that there are."""
    with refusing():
        for line in listed(chosen(queries)):
            print(line)
    return EXIT_CONFORMS


def sweep(request: Request) -> int:
    """Runs a campaign, or what is left of one; returns the exit code of its report."""
    try:
        file = output(request.report)
    except ValueError as error:
        raise Refusal(str(error)) from None
    with refusing():
        asked = chosen(request.queries)
    checked_executor(request.executor)
    handle = Implementation(request.implementation, request.executor, request.limit)
    try:
        operations = handle.operations
        known = identity(handle, every=request.every)
    except ImplementationError as error:
        raise Refusal(str(error)) from error
    finally:
        handle.close()
    accounts = _accounts([one for one in asked if one.case.operation in operations], request.chunks)
    lacking = [one.id for one in asked if one.case.operation not in operations]
    if not accounts:
        raise Refusal(_nothing(asked, operations, request.chunks), EXIT_INCOMPLETE)
    try:
        scheduler = _scheduler(request)
        try:
            with Journal(Path(request.journal).absolute(), known, resume=request.resume) as journal:
                return _run(request, accounts, journal, lacking, file, scheduler).exit_code
        finally:
            scheduler.close()
    except (JournalError, SchedulerError) as error:
        raise Refusal(str(error), EXIT_INCOMPLETE) from error


def _nothing(asked: Sequence[Sweep], operations: Sequence[str], chunks: tuple[int, int] | None) -> str:
    """Why nothing of what was asked for can run."""
    had = [one for one in asked if one.case.operation in operations]
    if not had or chunks is None:
        what = f"the implementation has {', '.join(operations)}"
    else:
        longest = max(had, key=lambda one: one.chunks)
        what = (
            f"Expected chunks below {longest.chunks:,}, of which {longest.id} has most, but got {chunks[0]}:{chunks[1]}"
        )
    return f"Nothing to run: {what}; mlx-assay sweep --list shows what there is"


def _accounts(sweeps: Sequence[Sweep], chunks: tuple[int, int] | None) -> dict[str, Account]:
    """Of each sweep that has such chunks."""
    found = {}
    for one in sweeps:
        first, last = chunks or (0, one.chunks)
        if span := range(first, min(last, one.chunks)):
            found[one.id] = Account(one, span)
    return found


def _run(
    request: Request,
    accounts: dict[str, Account],
    journal: Journal,
    lacking: list[str],
    file: Path,
    scheduler: Scheduler,
) -> reports.Campaign:
    began, started = time.monotonic(), datetime.now(UTC)
    display = screen(sys.stdout)
    resumed = _resumed(accounts, journal, display)
    asked, judged = (sum(getattr(one, name) for one in accounts.values()) for name in ("asked", "judged"))
    what = f"{counted(len(accounts), 'sweep')}, {counted(asked, 'input')}"
    display.say(f"{what}, {judged:,} of them judged before; {scheduler.name}")

    def told(complete: bool) -> reports.Campaign:
        records = [account.record() for account in accounts.values()]
        changed = altered()
        return reports.Campaign(
            schema=reports.SCHEMA,
            started=started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - began, 3),
            scheduler=scheduler.name,
            journal=str(journal.folder),
            resumed=resumed,
            identity=journal.identity,
            source=source(),
            environment=environment(),
            queries=list(request.queries),
            chunks=request.chunks,
            not_asked=lacking,
            totals=reports.totals(records),
            complete=complete and not changed,
            altered=changed,
            verdict=reports.outcome(records, complete and not changed),
            sweeps=records,
        )

    reports.write(told(False), file)
    display.started(asked, judged)
    complete = False
    try:
        with postponed() as stop:
            complete = _conduct(request, accounts, journal, scheduler, display, stop)
    finally:
        display.finished()
        found = told(complete)
        reports.write(found, file)
        for line in closing(found, file):
            display.say(line)
    return found


def _resumed(accounts: dict[str, Account], journal: Journal, display: Screen) -> int:
    """Counts what the journal has."""
    count = 0
    for account in accounts.values():
        for chunk in journal.kept(account.sweep):
            if chunk.index in account.span:
                account.add(chunk)
                count += 1
    for path in journal.damaged:
        display.say(f"damaged, its chunk runs again: {path}")
    return count


def _conduct(
    request: Request,
    accounts: dict[str, Account],
    journal: Journal,
    scheduler: Scheduler,
    display: Screen,
    stop: Callable[[], bool],
) -> bool:
    folders = [os.getcwd(), *(folder for folder in sys.path if folder)]

    def order(job: Job) -> bytes:
        return msgspec.json.encode(
            Order(
                sweep=job.sweep.id,
                index=job.index,
                implementation=request.implementation,
                executor=request.executor,
                limit=request.limit,
                every=request.every,
                path=folders,
            )
        )

    def keep(one: Sweep, chunk: Chunk) -> None:
        account = accounts[one.id]
        journal.keep(one, chunk)
        if not account.has(chunk.index):
            account.add(chunk)
            display.judged(chunk)

    def lost(job: Job, reason: str) -> None:
        accounts[job.sweep.id].lose(job.index, reason)
        display.say(f"lost: chunk {job.index} of {job.sweep.id}: {reason}")

    return Campaign(scheduler, order, keep, lost).run(_jobs(accounts), stop)


def _jobs(accounts: dict[str, Account]) -> Iterator[Job]:
    """What is not yet judged, sweep by sweep."""
    return itertools.chain.from_iterable(
        (Job(account.sweep, index) for index in account.span if not account.has(index)) for account in accounts.values()
    )


def _scheduler(request: Request) -> Scheduler:
    if request.scheduler is not None:
        return cluster(request.scheduler)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processes(request.count or min(cores, MOST_PROCESSES))
