"""One function with which a package judges its own kernels, from a test or from anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.options import Options, default_limit
from mlx_assay.conformance.quotation import passage, printable
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.report import EXIT_CODES, Outcome, Report, decode, outcome
from mlx_assay.conformance.reporting.summary import closing, worst
from mlx_assay.conformance.target import named
from mlx_assay.conformance.verdict import EXIT_USAGE

START = (
    "import json, sys; sys.path.extend(json.loads(sys.argv.pop(1)));"
    "from mlx_assay.conformance.cli import main; sys.exit(main())"
)
SAID = 4000
"""Characters at the end of what the command printed that a message shows."""

STEERING = ("PYTEST_", "PYTHONWARNINGS", "COLUMNS", "LINES")
"""Beginnings of variables that belong to the caller's own session of pytest."""


class ConformanceError(AssertionError):
    """An implementation does not conform, or not all of it was judged; `result` has the report, if there is one."""

    def __init__(self, message: str, result: Conformance | None = None) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Conformance:
    """What came of a run. `verdict` is `conforms`, `differs` or `incomplete`; the text of it names the worst cases.

    `path` is where the report was kept, `said` the last that the command printed.
    """

    report: Report
    verdict: Outcome
    path: Path | None = None
    said: str = ""

    @property
    def exit_code(self) -> int:
        """What `mlx-assay run` returned: 0 conforms, 1 differs, 3 incomplete."""
        return EXIT_CODES[self.verdict]

    @property
    def failures(self) -> list[Record]:
        """The cases that do not conform, in the order of the report."""
        return [record for record in self.report.cases if not record.conforms]

    def __str__(self) -> str:
        report = self.report
        count, total = len(self.failures), report.totals.declared
        verb = "does" if count == 1 else "do"
        told = f"{count} of {counted(total, 'case')} {verb} not conform"
        head = f"{printable(report.implementation.name)}: {self.verdict}, {told}"
        more = [f"and {count - shown} more"] if count > (shown := len(worst(report))) else []
        said = [self.said] if self.said and not report.cases else []
        return "\n".join([head, *worst(report), *more, *closing(report, self.path), *said])


def run_conformance(
    implementation: object,
    queries: Sequence[str] | str = (),
    *,
    tier: Literal["quick", "full"] = "quick",
    seed: int = 0,
    executor: str | None = None,
    workers: int | None = None,
    without: Sequence[str] = (),
    limit: float | None = None,
    checked: bool = False,
    profile: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    leg: str | None = None,
    check: bool = True,
) -> Conformance:
    """Judges an implementation on every selected case, in processes of its own, and returns what came of it.

    `implementation` is "module", "module:object" or whatever else `mlx-assay run --implementation` takes, a module, a
    class, or an object that a module-level variable holds. The other arguments are those of `mlx-assay run`; a
    `report` is written where one is named. `workers` None means a fitting number, and none inside a worker of xdist.

    Raises ConformanceError, an AssertionError whose text names the first cases with the command that runs each again,
    unless every selected case ran and conforms; with `check=False` only where no report came. Where nothing was
    selected or run, the verdict is incomplete. TypeError: the implementation has no name. ValueError: what was asked
    for cannot be meant.
    """
    __tracebackhide__ = True
    queries = (queries,) if isinstance(queries, str) else tuple(queries)
    if odd := [query for query in queries if not isinstance(query, str)]:
        raise TypeError(f"Expected queries as text, such as 'normalized_argmax/*', but got {odd[0]!r}")
    asked = Options(
        queries=queries,
        implementation=named(implementation),
        executor=executor,
        tier=tier,
        seed=seed,
        limit=default_limit(checked) if limit is None else limit,
        without=tuple(without),
        profile=None if profile is None else os.path.abspath(profile),
        leg=leg,
        checked=checked,
    )
    with tempfile.TemporaryDirectory(prefix="mlx-assay-") as folder:
        path = Path(folder, "report.json") if report is None else Path(report).absolute()
        before = path.read_bytes() if path.is_file() else b""
        done = subprocess.run(
            _command(asked, path, workers),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said = passage(done.stdout.decode("utf-8", "replace")[-SAID:].strip())
        if done.returncode == EXIT_USAGE:
            raise ValueError(f"Expected what mlx-assay run can do but got:\n{said}")
        result = _result(path, before, done.returncode, None if report is None else path, said)
    if check and result.verdict != "conforms":
        raise ConformanceError(str(result), result)
    return result


def _result(path: Path, before: bytes, code: int, kept: Path | None, said: str) -> Conformance:
    """What the report says, unless the command that wrote it says less."""
    __tracebackhide__ = True
    try:
        document = path.read_bytes()
        found = decode(document)
        if document == before:
            raise ValueError("it is that of an earlier run")
    except (OSError, ValueError) as error:
        raise ConformanceError(f"incomplete: the run left no report ({error}), exit code {code}\n{said}") from None
    verdict = outcome(found.totals.declared, found.cases, found.complete and not found.altered)
    return Conformance(found, verdict if code == EXIT_CODES[verdict] else "incomplete", kept, said)


def _command(asked: Options, path: Path, workers: int | None) -> list[str]:
    given = {
        "--implementation": asked.implementation,
        "--executor": asked.executor,
        "--tier": asked.tier,
        "--seed": str(asked.seed),
        "--limit": repr(float(asked.limit)),
        "--profile": asked.profile,
        "--leg": asked.leg,
        "--report": str(path),
        "-n": _workers(workers),
    }
    folders = [os.path.abspath(folder) for folder in sys.path]
    return [
        *(sys.executable, "-P", "-c", START, json.dumps(folders), "run"),
        *(["--checked"] if asked.checked else []),
        *(f"--without={name}" for name in asked.without),
        *(
            f"{name}={value}" if len(name) > 2 else f"{name}{value}"
            for name, value in given.items()
            if value is not None
        ),
        *("--", *asked.queries),
    ]


def _workers(workers: int | None) -> str:
    if workers is not None:
        return str(workers)
    return "0" if "PYTEST_XDIST_WORKER" in os.environ else "auto"


def _environment() -> dict[str, str]:
    """The caller's, without what belongs to its own session; one thread a launch where other tests run beside it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(STEERING)}
    if "PYTEST_XDIST_WORKER" in os.environ:
        kept.setdefault("MLX_ASSAY_THREADS", "1")
    return kept
