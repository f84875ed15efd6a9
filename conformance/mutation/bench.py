"""One worker of a campaign: a process of an implementation, on which mutants are judged one after another."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from mlx_assay.conformance.mutation import stage
from mlx_assay.conformance.mutation.killers import checked_cases, killers
from mlx_assay.conformance.mutation.memo import Memo
from mlx_assay.conformance.mutation.mutant import Mutant
from mlx_assay.conformance.mutation.playbill import Playbill
from mlx_assay.conformance.mutation.ruling import CHECKER, COMPILATION, EQUIVALENT, KILLED, SURVIVED, Ruling
from mlx_assay.conformance.mutation.sameness import Texts
from mlx_assay.conformance.mutation.source import folder as kernels
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.quotation import MARK
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.verdict import INCOMPLETE, Verdict
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import all_cases, kinds
from mlx_assay.impl.executors.cache import CACHE_VARIABLE, cache_directory

TARGET = "mlx_assay.conformance.mutation.stage"
FIRST = 32
"""Cases that are tried before the compiler is asked whether anything changed."""

CACHE = "mutants"
"""Compiled mutants are kept apart, lest thousands of them drive kernels out of the cache."""

NO_ROOM = "raised CacheError"
UNCOMPILED, WATCHED = "does not compile on the host executor", "raised Found: "


Suite = Callable[[tuple[str, ...]], Sequence[Case]]
"""From operations to the cases that their mutants are judged on."""


class CampaignError(RuntimeError):
    """The suite cannot tell mutants from kernels: the kernels themselves do not conform here."""


class Bench:
    """Judges mutants on the cases of a suite, the quick tier unless another is given, until the first that kills.

    `shared` is a folder that all workers of a campaign share, `limit` the seconds that a case may take, `part` the
    worker's number. `thorough`: all cases that are tried first are tried on each mutant, whichever kills it.
    """

    def __init__(
        self, shared: Path, limit: float, part: int = 0, suite: Suite | None = None, thorough: bool = False
    ) -> None:
        self.folder = folder = shared / f"part_{part}"
        os.environ[stage.FOLDER] = str(folder)
        if cache_directory().name != CACHE:
            os.environ[CACHE_VARIABLE] = str(cache_directory() / CACHE)
        self._marks = shared / "sound"
        for made in (folder, shared / stage.TEXTS, self._marks):
            made.mkdir(parents=True, exist_ok=True)
        self._implementation = Implementation(TARGET, "host", limit)
        self._memo = Memo()
        self._texts = Texts(shared / stage.TEXTS)
        self._part = part
        self.suite = suite or quick
        self._thorough = thorough
        self._checking = False
        self._playbill = Playbill(folder)
        root = kernels()
        self._files = {
            str(path.relative_to(root)): path.read_text("utf-8")
            for path in sorted(root.rglob("*"))
            if path.suffix in (".py", ".metal")
        }
        self._copied(stage.ORIGINAL, None)

    @property
    def limit(self) -> float:
        """Seconds that a case may take."""
        return self._implementation.limit

    @limit.setter
    def limit(self, seconds: float) -> None:
        self._implementation.limit = seconds

    def close(self) -> None:
        """Ends the process."""
        self._implementation.close()

    def rule(self, mutant: Mutant) -> Ruling:
        """What comes of a mutant."""
        began = time.perf_counter()
        name = f"mutant_{mutant.id.rpartition('/')[2]}_{self._part}"
        self._copied(name, mutant)
        try:
            ruling = self._tried(mutant, name)
        finally:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        return msgspec.structs.replace(ruling, seconds=round(time.perf_counter() - began, 3))

    def _copied(self, name: str, mutant: Mutant | None) -> None:
        """The package of kernels under a name of its own, with one text changed."""
        for path, text in self._files.items():
            target = self.folder / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if mutant is not None and path == mutant.source.name:
                text = mutant.text
            target.write_text(text.replace(stage.PACKAGE, name), "utf-8")

    def _tried(self, mutant: Mutant, name: str) -> Ruling:
        cases = {case.id: case for case in self.suite(mutant.source.operations)}
        first = [cases[case_id] for case_id in killers(mutant.source.name) if case_id in cases][:FIRST]
        first = first or list(cases.values())[:FIRST]
        if by_first := self._killing(first, name):
            return Ruling(mutant.id, KILLED, by_first[0], also=tuple(by_first[1:]))
        texts = self._same(mutant, list(cases.values())) if mutant.same_code else 0
        for case in () if texts else cases.values():
            if case not in first and (by := self._killed(case, name)):
                return Ruling(mutant.id, KILLED, by)
        # Also where the code is the same: a compiler takes it for granted that no access is beyond an array's end.
        with self._under_checker():
            for case_id in checked_cases(mutant.source.operations):
                if case_id in cases and (by := self._killed(cases[case_id], name)):
                    return Ruling(mutant.id, KILLED, by)
        if texts:
            return Ruling(mutant.id, EQUIVALENT, reason=SAME_CODE.format(texts=texts))
        return Ruling(mutant.id, SURVIVED)

    def _killing(self, first: Sequence[Case], name: str) -> list[str]:
        """Who of the cases that are tried first kills a mutant: the first that does, or all of them.

        One that kills by its time is not waited for again.
        """
        found: list[str] = []
        for case in first:
            began = time.perf_counter()
            if by := self._killed(case, name):
                found.append(by)
                if not self._thorough or by != case.id or time.perf_counter() - began > self.limit / 2:
                    break
        return found

    def _same(self, mutant: Mutant, cases: Sequence[Case]) -> int:
        """Every text of the operations is known once every case has run on the kernels as they are.

        One that is known and differs settles it, so that few mutants wait for all cases.
        """
        if not self._texts.same(mutant):
            return 0
        for case in cases if self._part % 2 == 0 else reversed(cases):
            self._sound(case)
        return self._texts.same(mutant)

    def _killed(self, case: Case, name: str) -> str:
        """Who kills a mutant on a case, empty where it conforms."""
        self._sound(case)
        record = self._judged(case, name)
        if record.conforms:
            return ""
        if record.verdict in INCOMPLETE or NO_ROOM in record.message:
            raise CampaignError(f"{case.id} cannot be judged: {record.message}")
        if record.verdict is Verdict.TIMED_OUT and not self._judged(case, stage.ORIGINAL).conforms:
            raise CampaignError(f"{case.id} takes longer than {self.limit:g} s here without any fault: raise --limit")
        if UNCOMPILED in record.message:
            lines = record.message.partition(UNCOMPILED)[2].strip(f":\n{MARK}").splitlines()
            return f"{COMPILATION}: {lines[0].strip() if lines else 'refused'}"
        if WATCHED in record.message:
            said = record.message.partition(WATCHED)[2].splitlines()[0]
            return f"{CHECKER}: {said.removesuffix(', expected a result')}"
        return f"{CHECKER}: {case.id} {record.verdict}" if self._checking else case.id

    def _judged(self, case: Case, name: str) -> Record:
        self._playbill.write(name, self._checking)
        return self._memo.judge(case, self._implementation)

    def _sound(self, case: Case) -> None:
        """A case kills only where the kernel as it is conforms to it; CampaignError: it does not."""
        checking = "checked" if self._checking else "plain"
        marker = self._marks / f"{case.digest:032x}-{checking}"
        if marker.exists():
            return
        record = self._judged(case, stage.ORIGINAL)
        if not record.conforms:
            raise CampaignError(f"The kernel without a fault does not conform ({checking}): {record.message}")
        marker.touch()

    @contextlib.contextmanager
    def _under_checker(self) -> Iterator[None]:
        self._checking = True
        try:
            yield
        finally:
            self._checking = False


SAME_CODE = (
    "The compiler makes the same code of it in all {texts} texts that the cases launch, and the checker finds nothing."
)

_suites: dict[tuple[bool, tuple[str, ...]], list[Case]] = {}


def quick(operations: tuple[str, ...], all_listed: bool = False) -> list[Case]:
    """The quick tier's cases of operations: one of each kind and dtype, then a second of each, and so on.

    With `all_listed` those too that a file has moved to the full tier, behind them.
    """
    key = (all_listed, operations)
    if key not in _suites:
        _suites[key] = _by_turns(case for case in all_cases("quick") if case.operation in operations)
        if all_listed:
            here = set(_suites[key])
            _suites[key] += _by_turns(
                case
                for kind in kinds().values()
                if kind.operation in operations
                for case in kind.listed()
                if case not in here
            )
    return _suites[key]


def _by_turns(cases: Iterable[Case]) -> list[Case]:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.path, []).append(case)
    turns = max(map(len, groups.values()), default=0)
    return [group[turn] for turn in range(turns) for group in groups.values() if turn < len(group)]


def listed(operations: tuple[str, ...]) -> list[Case]:
    """All cases that kinds list for the quick tier."""
    return quick(operations, all_listed=True)
