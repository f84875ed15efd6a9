"""The pytest plugin: what it costs unused, and that no record is lost however the cases are spread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mlx_assay.conformance.reporting.report import Report, decode
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.verdict import Verdict

STAGE = Path(__file__).parent
QUERY = "normalized_argmax/*?tag=nan"
HEAVY = ("mlx", "numpy", "torch", "xgrammar", "mlx_lm", "hypothesis", "msgspec", "rich", "ml_dtypes")
Done = subprocess.CompletedProcess[str]


def selected() -> list[str]:
    return [case.id for case in select([QUERY]).cases]


def ran(folder: Path, *arguments: str, stage: dict[str, Any] | None = None, **variables: str) -> Done:
    """Runs pytest in a folder of its own, with the stage up."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MLX_ASSAY"))}
    staged = {"PYTHONPATH": str(STAGE), "PYTEST_PLUGINS": "staged", "MLX_ASSAY_STAGE": json.dumps(stage or {})}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=kept | staged | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


def judged(folder: Path, *arguments: str, **others: Any) -> tuple[Report, Done]:
    """Runs the cases of QUERY from elsewhere; returns the report."""
    given = ("--pyargs", "mlx_assay.conformance.test_cases", f"--mlx-assay-query={QUERY}", "--mlx-assay-report=r.json")
    done = ran(folder, *given, *arguments, **others)
    assert (folder / "r.json").exists(), done.stdout + done.stderr
    return decode((folder / "r.json").read_bytes()), done


def test_nothing_is_printed_or_imported_when_unused(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nstrict = true\n")
    (tmp_path / "test_other.py").write_text(
        "import sys\n"
        "def test_other():\n"
        "    assert 'mlx_assay.conformance.plugin' in sys.modules\n"
        f"    assert not set(sys.modules) & {set(HEAVY)}\n"
    )
    done = ran(tmp_path, "-p", "no:hypothesispytest", PYTEST_PLUGINS="")
    assert done.returncode == 0, done.stdout
    assert "mlx-assay" not in done.stdout.replace("plugins: ", "").replace("mlx-assay-", "")
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.parametrize(
    "spread",
    [("-n0",), ("-n1",), ("-n2", "--dist=load"), ("-n2", "--dist=worksteal")],
    ids=lambda spread: "".join(spread),
)
def test_every_case_has_its_record(tmp_path: Path, spread: tuple[str, ...]) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nstrict = true\nfilterwarnings = error\n")
    report, done = judged(tmp_path, *spread, "--junitxml=j.xml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [record.id for record in report.cases] == selected()
    assert (report.verdict, report.complete, report.totals.declared) == ("conforms", True, len(selected()))
    assert report.environment.device == "stage"
    assert report.selection.queries == [QUERY]
    assert f"cases: {len(selected())} of {len(selected())} executed" in done.stdout
    assert "mlx-assay 0" in done.stdout
    assert "tier quick, seed 0" in done.stdout
    in_junit = [
        json.loads(found.attrib["value"])["id"]
        for found in ElementTree.parse(tmp_path / "j.xml").iter("property")
        if found.attrib["name"] == "mlx_assay"
    ]
    assert sorted(in_junit) == sorted(selected())


def test_a_difference_fails_its_item_and_is_shown(tmp_path: Path) -> None:
    first = selected()[0]
    report, done = judged(tmp_path, "-n0", stage={"verdicts": {first.replace("[", "[[]"): "differs"}})
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert report.verdict == "differs"
    assert report.totals.differs == 1
    assert f"differs: {first}: got 0x01 want 0x02" in done.stdout


def test_no_verdict_beside_the_ladder_passes(tmp_path: Path) -> None:
    beside = ["not-run", "oracles-disagree", "crashed", "timed-out", "error", "unsupported"]
    report, done = judged(tmp_path, "-n0", stage={"verdicts": dict(zip(selected(), beside, strict=False))})
    assert f"{len(beside)} failed, {len(selected()) - len(beside)} passed" in done.stdout
    assert report.totals.verdicts() == {Verdict.SAME_BITS: len(selected()) - len(beside)} | dict.fromkeys(
        map(Verdict, beside), 1
    )


def test_a_missing_oracle_fails_the_session_though_every_item_passes(tmp_path: Path) -> None:
    report, done = judged(tmp_path, "-n0", stage={"missing": ["torch"]})
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert report.verdict == "incomplete"
    assert "missing oracle: torch" in done.stdout


@pytest.mark.parametrize("spread", [("-n1",), ("-n2", "--dist=worksteal")], ids=lambda spread: "".join(spread))
def test_an_abort_of_the_judge_costs_one_case(tmp_path: Path, spread: tuple[str, ...]) -> None:
    victim = selected()[5]
    report, done = judged(tmp_path, *spread, stage={"verdicts": {victim: "abort"}})
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert {record.id for record in report.cases} == set(selected())
    assert [record.id for record in report.cases if record.verdict is Verdict.CRASHED] == [victim]
    assert report.totals.same_bits == len(selected()) - 1


def test_a_fault_of_the_judge_is_not_the_implementations(tmp_path: Path) -> None:
    report, done = judged(tmp_path, "-n0", stage={"verdicts": {selected()[2]: "raise"}})
    assert "RuntimeError: the judge itself is broken" in done.stdout
    assert report.totals.not_run == 1
    assert report.verdict == "incomplete"


def test_a_distribution_that_loses_cases_is_refused(tmp_path: Path) -> None:
    done = ran(tmp_path, "--pyargs", "mlx_assay.conformance.test_cases", "-n2", "--dist=loadscope")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "Expected --dist load or worksteal but got 'loadscope'" in done.stderr


def test_a_distribution_is_refused_where_the_suite_is_only_come_upon(tmp_path: Path) -> None:
    """A folder above the suite, with cases that no option and no argument announces."""
    (tmp_path / "test_borrowed.py").write_text("from mlx_assay.conformance.test_cases import *  # noqa\n")
    done = ran(tmp_path, "-n2", "--dist=loadfile")
    assert done.returncode != 0
    assert "Expected --dist load or worksteal but got 'loadfile'" in done.stdout + done.stderr


def test_deselected_cases_are_not_declared(tmp_path: Path) -> None:
    report, done = judged(tmp_path, "-n0", "-k", "bfloat16")
    assert done.returncode == 0
    assert [record.id for record in report.cases] == [case_id for case_id in selected() if "bfloat16" in case_id]


def test_tags_are_marks(tmp_path: Path) -> None:
    tagged = [case.id for case in select([f"{QUERY}&tag=inf"]).cases]
    assert 0 < len(tagged) < len(selected())
    report, done = judged(tmp_path, "-n0", "-m", "mlx_assay(tag='inf')")
    assert done.returncode == 0
    assert [record.id for record in report.cases] == tagged


def test_a_run_that_stops_early_is_incomplete(tmp_path: Path) -> None:
    report, done = judged(tmp_path, "-n0", "-x", stage={"verdicts": {selected()[4]: "differs"}})
    assert done.returncode != 0
    assert (report.totals.declared, report.totals.executed) == (len(selected()), 5)
    assert (report.complete, report.verdict) == (False, "incomplete")


def test_collecting_alone_writes_no_report(tmp_path: Path) -> None:
    done = ran(
        tmp_path,
        *("--pyargs", "mlx_assay.conformance.test_cases", "--collect-only", "-q"),
        *(f"--mlx-assay-query={QUERY}", "--mlx-assay-report=r.json"),
    )
    assert done.returncode == 0
    assert sum("::test_mlx_assay[" in text for text in done.stdout.splitlines()) == len(selected())
    assert not (tmp_path / "r.json").exists()


def test_keys_of_the_configuration_serve_too(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nstrict = true\n"
        f"mlx_assay_query =\n    {QUERY}&vocab=3\n    {QUERY}&tag=inf\n"
        "mlx_assay_report = kept.json\nmlx_assay_seed = 12\nmlx_assay_executor = host\n"
    )
    done = ran(tmp_path, "--pyargs", "mlx_assay.conformance.test_cases", "-n0")
    report = decode((tmp_path / "kept.json").read_bytes())
    assert done.returncode == 0, done.stdout
    assert report.selection.seed == 12
    assert report.executor.name == "host"
    expected = [case.id for case in select([f"{QUERY}&vocab=3", f"{QUERY}&tag=inf"], seed=12).cases]
    assert [record.id for record in report.cases] == expected


@pytest.mark.skipif(sys.platform == "darwin", reason="Metal may be here")
@pytest.mark.parametrize("count", ["-n0", "-n1"])
def test_an_executor_that_cannot_run_here_leaves_the_run_incomplete(tmp_path: Path, count: str) -> None:
    report, done = judged(tmp_path, "--mlx-assay-executor=metal", count)
    told = done.stdout + done.stderr
    assert done.returncode == 3, told
    assert "incomplete, nothing was judged: Executor 'metal' cannot run here: MLX has no Metal back end here" in told
    assert "Importing" not in told
    assert report.exit_code == 3
    assert report.cases == []


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--mlx-assay-tier=slow", "Expected a tier, quick or full, but got 'slow'"),
        ("--mlx-assay-seed=-3", "Expected a seed"),
        ("--mlx-assay-limit=0", "Expected a limit"),
        ("--mlx-assay-executor=opencl", "Expected an executor, metal or cuda or host, but got 'opencl'"),
    ],
)
def test_a_wrong_option_is_a_usage_error(tmp_path: Path, option: str, message: str) -> None:
    done = ran(tmp_path, "--pyargs", "mlx_assay.conformance.test_cases", option)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr


@pytest.mark.parametrize(
    ("spread", "query", "stage", "message"),
    [
        ("-n0", "softcap/*", {}, "Expected an operation"),
        ("-n0", "*/no-such-kind", {}, "matches no case"),
        ("-n2", QUERY, {"refuse": "no module named nowhere"}, "no module named nowhere"),
        ("-n0", QUERY, {"operations": ["logit_softcap"]}, "the queries ask for normalized_argmax"),
    ],
)
def test_what_cannot_be_run_is_an_error_never_a_skip(
    tmp_path: Path, spread: str, query: str, stage: dict[str, Any], message: str
) -> None:
    given = ("--pyargs", "mlx_assay.conformance.test_cases", f"--mlx-assay-query={query}", spread)
    done = ran(tmp_path, *given, stage=stage)
    assert done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert message in done.stdout
