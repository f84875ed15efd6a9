"""In a process that runs somebody's kernels: plants one fault in them as they are made, or writes down which there are.

A plugin of pytest, and what `subject` activates. The variable names a file of JSON that says what to do; without it
nothing is done.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from mlx_assay.impl.executors import observation
from mlx_assay.impl.executors.signature import Definition

VARIABLE = "MLX_ASSAY_PLANT"
UNCOMPILED = "does not compile on the host executor"


class Order(msgspec.Struct, frozen=True):
    """What to do: write launched texts into the folder `record`, or change `part` of the text with a digest.

    Into `answer` goes the first test that fails, and whether it is for a text that does not compile.
    """

    record: str = ""
    answer: str = ""
    digest: str = ""
    part: str = ""
    start: int = 0
    end: int = 0
    new: str = ""


class Answer(msgspec.Struct, frozen=True):
    """Who noticed."""

    test: str
    uncompiled: bool


class Launched(msgspec.Struct, frozen=True):
    """A kernel that was called: what mx.fast.metal_kernel was given of text."""

    name: str
    source: str
    header: str

    @property
    def digest(self) -> str:
        """By which it is known again."""
        return hashlib.sha256("\0".join((self.name, self.source, self.header)).encode()).hexdigest()


class Planter:
    """Does what an order says."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._seen: set[str] = set()

    def made(self, definition: Definition) -> Definition:
        """With its fault, where it is the kernel that the order means."""
        order = self._order
        if not order.digest or _launched(definition).digest != order.digest:
            return definition
        text = getattr(definition, order.part)
        return replace(definition, **{order.part: text[: order.start] + order.new + text[order.end :]})

    def launched(self, definition: Definition) -> None:
        """Written down once."""
        if not self._order.record:
            return
        found = _launched(definition)
        if found.digest not in self._seen:
            self._seen.add(found.digest)
            (Path(self._order.record) / f"{found.digest}.json").write_bytes(msgspec.json.encode(found))


def _launched(definition: Definition) -> Launched:
    return Launched(definition.name, definition.source, definition.header)


def ordered() -> Order | None:
    """The order of this process, where there is one."""
    path = os.environ.get(VARIABLE)
    return msgspec.json.decode(Path(path).read_bytes(), type=Order) if path else None


def activate() -> None:
    """From now on kernels are made and called as the order says."""
    if (order := ordered()) is not None:
        observation.plant(Planter(order))


class Watch:
    """Ends a run of tests at the first failure, and writes down whose it is."""

    def __init__(self, answer: Path) -> None:
        self._answer = answer
        self._session: Any = None

    def pytest_sessionstart(self, session: Any) -> None:
        """Whom to stop."""
        self._session = session

    def pytest_collectreport(self, report: Any) -> None:
        """A file of tests that cannot be imported."""
        self._noted(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test that fails."""
        self._noted(report)

    def _noted(self, report: Any) -> None:
        if report.failed and not self._answer.exists():
            uncompiled = UNCOMPILED in str(report.longrepr)
            self._answer.write_bytes(msgspec.json.encode(Answer(report.nodeid or "collection", uncompiled)))
            self._session.shouldfail = "a planted fault was noticed"


def pytest_configure(config: Any) -> None:
    """As a plugin of pytest."""
    activate()
    order = ordered()
    if order is not None and order.answer:
        config.pluginmanager.register(Watch(Path(order.answer)), "mlx-assay-plant-watch")
