"""Environments and probes: stand-ins for pip and for releases, the running MLX as a release, and broken answers."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.contracts.normalized_argmax import nan_rule
from mlx_assay.conformance.versions import doors, environment, exchange
from mlx_assay.conformance.versions.environment import EnvironmentFault, damage, ready
from mlx_assay.conformance.versions.exchange import Garbled
from mlx_assay.conformance.versions.inputs import Input
from mlx_assay.fixtures.case import Case
from mlx_assay.impl.executors.folder import Untrusted
from mlx_assay.oracles import stock_mlx

RUNNING = Path(sys.executable)
INSTALLED = version("mlx")


def question(operation: str, *, numbers: dict[str, float] | None = None, **arrays: Any) -> Input:
    return Input(operation, Case("rows", "float32", "made"), "", arrays, numbers or {})


ROW = np.array([[3, np.nan, 1, 5]], np.float32)
QUESTIONS = [
    question("argmax", x=ROW),
    question("argmax", x=ROW.astype(stock_mlx.BFLOAT16)),
    question("logsumexp", logits=np.array([[0.0, 0.0]], np.float16)),
    question("logit_softcap", x=np.array([1.0, np.inf], np.float32), numbers={"cap": float("nan")}),
    question("divide", x=np.array([1.0], np.float32), y=np.array([-0.0], np.float32)),
    question("sum_columns", x=np.array([[1, 2], [3, 4]], np.float32)),
    question("apply_token_bitmask", logits=np.zeros((1, 3), np.float32), bits=np.array([5], np.int32)),
    question("tanh", y=np.zeros(1, np.float32), x=np.zeros(1, np.float32)),
]


def test_the_running_release_answers_in_a_process_of_its_own() -> None:
    answers = doors.asked(RUNNING, INSTALLED, QUESTIONS)
    results = [answer.arrays.get("result") for answer in answers]
    want = 1 if nan_rule() == "first" else 3
    assert [np.asarray(results[0]).tolist(), np.asarray(results[1]).tolist()] == [[want], [want]]
    assert np.asarray(results[2]).dtype == np.float16
    assert float(np.asarray(results[2])[0, 0]) == pytest.approx(0.6931, abs=2**-10)
    assert np.isnan(np.asarray(results[3])).all()
    assert np.asarray(results[4]).tolist() == [-np.inf]
    assert np.asarray(results[5]).tolist() == [4, 6]
    assert np.asarray(results[6]).tolist() == [[0, -np.inf, 0]]
    assert answers[7].fault.startswith("TypeError: ")


def test_the_environment_of_the_process_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx/__init__.py").write_text("raise SystemExit('another MLX')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert not doors.asked(RUNNING, INSTALLED, QUESTIONS[:1])[0].fault


def test_another_release_than_asked_for_is_refused() -> None:
    with pytest.raises(doors.Shut, match=rf"has MLX '{INSTALLED}', expected '0\.1\.0'"):
        doors.asked(RUNNING, "0.1.0", QUESTIONS[:1])


def stand_in(folder: Path, script: str) -> Path:
    """A Python that runs a shell's script; $3 is the folder of the exchange."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo last words >&2; exit 3", "ended with code 3, and said last: last words"),
        ("kill -9 $$", "ended with code -9, and said last: nothing"),
        ("exit 0", "the answers cannot be read"),
        ("echo '{}' > $3/outputs.json; touch $3/outputs.bin", "not what a probe writes"),
        ("head -c 3000 /dev/urandom > $3/outputs.json; touch $3/outputs.bin", "not what a probe writes"),
    ],
)
def test_a_process_that_fails_is_named(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(doors.Shut, match=message):
        doors.asked(stand_in(tmp_path, script), INSTALLED, QUESTIONS)


def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(doors.Shut, match=r"was not done in 0\.3 s"):
        doors.asked(stand_in(tmp_path, "exec sleep 60"), INSTALLED, QUESTIONS, seconds=0.3)
    assert time.monotonic() - started < 30


def test_a_comparison_that_is_given_up_ends_its_processes(tmp_path: Path) -> None:
    watch = doors.Watch(lambda text: None)
    threading.Timer(0.3, watch.give_up).start()
    started = time.monotonic()
    with pytest.raises(doors.Shut, match="interrupted"):
        doors.asked(stand_in(tmp_path, "exec sleep 60"), INSTALLED, QUESTIONS, watch=watch)
    assert time.monotonic() - started < 30
    with pytest.raises(doors.Shut, match="interrupted"):
        watch.check()


def told(*answers: Any, **changed: Any) -> bytes:
    return msgspec.json.encode({"release": "0.32.4", "device": "cpu", "answers": list(answers), **changed})


GOOD = {"arrays": {"result": ["float32", [2], 0]}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (told(GOOD, GOOD), "2 answers to 1 inputs"),
        (told(GOOD, release="9.9.9"), "has MLX '9.9.9'"),
        (told(GOOD, device="gpu"), "device 'gpu'"),
        (told(GOOD, more=1), "not what a probe writes"),
        (told({"arrays": {"result": ["float33", [2], 0]}}), "dtype 'float33'"),
        (told({"arrays": {"result": ["float32", [-2], 0]}}), r"shape \[-2\]"),
        (told({"arrays": {"result": ["float32", [0] * 9, 0]}}), "at most 8 sizes"),
        (told({"arrays": {"result": ["float32", [3], 0]}}), "3 of float32, in a file of 8 bytes"),
        (told({"arrays": {"result": ["float32", [1], -4]}}), "stands at -4"),
        (told({"arrays": {"result": ["float32", [1 << 40, 1 << 40], 0]}}), "in a file of 8 bytes"),
        (told({"arrays": {}}), "a result or a fault"),
        (told(GOOD | {"fault": "E: x"}), "a result or a fault"),
        (told({"arrays": {"lse": ["float32", [2], 0]}}), "a result or a fault"),
        (told(GOOD)[:-9], "not what a probe writes"),
    ],
)
def test_garbled_answers_are_refused(tmp_path: Path, document: bytes, message: str) -> None:
    (tmp_path / "outputs.json").write_bytes(document)
    (tmp_path / "outputs.bin").write_bytes(bytes(8))
    with pytest.raises(Garbled, match=message):
        exchange.read(tmp_path, 1, "0.32.4")


def test_whole_answers_are_read(tmp_path: Path) -> None:
    (tmp_path / "outputs.json").write_bytes(told(GOOD))
    (tmp_path / "outputs.bin").write_bytes(np.array([1.5, -0.0], np.float32).tobytes())
    (answer,) = exchange.read(tmp_path, 1, "0.32.4")
    assert answer.arrays["result"].tobytes() == np.array([1.5, -0.0], np.float32).tobytes()


Calls = list[tuple[str, ...]]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """A cache of its own, and in the place of venv and pip what leaves the same files; every call is noted."""
    monkeypatch.setenv("MLX_ASSAY_CACHE", str(tmp_path / "cache"))
    made: Calls = []

    def call(release: str, *command: str) -> None:
        made.append(command)
        if "venv" in command:
            (Path(command[-1]) / "bin").mkdir(parents=True)
            (Path(command[-1]) / "bin/python").symlink_to(sys.executable)
            return
        time.sleep(0.1)
        site = Path(command[command.index("--python") + 1]).parent.parent / "lib/python3/site-packages"
        (site / f"mlx-{release}.dist-info").mkdir(parents=True)
        (site / "core.so").write_bytes(b"code")
        record = "core.so,sha256=x,4\n../../bin/tool,,\nmlx.dist-info/RECORD,,\n"
        (site / f"mlx-{release}.dist-info/RECORD").write_text(record)

    monkeypatch.setattr(environment, "_call", call)
    return made


def test_an_environment_is_made_once(calls: Calls) -> None:
    place, done = ready("0.32.4")
    assert (done, len(calls)) == ("made", 2)
    assert ready("0.32.4") == (place, "kept")
    assert len(calls) == 2
    assert [path.name for path in environment.kept()] == [place.name]
    assert {path.name for path in place.parent.iterdir() if not path.name.endswith(".lock")} == {place.name}
    assert place.name.startswith(f"0.32.4-{sys.implementation.cache_tag}-")


def spoil(name: str, spoiling: Callable[[Path], object]) -> Any:
    return pytest.param(spoiling, id=name)


SITE = "lib/python3/site-packages"


@pytest.mark.parametrize(
    "spoiling",
    [
        spoil("truncated", lambda place: (place / SITE / "core.so").write_bytes(b"cod")),
        spoil("file gone", lambda place: (place / SITE / "core.so").unlink()),
        spoil("mark gone", lambda place: (place / environment.MARK).unlink()),
        spoil("mark garbled", lambda place: (place / environment.MARK).write_text("{")),
        spoil("Python gone", lambda place: (place / "bin/python").unlink()),
        spoil("package gone", lambda place: (place / SITE / "mlx-0.32.4.dist-info/RECORD").unlink()),
        spoil("record garbled", lambda place: (place / SITE / "mlx-0.32.4.dist-info/RECORD").write_text("a,b\n")),
    ],
)
def test_a_damaged_environment_is_made_anew(calls: Calls, spoiling: Callable[[Path], object]) -> None:
    place, _ = ready("0.32.4")
    spoiling(place)
    assert damage(place, "0.32.4") is not None
    again, done = ready("0.32.4")
    assert (again, done.partition(":")[0], len(calls)) == (place, "mended", 4)
    assert damage(place, "0.32.4") is None
    assert ready("0.32.4")[1] == "kept"


def test_what_a_killed_process_left_is_removed(calls: Calls) -> None:
    place, _ = ready("0.32.4")
    old, fresh = place.with_name(".work-old"), place.with_name(".work-fresh")
    for left in (old, fresh):
        (left / "environment").mkdir(parents=True)
    os.utime(old, (0, 0))
    ready("0.32.4")
    assert (old.exists(), fresh.exists()) == (False, True)


def test_two_at_once_make_one(calls: Calls) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(ready("0.32.4")[1])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["kept", "kept", "made"]
    assert len(calls) == 2


def test_what_others_can_write_is_not_run(calls: Calls) -> None:
    place, _ = ready("0.32.4")
    place.chmod(place.stat().st_mode | stat.S_IWOTH)
    with pytest.raises(Untrusted, match="can be written by others"):
        ready("0.32.4")


def test_a_release_that_does_not_exist_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLX_ASSAY_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(EnvironmentFault, match=r"of MLX 0\.0\.99 cannot be made: .*mlx.*==0\.0\.99"):
        ready("0.0.99")
    assert [path.name for path in environment.folder().iterdir()] == [f".{environment.environment('0.0.99').name}.lock"]


def test_an_environment_that_fails_is_made_anew_once(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def ask(python: Path, *_: Any) -> Any:
        asked.append(python)
        if len(asked) == 1:
            raise doors.Shut("MLX cannot be imported")
        return ["answer"]

    monkeypatch.setattr(doors, "asked", ask)
    ready("0.32.4")
    said: list[str] = []
    assert doors.cpu("0.32.4", [], doors.Watch(said.append)) == ["answer"]
    assert len(calls) == 4
    assert "made anew" in said[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["0.32.4"], "Expected two releases of MLX or more"),
        (["0.32.4", "0.32.4"], "Expected two releases of MLX or more"),
        (["0.32.4", "0.32.x"], "Expected a release of MLX"),
        (["argmax/*"], "but got none"),
        (["0.32.2", "0.32.4", "argmix/*"], "Expected an operation"),
        (["0.32.2", "0.32.4", "--json", "/"], "Expected a file"),
    ],
)
def test_wrong_requests_are_usage(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["versions", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_command_writes_its_files_and_returns_the_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def cpu(release: str, inputs: Any, watch: doors.Watch) -> Any:
        watch.tell(f"{release} asked")
        winner = 1 if release == "0.32.4" else 3
        return [exchange.Answer({"result": np.array([winner], np.uint32)}) for _ in inputs]

    monkeypatch.setattr(doors, "cpu", cpu)
    words = ["0.32.4", "0.32.2", "argmax/float32/nan-amid", "--door", "cpu"]
    files = ["--json", str(tmp_path / "a.json"), "--markdown", str(tmp_path / "a.md")]
    assert main(["versions", *words, *files]) == 0
    captured = capsys.readouterr()
    assert "0.32.2 asked" in captured.err
    assert "argmax_given 4 (from 0.32.3), 5 (to 0.32.2)" in captured.out
    assert msgspec.json.decode((tmp_path / "a.json").read_bytes())["verdict"] == "explained"
    assert "ml-explore/mlx#4291" in (tmp_path / "a.md").read_text()
    assert sorted(os.listdir(tmp_path)) == ["a.json", "a.md"]


def test_the_cache_names_environments(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    place, _ = ready("0.32.4")
    assert main(["cache"]) == 0
    assert f"{place}: environment" in capsys.readouterr().out
    assert main(["cache", "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["environments"] == {str(place): environment.size(place)}
