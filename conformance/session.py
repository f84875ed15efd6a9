"""The session: records of a run as they come in, and the report that is kept on disk meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import msgspec

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.diagnosis.keeper import emptied
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.process.seal import altered, digests
from mlx_assay.conformance.record import Record, replay_command
from mlx_assay.conformance.reporting.environment import environment, fetched
from mlx_assay.conformance.reporting.report import (
    SCHEMA,
    ContractRecord,
    Environment,
    Executor,
    Implementation,
    OracleState,
    Report,
    SelectionRecord,
    Shard,
    Suite,
    Totals,
    outcome,
    write,
)
from mlx_assay.conformance.reporting.source import source
from mlx_assay.conformance.reporting.stages import Tally
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case

REFRESH_SECONDS = 3.0
REFRESH_SHARE = 30
"""How many times as long as the last refresh took to wait before the next."""


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """What the process that judges tells of itself with its first case."""

    device: str = ""
    executor: str = ""
    executor_details: dict[str, str] = {}
    implementation_details: dict[str, str] = {}
    operations: list[str] = []
    not_asked: list[str] = []
    shard: Shard | None = None
    oracles: dict[str, OracleState] = {}
    device_class: str = ""
    contracts: dict[str, ContractRecord] = {}


class Account(NamedTuple):
    """Where time went since the last one, in the cases of an operation."""

    operation: str
    spent: stopwatch.Spent


class Session:
    """Gathers records by case id; thread safe, since the report is refreshed from a thread of its own.

    `began` is when the run began, a moment of time.monotonic; the command's beginning unless it is given.
    """

    def __init__(
        self, options: Options, watch: Callable[[Record], None] | None = None, began: float | None = None
    ) -> None:
        self.options = options
        self.path = Path(options.report).absolute() if options.report else None
        self._began = stopwatch.began() if began is None else began
        self._started = datetime.now(UTC) - timedelta(seconds=time.monotonic() - self._began)
        self._declared: list[str] = []
        self._records: dict[str, Record] = {}
        self._worker = Worker()
        self._finished = False
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._refresher: threading.Thread | None = None
        self._environment = environment()
        self._watch = watch
        self._altered: list[str] = []
        self._tally = Tally()
        self._own = False
        self.failure = ""
        """Why the last report is not on disk."""
        self._run = uuid4().hex
        self._source = source()
        fixtures, judge = digests()
        if self.path:
            emptied(self.path)
        self._suite = Suite(version=self._environment.packages.get("mlx-assay", ""), fixtures=fixtures, judge=judge)

    def declare(self, case_ids: Sequence[str]) -> None:
        """Names the cases that are to run; each worker names the same ones."""
        with self._lock:
            self._declared = list(dict.fromkeys([*self._declared, *case_ids]))
        if self.path and self._refresher is None:
            self._write()
            self._refresher = threading.Thread(target=self._refresh, name="mlx-assay-report", daemon=True)
            self._refresher.start()

    @property
    def declared(self) -> int:
        """How many cases are to run."""
        return len(self._declared)

    def learn(self, document: str) -> None:
        """Takes what a worker tells of itself; the first one that speaks is believed."""
        with self._lock:
            if self._worker == Worker():
                self._worker = msgspec.json.decode(document, type=Worker)

    def add(self, document: str) -> None:
        """Takes a record; pytest reports the same one after each phase of an item."""
        with stopwatch.stage("report"):
            self._keep(msgspec.json.decode(document, type=Record))

    def account(self, document: str) -> None:
        """Takes where a worker's time went."""
        found = msgspec.json.decode(document, type=Account)
        with self._lock:
            self._tally.add(found.operation, found.spent)

    def lose(self, case_id: str, crashed: bool, text: str) -> None:
        """Makes a record for a case of which pytest says only that it failed."""
        case = Case.parse(case_id)
        last = text.strip().splitlines()[-1:] or ["no message"]
        self._keep(
            Record(
                id=case_id,
                operation=case.operation,
                dtype=case.dtype,
                tags=[],
                why="",
                verdict=Verdict.CRASHED if crashed else Verdict.NOT_RUN,
                conforms=False,
                oracle="",
                oracles=[],
                missing=[],
                subcases=0,
                seconds=0.0,
                replay=replay_command(
                    case_id,
                    self.options.implementation,
                    self.options.executor,
                    self.options.profile,
                    self.options.checked,
                ),
                message=f"{case_id}: the judge {'died' if crashed else 'failed'}: {last[0]}",
            )
        )

    def _keep(self, record: Record) -> None:
        with self._lock:
            if record.id in self._records:
                return
            self._records[record.id] = record
        if self._watch:
            self._watch(record)

    def report(self) -> Report:
        """The report as of now; cases in the order in which they were declared."""
        with self._lock:
            order = {case_id: place for place, case_id in enumerate(self._declared)}
            records = sorted(self._records.values(), key=lambda record: order.get(record.id, len(order)))
            complete = self._finished and len(records) == len(self._declared) and not self.failure
            return Report(
                schema=SCHEMA,
                run=self._run,
                leg=self.options.leg or self._worker.device_class,
                started=self._started.isoformat(timespec="seconds"),
                seconds=round(time.monotonic() - self._began, 3),
                suite=self._suite,
                source=self._source,
                shard=self._worker.shard,
                environment=self._described(),
                implementation=Implementation(
                    name=self.options.implementation or "mlx_assay.impl",
                    operations=self._worker.operations,
                    details=self._worker.implementation_details,
                ),
                executor=Executor(
                    name=self.options.executor or self._worker.executor, details=self._worker.executor_details
                ),
                selection=SelectionRecord(
                    queries=list(self.options.queries),
                    tier=self.options.tier,
                    seed=self.options.seed,
                    not_asked=self._worker.not_asked,
                    without=list(self.options.without),
                ),
                totals=Totals.of(len(self._declared), records),
                complete=complete,
                altered=self._altered,
                stages=self._tally.stages(),
                verdict=outcome(
                    len(self._declared), records, complete and not self._altered and not self._unwatched(records)
                ),
                contracts={name: self._worker.contracts[name] for name in self._told(records)},
                cases=records,
            )

    def _unwatched(self, records: Sequence[Record]) -> bool:
        """Whether the checker was asked for and saw no kernel: nothing then holds that there is no fault."""
        return self.options.checked and not any(record.launches for record in records)

    def _described(self) -> Environment:
        worker = self._worker
        return msgspec.structs.replace(
            self._environment,
            device=worker.device,
            device_class=worker.device_class,
            oracles=worker.oracles,
            packages=fetched(worker.oracles) | self._environment.packages,
        )

    def _told(self, records: Sequence[Record]) -> list[str]:
        """Operations of which the report tells what they promise: those that have a case that does not conform."""
        failing = {record.operation for record in records if not record.conforms}
        return sorted(failing & self._worker.contracts.keys())

    def finish(self) -> Report:
        """Ends the run and writes the last report."""
        self._stop.set()
        if self._refresher:
            self._refresher.join()
        with self._lock:
            self._finished = True
            with stopwatch.stage("seal"):
                self._altered = altered()
            self._tally.add("", stopwatch.taken("report"), "command")
            self._write()
            return self.report()

    def begin(self) -> None:
        """Puts an empty report in the place of an earlier run's: should this one be killed, that one stands no more."""
        self._write()

    def _refresh(self) -> None:
        written, spent = -1, 0.0
        # A large report takes a while to write, and the thread that gathers records waits meanwhile.
        while not self._stop.wait(max(REFRESH_SECONDS, REFRESH_SHARE * spent)):
            if written != len(self._records):
                began = time.monotonic()
                written = len(self._records)
                self._write()
                spent = time.monotonic() - began

    def _write(self) -> None:
        """Replaces the report on disk. Where that cannot be done, the run goes on, and ends incomplete."""
        if not self.path:
            return
        self.failure = ""
        try:
            with stopwatch.stage("report"):
                write(self.report(), self.path)
            self._own = True
        except OSError as error:
            self.failure = error.strerror or str(error)
            if not self._own:
                # What lies there is of an earlier run, and must not be taken for this one's.
                with suppress(OSError):
                    self.path.unlink(missing_ok=True)
