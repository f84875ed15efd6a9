"""Runs self-tests in forks of one process that has imported what no mutant changes; a program, not a module.

It is started by its path in a copy of the repository, before anything of mlx-assay is imported, with the module that is
changed (or nothing) and the files of self-tests as its arguments. A request is a line of JSON, `{"tests", "first",
"seconds", "cache"}`; the answer is one, `{"by", "text"}`, whose `by` is empty where all tests passed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

PACKAGE = "mlx_assay"
# What self-tests and packages import of others; each is imported once for all mutants.
FOREIGN = (
    *("pytest", "hypothesis", "numpy", "ml_dtypes", "mlx.core", "msgspec", "jinja2"),
    *("rich.console", "mpmath", "packaging.version", "concurrent.futures", "asyncio", "unittest.mock", "tomllib"),
)
OPTIONS = (
    *("-o", "addopts=", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:anyio"),
    *("-q", "-x"),
    *("--tb=short", "--no-header", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
NO_TESTS, ENDED, UNTOLD = "no test was run", "the process ended", "-"


class Watch:
    """The first failure of a run, and tests that have killed before moved to its beginning."""

    def __init__(self, first: Sequence[str]) -> None:
        self.by, self.text = "", ""
        self._rank = {name: place for place, name in enumerate(first)}

    def rank(self, file: str, place: int) -> tuple[int, int]:
        """Before others come files whose tests have killed, most first."""
        ranks = [rank for test, rank in self._rank.items() if test.partition("::")[0] == file.partition("::")[0]]
        return min(ranks, default=len(self._rank)), place

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sorts what is not known behind what is."""
        items.sort(key=lambda item: self.place(item.nodeid))

    def place(self, test: str) -> int:
        """How many of those that have killed come before it."""
        return self._rank.get(test, len(self._rank))

    def pytest_collectreport(self, report: Any) -> None:
        """A module of tests that cannot be imported."""
        self._noted(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test, or what it needs, that fails."""
        self._noted(report)

    def _noted(self, report: Any) -> None:
        if report.failed and not self.by:
            self.by, self.text = report.nodeid or "collection", str(report.longrepr)[-4000:]


def _child(request: dict[str, Any]) -> dict[str, str]:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.environ["MLX_ASSAY_CACHE"] = request["cache"]
    import pytest

    watch = Watch(request["first"])
    files = list(request["tests"])
    codes = []
    # File by file, lest all be collected for a fault that the first notices.
    for file in sorted(files, key=lambda file: watch.rank(file, files.index(file))):
        codes.append(int(pytest.main([*OPTIONS, file], plugins=[watch])))
        if watch.by or codes[-1] not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            break
    if not watch.by and any(codes):
        nothing = set(codes) == {int(pytest.ExitCode.NO_TESTS_COLLECTED)}
        failed = [code for code in codes if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)]
        watch.by = NO_TESTS if nothing else f"pytest ended with {failed[0]}" if failed else ""
    return {"by": watch.by, "text": watch.text}


def _forked(request: dict[str, Any], noticed: Callable[[], dict[str, str]]) -> dict[str, str]:
    """The answer of a fork; one that ends without any, or takes too long, has noticed the fault as well."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            os.setsid()
            try:
                answer = noticed()
            except BaseException:
                answer = {"by": ENDED, "text": traceback.format_exc()}
            data = json.dumps(answer).encode()
            while data:
                data = data[os.write(writing, data) :]
        finally:
            os._exit(0)
    os.close(writing)
    try:
        said, late = _read(reading, time.monotonic() + request["seconds"])
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if late:
        return {"by": f"more than {request['seconds']:g} s", "text": ""}
    told: dict[str, str] = json.loads(said) if said else {"by": ENDED, "text": ""}
    return told


def _read(pipe: int, until: float) -> tuple[bytes, bool]:
    said = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return said, True
        part = os.read(pipe, 1 << 16)
        if not part:
            return said, False
        said += part


def _preload(changed: str, *tests: str) -> None:
    """Imports what no fault of `changed` reaches; nothing, where that is imported all the same by another way."""
    from mlx_assay.conformance.mutation.judge.preloading import Modules

    _forget()
    root = Path(__file__).resolve().parents[3]
    names = [".".join(Path(test).relative_to("ci/selftest").with_suffix("").parts) for test in tests]
    for name in Modules(root).apart(names, changed):
        if name.partition(".")[0] == PACKAGE:
            importlib.import_module(name)
    if changed in sys.modules:
        _forget()


def _forget() -> None:
    """Takes back every import of mlx-assay: hypothesis loads what it registers there."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def _compiled() -> bool:
    """Whether something of the executor's runtime was read or loaded when the self-tests were collected."""
    objects = sys.modules.get(f"{PACKAGE}.impl.executors.objects")
    kept = [
        one
        for one in vars(objects or sys).values()
        if getattr(one, "__module__", "") == getattr(objects, "__name__", "-")
    ]
    return any(one.cache_info().currsize for one in kept if hasattr(one, "cache_info"))


class Stage:
    """A process in which pytest has collected the self-tests, and forks for each fault that can be put into it."""

    def __init__(self, changed: str, tests: Sequence[str]) -> None:
        self._changed = changed
        self._path = Path(*changed.split(".")[1:]).with_suffix(".py").resolve() if changed else None
        self._before = self._path.read_text("utf-8") if self._path else ""
        theirs, self._answers = os.pipe()
        self._requests, ours = os.pipe()
        self._asking, self._reading = os.fdopen(ours, "w"), os.fdopen(theirs)
        if os.fork() == 0:
            self._asking.close()
            self._reading.close()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nowhere, number)
            with contextlib.suppress(BaseException):
                import pytest

                pytest.main([*OPTIONS, *tests], plugins=[self])
            os._exit(0)
        os.close(self._answers)
        os.close(self._requests)

    def ask(self, request: dict[str, Any]) -> dict[str, str] | None:
        """The answer to a request; None where only a process that imports the fault can tell."""
        try:
            print(json.dumps(request), file=self._asking, flush=True)
            answer = self._reading.readline()
        except BrokenPipeError:
            answer = ""
        found: dict[str, str] = json.loads(answer) if answer else {}
        return found if found.get("by", UNTOLD) != UNTOLD else None

    def pytest_runtestloop(self, session: Any) -> bool:
        """Answers requests in place of running everything."""
        with os.fdopen(self._requests) as asked, os.fdopen(self._answers, "w") as told:
            for line in asked:
                request = json.loads(line)
                print(json.dumps(_forked(request, partial(self._noticed, session, request))), file=told, flush=True)
        return True

    def _noticed(self, session: Any, request: dict[str, Any]) -> dict[str, str]:
        from mlx_assay.conformance.mutation.judge.swapping import Unswappable, swap

        if self._path is not None and (now := self._path.read_text("utf-8")) != self._before:
            try:
                swap(self._before, now, str(self._path))
            except (Unswappable, SyntaxError):
                return {"by": UNTOLD, "text": ""}
        if self._path is None and _compiled():
            return {"by": UNTOLD, "text": ""}
        os.environ["MLX_ASSAY_CACHE"] = request["cache"]
        watch = Watch(request["first"])
        session.config.pluginmanager.register(watch)
        wanted = {test: place for place, test in enumerate(request["tests"])}
        # A test is named whole, without its parameters, or by its file.
        names = {
            item: (item.nodeid, *(item.nodeid.partition(sign)[0] for sign in ("[", "::"))) for item in session.items
        }
        places = {item: next((wanted[name] for name in names[item] if name in wanted), None) for item in session.items}
        items = [item for item, place in places.items() if place is not None]
        if not items:
            return {"by": UNTOLD, "text": ""}
        items.sort(key=lambda item: (watch.place(item.nodeid), places[item]))
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if watch.by:
                break
        return {"by": watch.by, "text": watch.text}


def main() -> None:
    """Answers requests until there are no more."""
    for name in FOREIGN:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _preload(*sys.argv[1:])
    stage = Stage(sys.argv[1], sys.argv[2:])
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(stage.ask(request) or _forked(request, partial(_child, request))), flush=True)


if __name__ == "__main__":
    main()
