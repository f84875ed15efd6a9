"""The command line: every verb, every refusal, every exit code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.progress import Bar, Lines, screen
from mlx_assay.conformance.reporting.report import decode
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.verbs import doctor, listing
from mlx_assay.conformance.verbs.engine import arguments, workers
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, EXIT_USAGE, Verdict
from mlx_assay.fixtures.codec import save

STAGE = Path(__file__).parent
QUERY = "normalized_argmax/*?tag=nan"
VERBS = ("run", "diff", "check", "list", "replay", "keep", "fixtures", "doctor")
Done = subprocess.CompletedProcess[str]


def selected(*queries: str) -> list[str]:
    return [case.id for case in select(queries or [QUERY]).cases]


def ran(folder: Path, *given: str, stage: dict[str, Any] | None = None, **variables: str) -> Done:
    """Runs a verb in a folder of its own: with the stage up where one is given, else the real thing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MLX_ASSAY_STAGE"))}
    if stage is not None:
        kept |= {"PYTHONPATH": str(STAGE), "PYTEST_PLUGINS": "staged", "MLX_ASSAY_STAGE": json.dumps(stage)}
    program = ["-m", "mlx_assay.conformance.cli"] if stage is None else [str(STAGE / "staged.py")]
    return subprocess.run(
        [sys.executable, *program, *given],
        cwd=folder,
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


def record(verdict: Verdict = Verdict.SAME_BITS, message: str = "") -> Record:
    return Record(
        id="normalized_argmax/float16/ties/tiles?vocab=1&seed=0",
        operation="normalized_argmax",
        dtype="float16",
        tags=[],
        why="",
        verdict=verdict,
        conforms=verdict is Verdict.SAME_BITS,
        oracle="",
        oracles=[],
        missing=[],
        subcases=1,
        seconds=0.0,
        replay="",
        message=message,
    )


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"examples:\n  mlx-assay {verb}" in shown


def test_a_staged_run_conforms_from_a_folder_with_its_own_configuration(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('not ours')\n")
    done = ran(tmp_path, "run", QUERY, "-n", "2", "--junit", "j.xml", stage={}, PYTEST_ADDOPTS="--no-such-option")
    assert done.returncode == EXIT_CONFORMS, done.stdout + done.stderr
    report = decode((tmp_path / "mlx-assay-report.json").read_bytes())
    assert [found.id for found in report.cases] == selected()
    assert sorted(found.name for found in tmp_path.iterdir()) == [
        "conftest.py",
        "j.xml",
        "mlx-assay-report.json",
        "pytest.ini",
    ]
    last = done.stdout.splitlines()
    assert last[-1].startswith("conforms in ")
    assert last[-2] == f"report: {tmp_path / 'mlx-assay-report.json'}"
    assert f"cases: {len(selected())} of {len(selected())} executed: {len(selected())} same-bits" in last
    assert not [text for text in last if "bringing up" in text or "FAILED" in text or "[100%]" in text]


@pytest.mark.parametrize("workers_", ["0", "2"])
def test_a_differing_case_is_told_as_it_comes(tmp_path: Path, workers_: str) -> None:
    victim = selected()[1]
    done = ran(tmp_path, "run", QUERY, "-n", workers_, stage={"verdicts": {victim: "differs"}})
    assert done.returncode == EXIT_DIFFERS
    assert done.stdout.count(f"differs: {victim}: got 0x01 want 0x02\n  policy same-bits") == 1
    assert done.stdout.splitlines()[-1].startswith("differs in ")


def test_a_crash_of_a_worker_costs_one_case(tmp_path: Path) -> None:
    victim = selected()[1]
    done = ran(tmp_path, "run", QUERY, "-n", "2", stage={"verdicts": {victim: "abort"}})
    assert done.returncode == EXIT_DIFFERS, done.stdout
    assert f"crashed: {victim}" in done.stdout
    assert f"{len(selected()) - 1} same-bits, 1 crashed" in done.stdout


def test_a_fault_of_the_judge_is_shown_in_full_and_leaves_the_run_incomplete(tmp_path: Path) -> None:
    done = ran(tmp_path, "run", QUERY, "-n", "0", stage={"verdicts": {selected()[1]: "raise"}})
    assert done.returncode == EXIT_INCOMPLETE
    assert "RuntimeError: the judge itself is broken" in done.stdout
    assert "incomplete in" in done.stdout


def test_a_missing_oracle_leaves_the_run_incomplete(tmp_path: Path) -> None:
    done = ran(tmp_path, "run", QUERY, "-n", "0", stage={"missing": ["torch-reference"]})
    assert done.returncode == EXIT_INCOMPLETE
    assert "missing oracle: torch-reference" in done.stdout


def test_what_an_implementation_lacks_is_named(tmp_path: Path) -> None:
    done = ran(tmp_path, "run", QUERY, "logit_softcap/*", "-n", "0", stage={"operations": ["normalized_argmax"]})
    report = decode((tmp_path / "mlx-assay-report.json").read_bytes())
    assert done.returncode == EXIT_CONFORMS
    assert "not asked (the implementation lacks them): logit_softcap" in done.stdout
    assert report.selection.not_asked == ["logit_softcap"]


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["nothing/*"], EXIT_USAGE, "Expected an operation"),
        (["*/zzz"], EXIT_INCOMPLETE, "matches no case"),
        (["normalized_argmax/float16/ties/tilez"], EXIT_INCOMPLETE, "the nearest are normalized_argmax/float16/ties/t"),
        (["--executor", "vulkan"], EXIT_USAGE, "Expected an executor, metal or cuda or host, but got 'vulkan'"),
        (["--tier", "slow"], EXIT_USAGE, "Expected a tier, quick or full, but got 'slow'"),
        (["-n", "many"], EXIT_USAGE, "Expected a number of processes"),
        (["--seed", "1e3"], EXIT_USAGE, "Expected a seed"),
        (["--limit", "nan"], EXIT_USAGE, "Expected a limit"),
        (["--report", "no/such/folder.json"], EXIT_USAGE, "Expected a file in a folder that can be written"),
        (["--junit", "."], EXIT_USAGE, "Expected a file but got the folder"),
        (["--tolerance", "1e-2"], EXIT_USAGE, "unrecognized arguments: --tolerance"),
    ],
)
def test_a_wrong_request_is_refused(
    given: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        got = main(["run", *given])
    except SystemExit as ended:
        got = ended.code if isinstance(ended.code, int) else -1
    assert got == code
    assert message in capsys.readouterr().err


def test_nothing_selected_replaces_an_earlier_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "*/zzz"]) == EXIT_INCOMPLETE
    report = decode((tmp_path / "mlx-assay-report.json").read_bytes())
    assert (report.verdict, report.totals.declared, report.selection.queries) == ("incomplete", 0, ["*/zzz"])
    assert "matches no case" in capsys.readouterr().err


def test_an_executor_that_is_not_here_is_incomplete_never_a_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlx_assay.impl import executors

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(executors, "available", lambda name: f"no {name} in this machine")
    assert main(["run", "--executor", "metal"]) == EXIT_INCOMPLETE
    assert "Executor 'metal' cannot run here: no metal in this machine" in capsys.readouterr().err
    assert decode((tmp_path / "mlx-assay-report.json").read_bytes()).verdict == "incomplete"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module", "No module named 'no_such_module'"),
        ("os", "Expected 'os' to have a function of apply_token_bitmask"),
        ("os:nowhere", "'os' has no attribute 'nowhere'"),
    ],
)
def test_a_wrong_implementation_is_refused(
    target: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--implementation", target]) == EXIT_USAGE
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told


def test_list_prints_ids_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", QUERY]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == selected()
    assert shown.err == f"{len(selected())} cases\n"
    assert main(["list", QUERY, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [found["id"] for found in listed] == selected()
    assert all("nan" in found["tags"] and found["why"] for found in listed)
    assert main(["list", "*/zzz"]) == EXIT_INCOMPLETE


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(listing, "show", interrupted)
    assert main(["list"]) == EXIT_INCOMPLETE
    assert capsys.readouterr().err == "mlx-assay: interrupted\n"


def test_the_start_of_processes_counts_for_no_rate() -> None:
    now = 0.0
    file = io.StringIO()
    lines = Lines(file, lambda: now)
    lines.started(100)
    now = 30.0
    for _ in range(3):
        lines.judged(record())
        now += 11.0
    assert file.getvalue().splitlines() == [
        "1/100 cases, 0 failing",
        "2/100 cases, 0 failing, 0.1 cases/s, 1078 s left",
        "3/100 cases, 0 failing, 0.1 cases/s, 1067 s left",
    ]


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    command = f"set -o pipefail; {sys.executable} -m mlx_assay.conformance.cli list --tier full --json | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[\n"
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, "the reader has what it wanted"


def test_a_setting_that_cannot_be_meant_leaves_the_run_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLX_ASSAY_THREADS", "none")
    assert main(["run", QUERY, "--executor", "host"]) == EXIT_INCOMPLETE
    assert "MLX_ASSAY_THREADS is 'none': expected a number of threads" in capsys.readouterr().err
    assert decode((tmp_path / "mlx-assay-report.json").read_bytes()).cases == []


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mlx-assay {version('mlx-assay')}, mlx {version('mlx')}\n"


def test_the_real_thing_runs_from_elsewhere_and_replays(tmp_path: Path) -> None:
    """An implementation in the folder where the command is started, right for one operation and wrong for another."""
    (tmp_path / "mine.py").write_text(
        "import mlx.core as mx\n"
        "def normalized_argmax(logits):\n"
        "    return mx.argmax(logits - mx.logsumexp(logits, axis=-1, keepdims=True), axis=-1)\n"
        "class Half:\n"
        "    @staticmethod\n"
        "    def normalized_argmax(logits):\n"
        "        return normalized_argmax(logits[..., : logits.shape[-1] // 2])\n"
    )
    queries = ["normalized_argmax/float16/ties/boundary", "logit_softcap/float16/*"]
    done = ran(tmp_path, "run", *queries, "--implementation", "mine", "-n", "1", "--report", "right.json")
    assert done.returncode == EXIT_CONFORMS, done.stdout + done.stderr
    report = decode((tmp_path / "right.json").read_bytes())
    assert report.selection.not_asked == ["logit_softcap"]
    assert report.environment.oracles["stock-mlx"].state == "ok"
    assert report.implementation.operations == ["normalized_argmax"]
    done = ran(tmp_path, "run", queries[0], "--implementation", "mine:Half", "-n", "0", "--report", "wrong.json")
    assert done.returncode == EXIT_DIFFERS, done.stdout + done.stderr
    cases = decode((tmp_path / "wrong.json").read_bytes()).cases
    wrong = next(case for case in cases if case.verdict is Verdict.DIFFERS)
    assert wrong.difference is not None
    place = wrong.difference.places[0]
    done = ran(tmp_path, "replay", wrong.id, "--implementation", "mine:Half")
    assert done.returncode == EXIT_DIFFERS, done.stdout + done.stderr
    assert f"at {place.index}: got {place.got} want {place.want}" in done.stdout
    assert "logits: mx float16" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1] == f"{wrong.verdict}: does not conform"
    done = ran(tmp_path, "replay", wrong.id, "--implementation", "mine")
    assert done.returncode == EXIT_CONFORMS, done.stdout + done.stderr


def test_replay_refuses_what_is_no_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "normalized_argmax/float16/ties/nothing?seed=0"]) == EXIT_USAGE
    assert "Expected a kind of normalized_argmax" in capsys.readouterr().err


def test_doctor_names_a_part_that_dies(tmp_path: Path) -> None:
    """An MLX whose import aborts the process."""
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "__init__.py").write_text("")
    (tmp_path / "mlx" / "core.py").write_text("import os\nos.abort()\n")
    done = ran(tmp_path, "doctor", PYTHONPATH=str(tmp_path))
    assert done.returncode == EXIT_INCOMPLETE, done.stdout + done.stderr
    assert "BROKEN  mlx back end: killed by SIGABRT" in done.stdout
    assert "pip install" in done.stdout.partition("mlx back end")[2].splitlines()[1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("library", "mend"),
    [
        ("libcuda.so.1", "NVIDIA's driver"),
        ("libnccl.so.2", "mlx[cuda13]"),
        ("libcudnn.so.9", "mlx[cuda13]"),
        ("libopenblas.so.0", "mlx[cpu]"),
    ],
)
def test_a_back_end_without_its_libraries_is_named_with_what_brings_them(
    tmp_path: Path, library: str, mend: str
) -> None:
    """As MLX says it where its CUDA back end is installed on a machine without NVIDIA's driver."""
    said = f"{library}: cannot open shared object file: No such file or directory"
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "__init__.py").write_text("")
    (tmp_path / "mlx" / "core.py").write_text(f"raise ImportError({said!r}, name='mlx.core')\n")
    looked, judged = (
        ran(tmp_path, *given, PYTHONPATH=str(tmp_path)) for given in (["doctor"], ["run", "normalized_argmax"])
    )
    assert (looked.returncode, judged.returncode) == (EXIT_INCOMPLETE, EXIT_INCOMPLETE)
    _, _, found = looked.stdout.partition("BROKEN  mlx back end")
    for told in (found, judged.stderr):
        assert library in told
        assert mend in told
        assert "Traceback" not in told
    assert "executors" not in found, "nothing can be said of what needs MLX"


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("raise ImportError('libopenblas.so.0: cannot open shared object file')", "libopenblas.so.0"),
        ("print('not json')", "can be read"),
        ("pass", "can be read"),
        ("import os; os._exit(7)", "status 7"),
    ],
)
def test_a_probe_that_fails_is_a_finding(code: str, state: str) -> None:
    (found,) = doctor.probe("part", code, mend="pip install part")
    assert not found.sound
    assert state in found.state
    assert found.mend == "pip install part"


def test_doctor_sums_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(*found: doctor.Finding) -> tuple[int, str]:
        said: list[str] = []
        monkeypatch.setattr(doctor, "findings", lambda: iter(found))
        return doctor.doctor(said.append), "\n".join(said)

    sound = doctor.Finding("python", True, "3.11")
    assert verdict(sound, doctor.Finding("executor metal", False, "unavailable", "a Mac", needed=False))[0] == 0
    code, said = verdict(sound, doctor.Finding("compiler", False, "none", "pip install ziglang"))
    assert code == EXIT_INCOMPLETE
    assert "BROKEN  compiler: none\n        mend: pip install ziglang" in said


def test_how_many_workers_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    assert workers("host", 1000) == 4
    assert workers("metal", 1000) == 1
    assert workers("host", 3) == 0
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert workers("host", 1000) == 2


def test_queries_reach_pytest_whole(tmp_path: Path) -> None:
    query = "*/nan*?rows=3&tag=a b"
    made = arguments(Options(queries=(query, "-x")), 0, None, tmp_path)
    assert f"--mlx-assay-query={query}" in made
    assert "--mlx-assay-query=-x" in made


def test_lines_come_each_tenth_or_ten_seconds() -> None:
    file = io.StringIO()
    ticks = count(0.0, 0.001)
    lines = Lines(file, lambda: next(ticks))
    lines.started(200)
    for _ in range(200):
        lines.judged(record())
    assert len(file.getvalue().splitlines()) == 10
    assert file.getvalue().splitlines()[-1].startswith("200/200 cases, 0 failing, ")
    slow = io.StringIO()
    late = count(0.0, 6.0)
    lines = Lines(slow, lambda: next(late))
    lines.started(1000)
    for _ in range(6):
        lines.judged(record(Verdict.DIFFERS, "got \x1b[31m1"))
    assert "differs: got \\x1b[31m1\n" in slow.getvalue()
    assert 2 <= slow.getvalue().count(" cases, ") <= 6


def test_a_reader_that_goes_away_costs_no_result(tmp_path: Path) -> None:
    kept = {"PYTHONPATH": str(STAGE), "PYTEST_PLUGINS": "staged", "MLX_ASSAY_STAGE": '{"verdicts": {"*": "differs"}}'}
    command = f"{sys.executable} {STAGE / 'staged.py'} run '{QUERY}' -n 0 | head -1"
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=os.environ | kept, capture_output=True, text=True, timeout=60
    )
    report = decode((tmp_path / "mlx-assay-report.json").read_bytes())
    assert done.stdout.startswith("mlx-assay ")
    assert "Traceback" not in done.stderr
    assert report.totals.differs == len(selected())


def test_a_bar_on_a_terminal_and_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert isinstance(screen(io.StringIO()), Lines)
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    bar = Bar(terminal)
    bar.started(2)
    bar.judged(record(Verdict.DIFFERS, "[bold]got 1"))
    bar._progress.stop()
    shown = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "differs: [bold]got 1" in shown
    assert "1/2" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Console(file=io.StringIO(), force_terminal=True, width=100)
    bar = Bar(plain)
    bar.started(1)
    bar.judged(record())
    bar._progress.stop()
    assert "\x1b[3" not in plain.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sink", "code"), [("| head -c 1", EXIT_DIFFERS), ("> /dev/full", EXIT_INCOMPLETE), ("", EXIT_DIFFERS)]
)
def test_what_becomes_of_the_output_is_not_what_was_found(tmp_path: Path, sink: str, code: int) -> None:
    """A diagnosis of 1 stays 1 where the reader leaves, and a device that is full makes the run incomplete."""
    values = np.arange(400, dtype=np.float32).reshape(4, 100)
    save(tmp_path / "sums.safetensors", {"result": values[:, 0] + 1, "values": values}, {})
    command = f"set -o pipefail; {sys.executable} -m mlx_assay.conformance.cli order sums.safetensors --json {sink}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert ("No space left" in done.stderr) == (code == EXIT_INCOMPLETE)


def test_options_of_a_checked_program_are_told_their_place(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "script.py", "--rows", "3"])
    assert ended.value.code == EXIT_USAGE
    assert "mlx-assay check script.py -- --rows 3" in capsys.readouterr().err
