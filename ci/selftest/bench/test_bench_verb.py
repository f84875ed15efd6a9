"""The command `mlx-assay bench` from outside: exit codes, the report, what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from mlx_assay.conformance.bench.report import Report, schema

SELFTESTS = Path(__file__).parents[1]
ROOT = SELFTESTS.parents[1]
ARGMAX = "normalized_argmax/bfloat16?rows=4&vocab=32768"
MODELS = ("--model", "h200", "--model", "m1-max")
CASES = "normalized_argmax/bfloat16/real/masked"


def bench(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Report | None]:
    """What a bench on the host came to."""
    paths = os.pathsep.join([str(SELFTESTS), str(ROOT / "ci" / "examples")])
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", "bench", "--executor", "host", "--json", "b.json"]
    done = subprocess.run(
        [*command, "--beside", "none", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    found = folder / "b.json"
    return done, msgspec.json.decode(found.read_bytes(), type=Report) if found.exists() else None


def test_the_built_in_kernels_are_counted(tmp_path: Path) -> None:
    done, report = bench(
        tmp_path, ARGMAX, "--cases", CASES, "--markdown", "b.md", "--against", "mlx_assay.impl:", *MODELS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert report is not None
    (result,) = report.results
    assert (result.outcome, result.trick, result.judged and result.judged.failing) == ("measured", "", "")
    assert [form.name for form in result.forms] == ["mlx_assay.impl", "mlx_assay.impl:"]
    assert result.forms[0].measures == result.forms[1].measures
    assert result.forms[0].measures["bytes of device memory touched, each once"] >= result.read_bytes
    assert result.comparison.startswith("neither does less on h200")
    assert [(each.device, each.less) for each in result.compared] == [("h200", "neither"), ("m1-max", "neither")]
    assert result.compared[0].first.units == result.compared[0].second.units > 4000
    (rotation,) = result.rotations
    assert rotation.checked == 6
    assert rotation.compared == rotation.timed == 12
    assert "conforms on " in done.stdout
    assert "instructions issued" in done.stdout
    assert "times as fast" not in done.stdout, "time says little on a CPU"
    assert "| instructions issued |" in (tmp_path / "b.md").read_text()
    Draft202012Validator(schema()).validate(json.loads((tmp_path / "b.json").read_text()))


def test_one_that_differs_gets_no_number(tmp_path: Path) -> None:
    done, report = bench(tmp_path, ARGMAX, "--cases", CASES, "--implementation", "greedy")
    assert done.returncode == 1, done.stdout + done.stderr
    assert report is not None
    (result,) = report.results
    assert (result.outcome, result.rotations, result.forms) == ("differs", [], [])
    assert result.judged is not None
    assert result.judged.failing.startswith(CASES)
    assert f"differs, so it has no figure: {result.judged.failing}" in done.stdout


def test_one_that_differs_beside_is_told_once_with_its_replay(tmp_path: Path) -> None:
    queries = [ARGMAX.replace("rows=4", "rows=*")]
    done, report = bench(tmp_path, *queries, "--cases", CASES, "--against", "greedy")
    assert done.returncode == 1, done.stdout + done.stderr
    assert report is not None
    assert len(report.results) == 2
    assert {(result.outcome, result.other) for result in report.results} == {("measured", "differs")}
    assert done.stdout.count("mlx-assay replay 'normalized_argmax/bfloat16/real/masked") == 1
    assert done.stdout.count("got ") == 1
    assert "as said above" in done.stdout


def test_a_trick_is_named(tmp_path: Path) -> None:
    target = "bench.tricks.replayed_by_shape"
    done, report = bench(tmp_path, ARGMAX, "--cases", CASES, "--implementation", target)
    assert done.returncode == 1, done.stdout + done.stderr
    assert report is not None
    (result,) = report.results
    assert (result.outcome, result.trick) == ("trick", "replayed")
    assert all(entry.figure is None for rotation in result.rotations for entry in rotation.entries[:1])
    assert "trick: replayed, so it has no figure" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--implementation", "cmd: cat"], 2, "behind a pipe its transport would be measured"),
        (["--implementation", "no_such_module"], 2, "no_such_module"),
        (["nothing"], 2, "Expected a benchmark such as"),
        ([ARGMAX, "--shape", "rows"], 2, "Expected a shape such as"),
        (["down_codebook_row", "--shape", "cols=100"], 2, "Expected cols as a multiple of 256 of down_codebook_row"),
        (["down_k3_interleaved_codebook_row", "--shape", "k=2"], 2, "Expected k=3 of down_k3"),
        ([ARGMAX, "--beside", "nobody"], 2, "Expected a glob for contenders on host, stock"),
        ([ARGMAX, "--cases", "apply_token_bitmask"], 3, "nothing is measured unjudged"),
        ([ARGMAX, "--model", "h200"], 2, "Expected --model beside --against"),
        ([ARGMAX, "--against", "greedy", "--model", "h100"], 2, "Expected a modelled device, h200, m1-max, but got"),
        (
            [ARGMAX, "--against", "json"],
            2,
            "Expected an implementation of normalized_argmax for --against but json has",
        ),
        (["--rounds", "0"], 2, "Expected a number"),
        (["--executor", "metal"], 3, "cannot run here"),
    ],
)
def test_refusals(tmp_path: Path, arguments: list[str], code: int, told: str) -> None:
    done, report = bench(tmp_path, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert report is None or report.exit_code == code


def test_what_was_measured_before_an_interrupt_is_a_report(tmp_path: Path) -> None:
    code = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from mlx_assay.conformance import cli
from mlx_assay.conformance.bench.session import Session
first = Session.result
def interrupted(self, one, side, against=None):
    signal.raise_signal(signal.SIGINT) if one.shape["rows"] == 1 else None
    return first(self, one, side, against)
Session.result = interrupted
sys.exit(cli.main(sys.argv[1:]))
"""
    asked = [ARGMAX, ARGMAX.replace("rows=4", "rows=1"), "--cases", CASES, "--executor", "host", "--beside", "none"]
    command = [sys.executable, "-c", code, "bench", *asked, "--json", "b.json", "--markdown", "b.md"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "interrupted" in done.stderr) == (3, True), done.stderr
    report = msgspec.json.decode((tmp_path / "b.json").read_bytes(), type=Report)
    assert not report.complete
    assert [(result.id, result.outcome) for result in report.results] == [(ARGMAX, "measured")]
    assert "Incomplete: it was ended" in (tmp_path / "b.md").read_text()


def test_the_published_schema_is_the_one_that_is_used() -> None:
    published = ROOT / "conformance" / "bench" / "bench.schema.json"
    assert json.loads(published.read_text()) == schema()
