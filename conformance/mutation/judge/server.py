"""Runs self-tests in forks of one process that has imported what no mutant changes; a program, not a module.

It is started by its path in a copy of the repository, before anything of mlx-assay is imported. A request is a line of
JSON, `{"tests", "first", "seconds", "cache"}`; the answer is one, `{"by", "text"}`, whose `by` is empty where all tests
passed.
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
from collections.abc import Sequence
from typing import Any

# What self-tests and packages import of others; each is imported once for all mutants.
FOREIGN = (
    *("pytest", "hypothesis", "numpy", "ml_dtypes", "mlx.core", "msgspec", "jinja2"),
    *("rich.console", "mpmath", "packaging.version", "concurrent.futures", "asyncio", "unittest.mock", "tomllib"),
)
OPTIONS = (
    *("-o", "addopts=", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-x"),
    *("--tb=short", "--no-header", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
NO_TESTS = "no test was run"


class Watch:
    """The first failure of a run, and tests that have killed before moved to its beginning."""

    def __init__(self, first: Sequence[str]) -> None:
        self.by, self.text = "", ""
        self._rank = {name: place for place, name in enumerate(first)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sorts what is not known behind what is."""
        items.sort(key=lambda item: self._rank.get(item.nodeid, len(self._rank)))

    def pytest_collectreport(self, report: Any) -> None:
        """A module of tests that cannot be imported."""
        self._noted(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test, or what it needs, that fails."""
        self._noted(report)

    def _noted(self, report: Any) -> None:
        if report.failed and not self.by:
            self.by, self.text = report.nodeid or "collection", str(report.longrepr)[-4000:]


def _child(request: dict[str, Any], answer: int) -> None:
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.environ["MLX_ASSAY_CACHE"] = request["cache"]
    import pytest

    watch = Watch(request["first"])
    code = int(pytest.main([*OPTIONS, *request["tests"]], plugins=[watch]))
    if code and not watch.by:
        watch.by = f"pytest ended with {code}" if code != pytest.ExitCode.NO_TESTS_COLLECTED else NO_TESTS
    data = json.dumps({"by": watch.by, "text": watch.text}).encode()
    while data:
        data = data[os.write(answer, data) :]


def _run(request: dict[str, Any]) -> dict[str, str]:
    """The answer of a fork; one that ends without any, or takes too long, has noticed the fault as well."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            _child(request, writing)
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
    answer: dict[str, str] = json.loads(said) if said else {"by": "the process ended", "text": ""}
    return answer


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


def main() -> None:
    """Answers requests until there are no more."""
    for name in FOREIGN:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Hypothesis loads what mlx-assay registers with it.
    for name in [name for name in sys.modules if name.partition(".")[0] == "mlx_assay"]:
        del sys.modules[name]
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
