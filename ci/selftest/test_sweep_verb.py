"""The verb `sweep`: campaigns that are killed and go on, journals that are another's, and what a report says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mlx_assay.conformance.cli import main

SWEEP = "trellis_decode/float32/every/state?form=state"
HERE = Path(__file__).parent
COMMAND = (sys.executable, "-m", "mlx_assay.conformance.cli", "sweep", SWEEP, "--executor", "host")


def started(folder: Path, *more: str) -> subprocess.Popen[str]:
    """A campaign in a process group of its own."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    return subprocess.Popen([*COMMAND, *more], cwd=folder, start_new_session=True, env=environment, **pipes)


def ran(folder: Path, *more: str) -> tuple[int, str]:
    with started(folder, *more) as process:
        said, _ = process.communicate(timeout=240)
    return process.returncode, said


def records(folder: Path) -> list[Path]:
    return sorted((folder / "mlx-assay-sweep").glob("*/*.json"))


def report(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "mlx-assay-sweep.json").read_text())
    return found


def test_a_killed_campaign_goes_on(tmp_path: Path) -> None:
    """Killed at some moment, its records are whole, and what it had is neither judged nor counted again."""
    with started(tmp_path, "--chunks", "0:8", "-n", "1") as process:
        deadline = time.monotonic() + 120
        while not records(tmp_path) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    before = {path: path.stat().st_mtime_ns for path in records(tmp_path)}
    assert 1 <= len(before) < 8
    assert (report(tmp_path)["complete"], report(tmp_path)["verdict"]) == (False, "incomplete")
    code, said = ran(tmp_path, "--chunks", "0:8", "-n", "1")
    assert code == 3
    assert "holds a campaign: add --resume" in said
    code, said = ran(tmp_path, "--chunks", "0:8", "-n", "1", "--resume")
    assert code == 0, said
    found = report(tmp_path)
    (swept,) = found["sweeps"]
    assert (found["verdict"], found["resumed"], swept["chunks_judged"]) == ("conforms", len(before), 8)
    assert swept["judged"] == swept["asked"] == 8 * 8 << 14
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(records(tmp_path)) == 8
    _damage(tmp_path, swept["digest"])


def _damage(folder: Path, digest: str) -> None:
    """A record that is cut runs again, one that is another chunk's does too, and the digest is the same."""
    first, second, third, *_ = records(folder)
    first.write_bytes(first.read_bytes()[:100])
    second.write_bytes(third.read_bytes())
    code, said = ran(folder, "--chunks", "0:8", "-n", "1", "--resume")
    assert code == 0, said
    assert said.count("damaged, its chunk runs again") == 2
    found = report(folder)
    assert (found["resumed"], found["sweeps"][0]["digest"]) == (6, digest)
    code, said = ran(folder, "--chunks", "0:8", "-n", "1", "--resume", "--implementation", "sweep_faults:OneState")
    assert code == 3
    assert "is that of another campaign: implementation was mlx_assay.impl and is sweep_faults:OneState" in said


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["sweep", "argmax_given/float16"], 3, "matches no sweep"),
        (["sweep", "nothing/float16"], 2, "Expected an operation"),
        (["sweep", "--scheduler", "tcp://x:1", "-n", "2"], 2, "Expected -n or --scheduler"),
        (["run", "--tier", "exhaustive", "--shard", "1/2"], 2, "Expected --shard with the tier quick or full"),
        (["run", "--tier", "exhaustive", "argmax_given/float16"], 3, "matches no sweep"),
        (
            ["sweep", "logit_softcap/float32", "--chunks", "2000:2001"],
            3,
            "has most, but got 2000:2001; mlx-assay sweep --list",
        ),
    ],
)
def test_refusals(words: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == code
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("text", ["3", "3:3", "4:3", "-1:2", "0x1:2"])
def test_chunks_are_a_range(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sweep", f"--chunks={text}"])
    assert "Expected numbers of chunks as A:B" in capsys.readouterr().err


def test_the_list_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--list", "compiled_logit_softcap/float32"]) == 0
    assert (
        "4,294,967,296 inputs  1,024 chunks  compiled_logit_softcap/float32/every/encoding?cap=30"
        in capsys.readouterr().out
    )
