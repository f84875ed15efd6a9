"""A campaign against what judges: each fault in a copy of the repository, until the first self-test that fails."""

from __future__ import annotations

import json
import queue
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from mlx_assay.conformance.mutation.campaign import MEMORY, gathered
from mlx_assay.conformance.mutation.judge.server import NO_TESTS
from mlx_assay.conformance.mutation.judge.texts import text_of
from mlx_assay.conformance.mutation.judge.workbench import Workbench, WorkbenchError
from mlx_assay.conformance.mutation.mutant import Mutant
from mlx_assay.conformance.mutation.ruling import COMPILATION, KILLED, SURVIVED, TEST, Ruling

LIMIT = 120.0
"""Seconds that the self-tests of one fault may take before they count as having noticed it."""
LEARNED = 8
REFUSED = ("CompilationError", "SyntaxError")
SELFTESTS = "ci/selftest"

Watch = Callable[[Ruling, int, int], None]


class Examiner:
    """Rules on faults in one copy of the repository; what is sound, and who kills, is shared between several."""

    def __init__(self, bench: Workbench, limit: float, killers: dict[str, Counter[str]], sound: set[str]) -> None:
        self._bench = bench
        self._limit = limit
        self._killers = killers
        self._sound = sound

    def rule(self, mutant: Mutant) -> Ruling:
        """What comes of a fault. WorkbenchError: a test that kills it fails without it too."""
        began = time.perf_counter()
        name = mutant.source.name
        judging = text_of(name)
        tests = [f"{SELFTESTS}/{test}" for test in judging.tests]
        counts = self._killers.setdefault(name, Counter())
        first = [test for test, _ in counts.most_common()]
        with self._bench.changed(name, mutant.text):
            by, said = self._bench.noticed(tests, first, self._limit, judging.compiled)
        if by == NO_TESTS:
            raise WorkbenchError(f"Expected self-tests of {name} in {', '.join(tests)} but they hold none")
        if not by:
            return Ruling(mutant.id, SURVIVED, seconds=_since(began))
        self._checked(by, tests)
        if "::" in by:
            counts[by] += 1
        refused = any(word in said for word in REFUSED) and judging.compiled
        return Ruling(mutant.id, KILLED, f"{COMPILATION if refused else TEST}: {by}", seconds=_since(began))

    def _checked(self, by: str, tests: Sequence[str]) -> None:
        """A test kills only where it passes without the fault; what has no name is every test of the fault."""
        asked = [by] if by.partition("::")[0] in tests else list(tests)
        if all(test in self._sound for test in asked):
            return
        failed, said = self._bench.noticed(asked, (), self._limit, False)
        if failed:
            raise WorkbenchError(f"Expected a self-test that passes without a fault but {failed} fails: {said[-500:]}")
        self._sound.update(asked)


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 3)


def run(
    mutants: Sequence[Mutant],
    known: Mapping[str, str],
    *,
    workers: int,
    limit: float = LIMIT,
    recheck: bool = False,
    watch: Watch = lambda *_: None,
    kept: Sequence[Ruling] = (),
) -> tuple[list[Ruling], bool]:
    """A ruling on each, in their order, and whether none is missing. WorkbenchError: self-tests do not run here."""
    return gathered(mutants, known, lambda pending: _ruled(pending, workers, limit), recheck, watch, kept)


def _ruled(mutants: Sequence[Mutant], workers: int, limit: float) -> Generator[Ruling, None, None]:
    """Each as it comes; a worker is a thread with a copy of its own, whose tests run in processes."""
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        waiting.put(mutant)
    told: queue.SimpleQueue[Ruling | BaseException] = queue.SimpleQueue()
    with _benches(min(workers, max(len(mutants), 1))) as benches:
        killers, sound = learned(), set[str]()
        stop = threading.Event()
        threads = [
            threading.Thread(target=_work, args=(Examiner(bench, limit, killers, sound), waiting, told, stop))
            for bench in benches
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in mutants:
                ruling = told.get()
                if isinstance(ruling, BaseException):
                    raise ruling
                yield ruling
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def _work(
    examiner: Examiner,
    waiting: queue.SimpleQueue[Mutant],
    told: queue.SimpleQueue[Ruling | BaseException],
    stop: threading.Event,
) -> None:
    try:
        while not stop.is_set():
            told.put(examiner.rule(waiting.get_nowait()))
    except queue.Empty:
        return
    except BaseException as error:
        told.put(error)


@contextmanager
def _benches(count: int) -> Iterator[list[Workbench]]:
    with tempfile.TemporaryDirectory(prefix="mlx-assay-judge-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        benches = [Workbench(Path(name), part) for part in range(count)]
        try:
            yield benches
        finally:
            for bench in benches:
                bench.close()


def _path() -> Path:
    return Path(str(files("mlx_assay.conformance.mutation.judge"))) / "killers.json"


def learned() -> dict[str, Counter[str]]:
    """Tests that killed most of a text's faults when that was last learned; the first counts most."""
    kept: dict[str, list[str]] = json.loads(_path().read_text("utf-8"))
    return {name: Counter({test: len(tests) - at for at, test in enumerate(tests)}) for name, tests in kept.items()}


def learn(kills: Iterable[tuple[str, str]]) -> None:
    """Keeps who killed most, from (text, `killed_by`); other texts stay as they were."""
    counts: dict[str, Counter[str]] = {}
    for name, by in kills:
        if "::" in by:
            counts.setdefault(name, Counter())[by.partition(": ")[2]] += 1
    kept = json.loads(_path().read_text("utf-8"))
    for name, count in counts.items():
        kept[name] = [test for test, _ in sorted(count.items(), key=lambda item: (-item[1], item[0]))][:LEARNED]
    _path().write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
