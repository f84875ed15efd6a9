"""Soak with the real judge: two runs at once on one cold cache, a damaged cache, clocks that jump, killed processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from striking import STALE

from mlx_assay.conformance.reporting.report import Report, decode
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE

QUERY = "apply_token_bitmask/bfloat16/bits/*"
SPARED = ("stock-metal", "torch-reference")
"""Oracles left out: the first needs what is not in a cold cache, the second seconds to be imported."""
JUMPING = """
import itertools, time
real, turns = time.time, itertools.count()
time.time = lambda: real() + (0, 90_000, -90_000, 4_000)[next(turns) % 4]
"""
"""As sitecustomize: the clock of the wall jumps by a day, and by more than an unfinished entry may be old."""
SERVER = "process.serve"
LONGER = "apply_token_bitmask/bfloat16/logits/*"


def started(folder: Path, name: str, query: str = QUERY, jumping: bool = False) -> subprocess.Popen[str]:
    """A run in one process, on the cache of the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    kept["MLX_ASSAY_CACHE"] = str(folder / "cache")
    if jumping:
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(JUMPING)
        kept["PYTHONPATH"] = str(folder / "site")
    (folder / name).write_text(STALE)
    without = [word for oracle in SPARED for word in ("--without", oracle)]
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", "run", query, "--executor", "host", "-n", "0"]
    return subprocess.Popen(
        [*command, *without, "--report", name],
        cwd=folder,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(run: subprocess.Popen[str], report: Path, code: int = EXIT_CONFORMS) -> Report:
    said, _ = run.communicate(timeout=300)
    assert run.returncode == code, said
    assert "Traceback" not in said
    made = decode(report.read_bytes())
    assert [record.id for record in made.cases] == [case.id for case in select([QUERY]).cases]
    return made


def test_runs_share_a_cold_cache_and_outlive_its_damage(tmp_path: Path) -> None:
    pair = [started(tmp_path, f"{number}.json") for number in (1, 2)]
    first, second = (ended(run, tmp_path / f"{number}.json") for number, run in enumerate(pair, 1))
    assert first.run != second.run
    assert [record.verdict for record in first.cases] == [record.verdict for record in second.cases]
    entries = [path for path in (tmp_path / "cache" / "compiled").rglob("*") if path.is_file() and path.stat().st_size]
    assert entries
    for place, entry in enumerate(entries):
        os.chmod(entry, 0o700)
        os.truncate(entry, 0 if place % 2 else entry.stat().st_size // 2)
    third = ended(started(tmp_path, "3.json", jumping=True), tmp_path / "3.json")
    assert [record.verdict for record in third.cases] == [record.verdict for record in first.cases]
    assert all(0 <= record.seconds < 300 for record in third.cases)
    assert 0 < third.seconds < 300


def test_a_killed_process_of_what_is_judged_costs_its_case_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    run = started(tmp_path, path.name, LONGER)
    killed = 0
    deadline = time.monotonic() + 120
    while run.poll() is None and killed < 2 and time.monotonic() < deadline:
        for server in servers(run.pid) if declared(path) else []:
            os.kill(server, signal.SIGKILL)
            killed += 1
            time.sleep(0.5)
        time.sleep(0.02)
    said, _ = run.communicate(timeout=300)
    assert killed == 2, said
    report = decode(path.read_bytes())
    assert run.returncode == (EXIT_DIFFERS if report.totals.crashed else EXIT_CONFORMS)
    assert report.complete
    assert report.totals.crashed <= killed
    assert all(record.conforms for record in report.cases if record.verdict != "crashed")


def declared(report: Path) -> int:
    """How many cases a run has declared; before that its process of what is judged is asked for what it has."""
    text = report.read_text()
    return 0 if text == STALE else decode(text.encode()).totals.declared


def servers(pid: int) -> list[int]:
    """Processes of what is judged, among the children of a run."""
    listed = subprocess.run(["ps", "-axwwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [int(row[0]) for row in rows if int(row[1]) == pid and SERVER in row[2]]


REAL = "apply_token_bitmask/bfloat16/real/*"
DAMAGED = [
    ("fixtures/found_data/apply_token_bitmask-4c8ae7e733fe.safetensors", (), "A file of this suite is damaged"),
    ("conformance/durations.json", ("--shard", "1/2"), "A file of this suite is damaged"),
    ("fixtures/later.json", (), "A file of this suite is damaged"),
    ("fixtures/data/grammar.safetensors", (), "data/grammar.safetensors is damaged"),
]


@pytest.mark.parametrize(("file", "words", "told"), DAMAGED, ids=["found", "durations", "later", "recorded"])
def test_a_truncated_file_of_the_suite_judges_nothing(
    tmp_path: Path, file: str, words: tuple[str, ...], told: str
) -> None:
    root = Path(__file__).resolve().parents[2]
    for name in ("conformance", "fixtures", "impl", "oracles"):
        linked(root / name, tmp_path / "mlx_assay" / name)
    harmed = tmp_path / "mlx_assay" / file
    half = harmed.read_bytes()[: harmed.stat().st_size // 2]
    harmed.unlink()
    harmed.write_bytes(half)
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", "run", REAL, "-n", "0", "--executor", "host"]
    without = [word for oracle in SPARED for word in ("--without", oracle)]
    kept = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*command, *without, *words], cwd=tmp_path, env=kept, capture_output=True, text=True)
    assert done.returncode == EXIT_INCOMPLETE, done.stdout + done.stderr
    assert told in done.stdout + done.stderr
    report = tmp_path / "mlx-assay-report.json"
    assert not report.exists() or decode(report.read_bytes()).verdict == "incomplete"


def linked(source: Path, target: Path) -> None:
    """A folder of links to the files of another."""
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path)
