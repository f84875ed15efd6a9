"""A campaign: many mutants, judged by a few workers, each until its first kill."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from mlx_assay.conformance.mutation.bench import Bench, CampaignError, listed, quick
from mlx_assay.conformance.mutation.mutant import Mutant, all_mutants
from mlx_assay.conformance.mutation.ruling import EQUIVALENT, SURVIVED, Ruling

MEMORY = Path("/dev/shm")
"""Where copies of a few kilobytes are written, a few thousand of them, where the system has it."""

Watch = Callable[[Ruling, int, int], None]
"""Told each ruling as it comes, with how many have come and how many are to come."""

_bench: Bench | None = None


def run(
    mutants: Sequence[Mutant],
    reasons: Mapping[str, str],
    *,
    limit: float,
    workers: int,
    recheck: bool = False,
    thorough: bool = False,
    all_listed: bool = False,
    watch: Watch = lambda *_: None,
    kept: Sequence[Ruling] = (),
) -> tuple[list[Ruling], bool]:
    """A ruling on each mutant, in their order, and whether none is missing.

    Those that are `kept` of an earlier campaign are not asked again. Mutants with a reason are equivalent without being
    run; with `recheck` they are run, and may be killed. With `thorough` each meets all cases that are tried first, with
    `all_listed` those too that kinds list for the quick tier and a file has moved to the full one. Ctrl-C ends a
    campaign with what has been ruled until then.
    CampaignError: the kernels themselves do not conform here, or a worker is gone.
    """

    def rule(pending: Sequence[Mutant]) -> Generator[Ruling, None, None]:
        with _folder() as folder:
            yield from _ruled([mutant.id for mutant in pending], (str(folder), limit, thorough, all_listed), workers)

    return gathered(mutants, reasons, rule, recheck, watch, kept)


def gathered(
    mutants: Sequence[Mutant],
    reasons: Mapping[str, str],
    rule: Callable[[Sequence[Mutant]], Generator[Ruling, None, None]],
    recheck: bool,
    watch: Watch,
    kept: Sequence[Ruling] = (),
) -> tuple[list[Ruling], bool]:
    """What `rule` says of those that have no reason, or of all with `recheck`, beside the reasons; see `run`."""
    rulings = {ruling.id: reasoned(ruling, reasons) for ruling in kept}
    for mutant in mutants:
        if mutant.id in reasons and not recheck:
            rulings[mutant.id] = Ruling(mutant.id, EQUIVALENT, reason=reasons[mutant.id])
    pending = [mutant for mutant in mutants if mutant.id not in rulings]
    try:
        with closing(rule(pending)) as coming:
            for ruling in coming:
                rulings[ruling.id] = told = reasoned(ruling, reasons)
                watch(told, len(rulings), len(mutants))
    except KeyboardInterrupt:
        pass
    found = [rulings[mutant.id] for mutant in mutants if mutant.id in rulings]
    return found, len(found) == len(mutants)


def reasoned(ruling: Ruling, reasons: Mapping[str, str]) -> Ruling:
    """A survivor that has a reason is equivalent."""
    if ruling.outcome == SURVIVED and ruling.id in reasons:
        return msgspec.structs.replace(ruling, outcome=EQUIVALENT, reason=reasons[ruling.id])
    return ruling


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mlx-assay-mutants-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


def _ruled(ids: Sequence[str], how: tuple[str, float, bool, bool], workers: int) -> Iterator[Ruling]:
    """Each in the order in which it comes; workers are processes, since a mutant's may need to be replaced."""
    context = multiprocessing.get_context("spawn")
    numbers = context.Queue()
    count = min(workers, max(len(ids), 1))
    for number in range(count):
        numbers.put(number)
    pool = ProcessPoolExecutor(count, context, initializer=_start, initargs=(numbers, *how))
    waiting: set[Future[Ruling]] = {pool.submit(_rule, mutant_id) for mutant_id in ids}
    try:
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool:
        raise CampaignError("A worker ended in the middle of its work: run the campaign again") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start(numbers: multiprocessing.Queue[int], folder: str, limit: float, thorough: bool, all_listed: bool) -> None:
    global _bench
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Ctrl-C is for the process that gathers: a worker ends the mutant that it is at.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # One thread a worker: pools of several on the same cores wait for each other.
    for name in ("OMP_NUM_THREADS", "MLX_ASSAY_THREADS"):
        os.environ.setdefault(name, "1")
    _bench = Bench(Path(folder), limit, numbers.get(), listed if all_listed else quick, thorough)


def _end_with_parent() -> None:
    """A campaign that is killed leaves no worker behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _rule(mutant_id: str) -> Ruling:
    assert _bench is not None
    return _bench.rule(all_mutants()[mutant_id])


def spent(began: float) -> float:
    """Seconds since a moment of time.monotonic, for a report."""
    return round(time.monotonic() - began, 1)
