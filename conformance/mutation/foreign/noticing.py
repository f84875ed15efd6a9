"""Who notices a fault in somebody's kernels: their own tests, or the cases of this suite."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from mlx_assay.conformance.checking.child import signal_name
from mlx_assay.conformance.mutation.bench import UNCOMPILED, quick
from mlx_assay.conformance.mutation.foreign import plant, subject
from mlx_assay.conformance.mutation.foreign.plant import Answer, Order
from mlx_assay.conformance.mutation.memo import Memo
from mlx_assay.conformance.mutation.ruling import COMPILATION, TEST
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.verdict import INCOMPLETE
from mlx_assay.fixtures.case import Case

SUBJECT = subject.__name__
OBSERVED = 16
"""Cases of each operation and dtype of which the launches are looked at."""
SHOWN = 4096
"""Bytes of what failing tests printed last that are shown."""
SHELL = 128
FATAL = {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGTRAP}
NOWHERE = Path(os.devnull)


class NoticingError(RuntimeError):
    """Without any fault it fails already, or nothing is launched."""


class CommandError(ValueError):
    """A command of tests that cannot be meant: no words, or no program that is there."""


class Noticing(Protocol):
    """Runs an implementation under an order."""

    def observe(self, order: Order) -> list[str]:
        """Runs it without a fault; returns the operations that launched no kernel. NoticingError: that fails."""

    def noticed(self, order: Order) -> str:
        """Who notices the fault, as `killed_by` has it; empty for nobody."""


class Tests:
    """A command that runs their tests: pytest, or what runs it."""

    def __init__(self, command: str, folder: Path, limit: float) -> None:
        """CommandError: it is none."""
        words = _words(command)
        self._command = [sys.executable, "-m", *words] if words[:1] == ["pytest"] else words
        self._folder, self._limit = folder, limit
        self._answer = folder / "answer.json"

    def observe(self, order: Order) -> list[str]:
        """Their tests have to pass; which operations they call is not known."""
        said = self._folder / "said.txt"
        if by := self.noticed(order, said):
            told = "" if self._answer.exists() else _last(said)
            raise NoticingError(f"Expected tests that pass without a fault but got {by}: mend them first{told}")
        return []

    def noticed(self, order: Order, said: Path = NOWHERE) -> str:
        """The first test that fails, or how the command ended; what it prints goes into `said`."""
        answer = self._answer
        answer.unlink(missing_ok=True)
        path = self._folder / "order.json"
        path.write_bytes(msgspec.json.encode(msgspec.structs.replace(order, answer=str(answer))))
        plugins = ",".join(filter(None, (os.environ.get("PYTEST_PLUGINS"), plant.__name__)))
        environment = {**os.environ, plant.VARIABLE: str(path), "PYTEST_PLUGINS": plugins}
        try:
            code = _ended(self._command, environment, self._limit, said)
        except OSError as error:
            raise NoticingError(
                f"Expected a command that runs tests but {self._command[0]!r} does not: {error}"
            ) from None
        if code is None:
            return f"{TEST}: more than {self._limit:g} s"
        if answer.exists():
            found = msgspec.json.decode(answer.read_bytes(), type=Answer)
            return f"{COMPILATION if found.uncompiled else TEST}: {found.test}"
        return f"{TEST}: {_ending(code)}" if code else ""


def _words(command: str) -> list[str]:
    """As a shell splits them."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"Expected a command that runs tests but got {command!r}: {error}") from None
    if not words or not words[0]:
        raise CommandError(f"Expected a command that runs tests, as in 'pytest tests', but got {command!r}")
    if shutil.which(words[0]) is None and words[0] != "pytest":
        raise CommandError(f"Expected a command that runs tests but {words[0]!r} is no program here")
    return words


def _ending(code: int) -> str:
    """How a process ended: by a signal, of which a shell makes a code above 128, or with a code."""
    number = -code if code < 0 else code - SHELL
    if code < 0 or number in FATAL:
        return f"crash ({signal_name(number)})"
    return f"exit code {code}"


def _last(said: Path) -> str:
    """The last that a command printed, on lines of its own."""
    begin = max(0, said.stat().st_size - SHOWN)
    with said.open("rb") as file:
        file.seek(begin)
        text = file.read().decode(errors="replace")
    whole = text.partition("\n")[2] if begin else text
    return f"; it printed last:\n{whole.strip()}" if whole.strip() else ""


def _ended(command: Sequence[str], environment: dict[str, str], limit: float, said: Path) -> int | None:
    """The exit code of a command, None where it took too long; what it leaves running ends with it."""
    with (
        said.open("wb") as file,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def observed(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Of each operation, those of which the launches are looked at: so many of each dtype, from all over its cases."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.operation, case.dtype), []).append(case)
    found: dict[str, list[Case]] = {}
    for (operation, _), group in groups.items():
        count = min(OBSERVED, len(group))
        found.setdefault(operation, []).extend(group[turn * len(group) // count] for turn in range(count))
    return found


class Cases:
    """The quick tier's cases of the operations that their module has."""

    def __init__(self, target: str, folder: Path, limit: float) -> None:
        os.environ[subject.TARGET] = target
        self._folder, self._limit = folder, limit
        self._memo = Memo()
        self._sound: dict[str, bool] = {}
        self._first: dict[str, int] = {}
        with self._planted(Order()) as implementation:
            self._cases = quick(tuple(implementation.operations))

    def observe(self, order: Order) -> list[str]:
        """Cases that it does not conform to without a fault notice none."""
        without = []
        for operation, cases in sorted(observed(self._cases).items()):
            texts = Path(order.record) / operation
            texts.mkdir()
            with self._planted(msgspec.structs.replace(order, record=str(texts))) as implementation:
                for case in cases:
                    self._sound[case.id] = self._memo.judge(case, implementation).conforms
            if not any(texts.iterdir()):
                without.append(operation)
        if not any(self._sound.values()):
            raise NoticingError("Expected an implementation that conforms to some case without a fault: mend it first")
        return without

    def noticed(self, order: Order) -> str:
        """The first case that it fails with the fault and not without; those that killed most come first."""
        with self._planted(order) as implementation:
            for case in sorted(self._cases, key=lambda one: -self._first.get(one.id, 0)):
                record = self._memo.judge(case, implementation)
                if record.conforms or not self._conforms(case):
                    continue
                if record.verdict in INCOMPLETE:
                    raise NoticingError(f"{case.id} cannot be judged: {record.message}")
                self._first[case.id] = self._first.get(case.id, 0) + 1
                return f"{COMPILATION}: {case.id}" if UNCOMPILED in record.message else case.id
        return ""

    def _conforms(self, case: Case) -> bool:
        if case.id not in self._sound:
            with self._planted(Order()) as implementation:
                self._sound[case.id] = self._memo.judge(case, implementation).conforms
        return self._sound[case.id]

    @contextmanager
    def _planted(self, order: Order) -> Iterator[Implementation]:
        path = self._folder / "case_order.json"
        path.write_bytes(msgspec.json.encode(order))
        os.environ[plant.VARIABLE] = str(path)
        with Implementation(SUBJECT, "host", self._limit) as implementation:
            assert implementation.operations
            yield implementation
