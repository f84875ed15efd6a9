"""Where a report comes from: run, leg, suite, source, device class, packages, and the contracts that it tells of."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest
from test_cli import QUERY, ran
from test_report import line, record

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.options import Options, leg
from mlx_assay.conformance.process import seal as seals
from mlx_assay.conformance.reporting.device import device_class
from mlx_assay.conformance.reporting.report import ContractRecord, OracleState, Report, Source, decode
from mlx_assay.conformance.reporting.source import source
from mlx_assay.conformance.session import Session, Worker
from mlx_assay.conformance.verdict import EXIT_USAGE, Verdict

WORDS = ContractRecord(summary="ids", rules={"1": "the lowest"}, relaxations=[])
WORKER = Worker(
    device="cpu",
    device_class="host-x86_64",
    contracts={"normalized_argmax": WORDS, "logit_softcap": WORDS},
    oracles={"stock-metal": OracleState("ok", "0.30.1 bitcode")},
)


def run(verdict: Verdict = Verdict.SAME_BITS, **options: str) -> Report:
    session = Session(Options(**options))  # type: ignore[arg-type]
    session.declare([record(1).id])
    session.learn(msgspec.json.encode(WORKER).decode())
    session.add(line(record(1, verdict)))
    return session.finish()


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "kernel.py").write_text("1\n")
    git(tmp_path, "add", "kernel.py")
    git(tmp_path, "commit", "-q", "-m", "one")
    return tmp_path


def test_no_run_has_the_name_of_another() -> None:
    names = {run().run for _ in range(3)}
    assert len(names) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names)


def test_a_leg_is_the_device_class_unless_it_has_a_name() -> None:
    assert run().leg == "host-x86_64"
    assert run(leg="nightly_m4.host-1").leg == "nightly_m4.host-1"


@pytest.mark.parametrize("name", ["", "a b", "a/b", "\x1b[31m", "ä", "a" * 65, "a\n"])
def test_a_leg_is_a_plain_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="Expected a leg's name"):
        leg(name)
    with pytest.raises(SystemExit) as ended:
        main(["run", f"--leg={name}"])
    assert ended.value.code == EXIT_USAGE
    assert "Expected a leg's name" in capsys.readouterr().err


def test_a_leg_reaches_the_report_through_pytest(tmp_path: Path) -> None:
    ran(tmp_path, "run", QUERY, "--leg", "self-hosted", "-n", "0", stage={"verdicts": {"*": "differs"}})
    report = decode((tmp_path / "mlx-assay-report.json").read_bytes())
    assert report.leg == "self-hosted"
    assert report.environment.device_class.startswith("host-")
    assert list(report.contracts) == ["normalized_argmax"]
    assert "lowest id" in report.contracts["normalized_argmax"].rules["3"]
    assert report.suite is not None
    assert report.suite.fixtures == seals.digests()[0]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"executor": "metal", "architecture": "applegpu_g16s", "device_name": "Apple M4 Max"}, "g16"),
        ({"executor": "metal", "architecture": "applegpu_g13g", "device_name": "Apple M1"}, "g13"),
        ({"executor": "metal", "architecture": "air64_v27", "device_name": "Apple Paravirtual device"}, "paravirtual"),
        ({"executor": "metal", "architecture": "applegpu_g13g", "device_name": "Apple Paravirtual"}, "paravirtual"),
        ({"executor": "metal", "architecture": "applegpu_g16s\n"}, "paravirtual"),
        ({"executor": "metal"}, "paravirtual"),
        ({"executor": "cuda", "architecture": "sm_90"}, "cuda-sm90"),
        ({"executor": "cuda", "architecture": "?"}, ""),
        ({"name": "host"}, "host-arm64"),
        ({}, ""),
    ],
)
def test_device_classes(told: dict[str, str], expected: str) -> None:
    assert device_class(told, "aarch64") == expected


def test_contracts_are_told_of_operations_that_fail() -> None:
    assert run().contracts == {}
    assert run(Verdict.DIFFERS).contracts == {"normalized_argmax": WORDS}


def test_the_kernels_that_an_oracle_fetched_are_a_package() -> None:
    assert run().environment.packages["mlx-metal"] == "0.30.1"


def test_a_suite_is_told_by_its_files_wherever_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digests(root: Path) -> tuple[str, str]:
        monkeypatch.setattr(seals, "_folders", lambda: [root / "fixtures", root / "impl"])
        seals.seal.cache_clear()
        return seals.digests()

    def write(root: Path, path: str, text: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)

    try:
        for place in ("one", "other/deeper"):
            for path in ("fixtures/a.py", "impl/executors/host.py", "impl/kernels/mask.metal"):
                write(tmp_path / place, path, path)
        first = digests(tmp_path / "one")
        for path in ("fixtures/__pycache__/a.pyc", "fixtures/a.pyc", "impl/.cache/x", "impl/kernels/mask.metal"):
            write(tmp_path / "other/deeper", path, "other")
        assert digests(tmp_path / "other/deeper") == first
        assert (
            first[0]
            == hashlib.sha256(f"{hashlib.sha256(b'fixtures/a.py').hexdigest()}  fixtures/a.py\n".encode()).hexdigest()
        )
        write(tmp_path / "other/deeper", "fixtures/a.py", "other")
        second = digests(tmp_path / "other/deeper")
        assert (second[0] != first[0], second[1] == first[1]) == (True, True)
        write(tmp_path / "other/deeper", "impl/executors/host.py", "other")
        assert digests(tmp_path / "other/deeper")[1] != second[1]
    finally:
        seals.seal.cache_clear()


def test_a_source_is_the_commit_and_whether_files_differ(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SHA", "1" * 40)
    commit = git(repository, "rev-parse", "HEAD")
    (repository / "report.json").write_text("{}")
    assert source(repository) == Source(commit=commit, dirty=False)
    (repository / "below").mkdir()
    (repository / "kernel.py").write_text("2\n")
    assert source(repository / "below") == Source(commit=commit, dirty=True)


def test_asking_for_the_source_runs_no_program_of_the_repository(repository: Path) -> None:
    trap = repository / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {repository / 'sprung'}\nexec cat\n")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(trap))
    git(repository, "config", "core.pager", str(trap))
    (repository / ".git" / "hooks").mkdir(exist_ok=True)
    shutil.copy(trap, repository / ".git" / "hooks" / "post-index-change")
    assert source(repository).commit
    assert not (repository / "sprung").exists()


def test_without_git_the_commit_is_the_one_that_the_job_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert source(tmp_path) == Source()
    monkeypatch.setenv("GITHUB_SHA", "1" * 40)
    assert source(tmp_path) == Source(commit="1" * 40)
    monkeypatch.setenv("GITHUB_SHA", "main; rm")
    assert source(tmp_path) == Source()


def test_a_repository_that_git_cannot_read_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SHA", "1" * 40)
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    assert source(tmp_path) == Source()


def test_what_a_checkout_digests_a_wheel_ships() -> None:
    """Or the digests of the two would not agree: each file that is no module is named by some pattern."""
    root = Path(__file__).parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = [
        f"{settings['package-dir'][package]}/{pattern}"
        for package, listed in settings["package-data"].items()
        if package != "*"
        for pattern in listed
    ]
    tracked = git(root, "ls-files", "impl", "oracles", "fixtures", "conformance").splitlines()
    files = [Path(name) for name in tracked if not name.endswith((".py", "/py.typed"))]
    assert len(files) > 50
    assert [str(file) for file in files if not any(file.match(pattern) for pattern in patterns)] == []
