"""The example adapter in TypeScript: judged whole kinds at a time, its bits, its launch plan and its planted bugs."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance import cli
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.report import decode
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.tensor import Tensor

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "bun"
INSTALL_SECONDS = 60
STRIPS_TYPES = (22, 18)
"""The first node that runs TypeScript as it is."""

OPERATIONS = ("argmax_given", "apply_token_bitmask", "trellis_decode", "logit_softcap")
FLOAT32_INSIDE = "reuse/alternating-dtypes"
"""A kind of bfloat16 and float16 with float32 in it."""

Made = Callable[[str], Implementation]


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Bun: $BUN, that of the PATH, or one that npm fetches once a session; else a node that strips types."""
    given = os.environ.get("BUN") or shutil.which("bun")
    if given:
        return given
    shared = tmp_path_factory.getbasetemp()
    shared = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "bun"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = fetched(shared)
    if found or (found := node()):
        return found
    pytest.skip("NOT RUN: the TypeScript adapter: no bun ($BUN, PATH or npm), and no node of 22.18 or later")


def fetched(folder: Path) -> str:
    """Bun's path; empty where npm is not there or the registry does not answer, which is found out once."""
    tried = folder / "tried"
    if not tried.exists() and (npm := shutil.which("npm")):
        shutil.copy(FOLDER / "package.json", folder)
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0"]
        try:
            subprocess.run(command, cwd=folder, timeout=INSTALL_SECONDS, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
    tried.touch()
    # The package's own `bin` is made by a script, which does not run here.
    binaries = sorted((folder / "node_modules" / "@oven").glob("bun-*/bin/bun"))
    return next((str(binary) for binary in binaries if works(binary)), "")


def works(binary: Path) -> bool:
    """Not every build runs on every processor."""
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, check=False, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def node() -> str:
    path = shutil.which("node")
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout if path else ""
    version = re.match(r"v(\d+)\.(\d+)", told)
    return path if path and version and (int(version[1]), int(version[2])) >= STRIPS_TYPES else ""


@pytest.fixture
def made(runtime: str) -> Iterator[Made]:
    """The adapter with flags of the test's."""
    started: list[Implementation] = []

    def making(flags: str = "") -> Implementation:
        started.append(Implementation(target(runtime, flags), "host", 60.0))
        return started[-1]

    yield making
    for implementation in started:
        implementation.close()


def target(runtime: str, flags: str = "") -> str:
    return f"cmd: '{runtime}' '{FOLDER / 'adapter.ts'}' {flags}".strip()


def first_of_each_kind(operation: str, dtype: str) -> list[Case]:
    """A case of each kind, of the quick tier."""
    cases = select([f"{operation}/{dtype}/*"], "quick", 0, [operation]).cases
    return list({case.kind: case for case in reversed(cases)}.values())


def failing(records: list[Record]) -> list[str]:
    return [record.message for record in records if not record.conforms]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_adapter_conforms(made: Made, operation: str) -> None:
    adapter = made()
    dtype = "float16" if operation == "trellis_decode" else "bfloat16"
    cases = [case for case in first_of_each_kind(operation, dtype) if case.kind != FLOAT32_INSIDE]
    records = [judge(case, adapter) for case in cases]
    assert len(records) >= 15
    assert failing(records) == []


def test_adapter_computes_the_mask_without_a_plan_too(made: Made) -> None:
    adapter = made("--plain")
    records = [judge(case, adapter) for case in first_of_each_kind("apply_token_bitmask", "float16")]
    assert failing(records) == []


def test_adapter_keeps_float32_within_the_bound_of_its_contract(made: Made) -> None:
    """Whose bits are those of a device's own tanh: the oracles that share it are left out."""
    cases = [case for case in first_of_each_kind("logit_softcap", "float32") if case.kind in ("cap/plain", "real/rows")]
    assert {judge(case, made()).verdict for case in cases} == {Verdict.UNSUPPORTED}
    adapter = made("--float32")
    assert {judge(case, adapter).verdict for case in cases} == {Verdict.DIFFERS}
    records = [judge(case, adapter, without=("stock-mlx", "mlx-lm-softcap")) for case in cases]
    assert failing(records) == []
    assert Verdict.WITHIN_ULP in {record.verdict for record in records}


def test_adapter_keeps_every_bit(made: Made) -> None:
    """Payloads of NaN, denormals and infinities pass, -0 becomes the sum's +0."""
    words = [0x7FC1, 0xFF81, 0x8001, 0x0001, 0x7F80, 0xFF80, 0x8000, 0x3F80]
    logits = Tensor(np.array([words], np.uint16).view(ml_dtypes.bfloat16))
    bits = Tensor(np.array([0xFF], np.int32))
    adapter = made("--plain")
    run = adapter.begin("apply_token_bitmask", [[logits, bits]])
    outcomes = run.complete()
    adapter.finish(run)
    for outcome in outcomes:
        assert outcome.array is not None
        assert outcome.array.view(np.uint16).tolist() == [[*words[:6], 0, 0x3F80]]


@pytest.mark.parametrize(
    ("bug", "case"),
    [
        ("tie", "argmax_given/bfloat16/denormal/zeros?vocab=4&seed=0"),
        ("rounding", "argmax_given/bfloat16/extreme/edges?vocab=8&seed=0"),
    ],
)
def test_planted_bug_is_caught(made: Made, bug: str, case: str) -> None:
    assert judge(Case.parse(case), made()).conforms
    record = judge(Case.parse(case), made(f"--bug {bug}"))
    assert record.verdict is Verdict.DIFFERS
    assert "tie lost" in record.message


def test_adapter_is_judged_by_the_command_line(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As its README.md says; the launch plan under the checker."""
    monkeypatch.chdir(tmp_path)
    query = ["run", "apply_token_bitmask/bfloat16/words/*", "-n", "0", "--executor", "host", "--checked"]
    assert cli.main([*query, "--implementation", target(runtime), "--report", "report.json"]) == 0
    report = decode(Path("report.json").read_bytes())
    assert report.implementation.details["name"] == json.loads((FOLDER / "package.json").read_text())["name"]
    assert report.implementation.details["runtime"].startswith(("bun ", "node "))
    assert all(record.launches for record in report.cases)
    assert f"in {len(report.cases)} cases" in capsys.readouterr().out


def test_adapter_speaks_the_protocol_to_the_letter(runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["adapter-check", target(runtime)]) == 0
    assert "0 faults" in capsys.readouterr().out


def test_adapter_refuses_a_bug_that_it_does_not_have(runtime: str) -> None:
    done = subprocess.run(
        [runtime, FOLDER / "adapter.ts", "--bug", "none"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Expected --bug tie or rounding" in done.stderr
