"""The engine of `mlx-assay run`: pytest, alone with this plugin, whatever the configuration where it is started."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mlx_assay.conformance.nodes import FOLDER
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.plugin import FAILURE, SCREEN, Screen
from mlx_assay.conformance.verbs.interruption import interruptible
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

RESTARTS = 50
"""Workers that may be replaced in a run: above zero, lest cases be lost, and bounded, lest it never end."""
MOST_WORKERS = 4
CASES_A_WORKER = 8
"""A worker takes a second or two to start, so a handful of cases runs in this process."""


class Seat:
    """Hands the screen to the plugin."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._terminal: Any = None
        self.failure = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[SCREEN] = self._screen

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Silences what no option does: xdist's own lines about its workers, and pytest's empty ones."""
        self._terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if self._terminal is not None:
            _silence_empty(self._terminal._tw)
        if reporter := session.config.pluginmanager.get_plugin("terminaldistreporter"):
            reporter.write_line = reporter.rewrite = lambda *texts, **markup: None

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        self.failure = config.stash.get(FAILURE, "")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self) -> Generator[None, object, object]:
        """Has pytest forget what it was told, three times a case: the screen and the report tell of it."""
        try:
            return (yield)
        finally:
            if self._terminal is not None:
                self._terminal.stats.pop("", None)


def _silence_empty(writer: Any) -> None:
    """Lines without text, but for those that end one: they would come behind the verdict, since pytest writes late."""
    line = writer.line

    def told(text: str = "", **markup: bool) -> None:
        if text or writer.width_of_current_line:
            line(text, **markup)

    writer.line = told


def workers(executor: str, cases: int) -> int:
    """How many processes judge by default: the cores up to four, one where a GPU is shared, none for few cases."""
    if cases < CASES_A_WORKER:
        return 0
    if executor == "metal":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS, cases // CASES_A_WORKER)


def arguments(options: Options, count: int, junit: str | None, folder: Path) -> list[str]:
    """The command line of pytest; `folder` takes the configuration that keeps others out."""
    configuration = folder / "pytest.ini"
    configuration.write_text("[pytest]\njunit_family = xunit2\njunit_suite_name = mlx-assay\n")
    given = {
        "--mlx-assay-implementation": options.implementation,
        "--mlx-assay-executor": options.executor,
        "--mlx-assay-tier": options.tier,
        "--mlx-assay-seed": str(options.seed),
        "--mlx-assay-report": options.report,
        "--mlx-assay-limit": repr(options.limit),
        "--mlx-assay-profile": options.profile,
        "--mlx-assay-leg": options.leg,
        "--mlx-assay-shard": options.shard,
        "--mlx-assay-durations": options.durations,
    }
    spread = ["-p", "xdist.plugin", "-n", str(count), "--dist", "worksteal", f"--max-worker-restart={RESTARTS}"]
    return [
        *("-c", str(configuration), f"--rootdir={FOLDER}", "--import-mode=importlib"),
        *(
            "-p",
            "mlx_assay.conformance.plugin",
            "-p",
            "no:cacheprovider",
            # What it adds to a report of pytest's nobody is shown, at a fifth of pytest's own time a case.
            "-p",
            "no:logging",
            "-qq",
            "-rN",
            "--tb=short",
            "--disable-warnings",
        ),
        *(spread if count else ()),
        *(["--mlx-assay-checked"] if options.checked else ()),
        *(["--mlx-assay-stages"] if options.stages else ()),
        *(f"--mlx-assay-query={query}" for query in options.queries),
        *(f"--mlx-assay-without={name}" for name in options.without),
        *(f"{name}={value}" for name, value in given.items() if value is not None),
        *([f"--junitxml={junit}"] if junit else ()),
        str(FOLDER / "test_cases.py"),
    ]


@contextmanager
def _alone(count: int) -> Iterator[None]:
    """The environment as pytest and its workers are to see it; afterwards it is as before."""
    before = dict(os.environ)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("PYTEST_ADDOPTS", None)
    if count > 1:
        # One thread a worker: pools of several workers on the same cores wait for each other.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run(options: Options, count: int, junit: str | None, screen: Screen) -> int:
    """Runs the cases; returns pytest's status. SIGTERM ends it as Ctrl-C does: with a report of what was executed.

    Refusal says why no report of the whole could be kept.
    """
    seat = Seat(screen)
    try:
        with _alone(count), tempfile.TemporaryDirectory(prefix="mlx-assay-") as folder, interruptible():
            status = int(pytest.main(arguments(options, count, junit, Path(folder)), plugins=[seat]))
    except OSError as error:
        # What a full disk makes of pytest's own files.
        raise Refusal(f"The run did not come to its end: {error}", EXIT_INCOMPLETE) from error
    if seat.failure:
        told = "what stands there, if anything, tells of a part of the run"
        raise Refusal(f"The report cannot be written to {options.report}: {seat.failure}; {told}", EXIT_INCOMPLETE)
    return status
