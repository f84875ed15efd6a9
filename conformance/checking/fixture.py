"""The fixture `host_metal`: a test's kernels under the checker, whose findings fail the test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pytest

from mlx_assay.conformance.checking.gathering import settings
from mlx_assay.conformance.checking.ledger import Ledger
from mlx_assay.conformance.checking.protocol import Ended
from mlx_assay.conformance.checking.rendering import rendered
from mlx_assay.conformance.checking.report import Asked
from mlx_assay.conformance.checking.request import LAUNCH_LIMIT, SCHEDULES, SEED, asked, words
from mlx_assay.conformance.checking.watch import Watch
from mlx_assay.conformance.plugin import CHECK_MARK as MARK
from mlx_assay.impl.executors.observation import listening, observed

OPTIONS = ("kernels", "ignore", "schedules", "seed", "launch_limit", "warnings_as_errors")
"""What a mark and a block take."""

MADE_BEFORE = (
    "This kernel was made before the fixture host_metal began, as a module's are where the test file imports it: "
    "import the module inside the test, or in a fixture that asks for host_metal, as docs/checking.md shows."
)


class Guard:
    """Kernels of a test under watch."""

    def __init__(self, asked: Asked, idle: bool) -> None:
        self._ledger = Ledger(asked)
        self._watch = Watch(settings(asked), self._ledger.hear)
        self._idle = idle

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """While this holds, every launch in the process is watched."""
        with observed(self._watch), listening(self._watch.defined, self._watch.called):
            yield

    def verdict(self) -> str:
        """What is found, as `mlx-assay check` prints it; empty where nothing fails the test."""
        self._watch.finish()
        self._ledger.hear(Ended())
        if self._idle and not self._ledger.launches:
            return ""
        report = self._ledger.report()
        return "\n".join(line.plain for line in rendered(report)) if report.exit_code else ""

    def judge(self) -> None:
        """Fails the test where something is found."""
        __tracebackhide__ = True
        if told := self.verdict():
            pytest.fail(told, pytrace=False)


def guard_of(item: pytest.Item) -> Guard | None:
    """The guard that a test asks for by its mark, or the configuration for all; None where neither does.

    An option that is not known fails the test.
    """
    mark = item.get_closest_marker(MARK)
    if mark is None and not item.config.getini(MARK):
        return None
    options = dict(mark.kwargs) if mark else {}
    if not options.pop("enabled", True):
        return None
    ignored = [*item.config.getini(f"{MARK}_ignore"), *words(options.pop("ignore", ()))]
    if unknown := options.keys() - set(OPTIONS):
        pytest.fail(f"{MARK}: expected {', '.join(OPTIONS)} or enabled but got {min(unknown)}", pytrace=False)
    try:
        return Guard(asked("pytest", ignore=ignored, **options), idle=mark is None)
    except (TypeError, ValueError) as error:
        pytest.fail(f"{MARK}: {error}", pytrace=False)


class HostMetal:
    """What the fixture gives: `with host_metal.checked(): ...` runs kernels inside under the checker."""

    @contextlib.contextmanager
    def checked(
        self,
        *,
        kernels: Sequence[str] = (),
        ignore: Sequence[str] = (),
        schedules: Sequence[str] = SCHEDULES,
        seed: int = SEED,
        launch_limit: float = LAUNCH_LIMIT,
        warnings_as_errors: bool = False,
    ) -> Iterator[None]:
        """Fails the test at its end where a kernel inside has findings, or where none was launched.

        `kernels` are globs over names, `ignore` kinds to pass over, `seed` is of schedule pct; `launch_limit` is in
        seconds, of a launch under one schedule. ValueError: a word that is not known.
        """
        __tracebackhide__ = True
        try:
            request = asked(
                "pytest",
                kernels=kernels,
                ignore=ignore,
                schedules=schedules,
                seed=seed,
                launch_limit=launch_limit,
                warnings_as_errors=warnings_as_errors,
            )
        except ValueError as error:
            raise ValueError(f"host_metal.checked: {error}") from None
        guard = Guard(request, idle=False)
        with guard.watching():
            yield
        guard.judge()
