"""The campaign: chunks are handed out, come back in any order, and are counted once each, whatever dies meanwhile."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass

import msgspec

from mlx_assay.conformance.sweeping.chunk import Chunk
from mlx_assay.conformance.sweeping.scheduler import Scheduler
from mlx_assay.conformance.sweeping.sweep import Sweep

ATTEMPTS = 4
"""How often a chunk is handed out before it counts as lost."""

MOST_LOST = 16
"""Lost chunks after which there is no use in going on."""

PATIENCE = 0.5
"""Seconds between looks at whether to stop."""


@dataclass(frozen=True)
class Job:
    """A chunk to be judged."""

    sweep: Sweep
    index: int


class Campaign:
    """Runs jobs on a scheduler. `keep` is told of each chunk once, `lost` of each job that never came back.

    Of a worker that dies only what it was at runs again. A chunk that comes twice is the same result of a pure
    function; `keep` is what holds that it is counted once.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        order: Callable[[Job], bytes],
        keep: Callable[[Sweep, Chunk], None],
        lost: Callable[[Job, str], None],
    ) -> None:
        self._scheduler = scheduler
        self._order = order
        self._keep = keep
        self._lost = lost
        self._pending: dict[Future[bytes], Job] = {}
        self._again: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._given_up = 0
        self._attempts: Counter[tuple[str, int]] = Counter()

    def run(self, jobs: Iterator[Job], stop: Callable[[], bool]) -> bool:
        """Whether every job was handed out and came back, or is lost; False where it was stopped or given up."""
        try:
            while not stop() and self._given_up < MOST_LOST:
                self._fill(jobs)
                if self._pending:
                    done, _ = wait(self._pending, PATIENCE, FIRST_COMPLETED)
                    self._take(done)
                elif not self._again and not self._suspects:
                    return True
            return False
        finally:
            for future in self._pending:
                future.cancel()

    def _fill(self, jobs: Iterator[Job]) -> None:
        """Hands out what there is room for; of those that were at work when an executor broke, one at a time."""
        while len(self._pending) < (1 if self._suspects else self._scheduler.room):
            waiting = self._suspects or self._again
            job = waiting.popleft() if waiting else next(jobs, None)
            if job is None:
                return
            try:
                self._pending[self._scheduler.submit(self._order(job))] = job
            except (BrokenExecutor, RuntimeError, OSError) as error:
                self._failed(job, error)
                self._scheduler.renew()
                return
            if waiting is self._suspects:
                return

    def _take(self, done: set[Future[bytes]]) -> None:
        broken: list[tuple[Job, BaseException]] = []
        for future in done:
            job = self._pending.pop(future)
            try:
                chunk = msgspec.json.decode(future.result(), type=Chunk)
            except BrokenExecutor as error:
                broken.append((job, error))
            except (Exception, CancelledError) as error:
                self._failed(job, error)
            else:
                self._keep(job.sweep, chunk)
        if broken:
            self._mend(broken)

    def _mend(self, broken: list[tuple[Job, BaseException]]) -> None:
        """A new executor. One job alone broke the old one; of several nobody knows which did."""
        broken += [(job, broken[0][1]) for job in self._pending.values()]
        self._pending.clear()
        if len(broken) == 1:
            self._failed(*broken[0])
        else:
            self._suspects.extend(job for job, _ in broken)
        self._scheduler.renew()

    def _failed(self, job: Job, error: BaseException) -> None:
        key = job.sweep.id, job.index
        self._attempts[key] += 1
        if self._attempts[key] < ATTEMPTS:
            self._again.append(job)
        else:
            self._given_up += 1
            self._lost(job, f"{type(error).__name__}: {error}")
