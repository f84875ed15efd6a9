"""Programs from outside that are right, and those that do not start: the command line, the report, the processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.conformance.adapters import folder
from mlx_assay.conformance.adapters.channel import ENVIRONMENT, Broken, environment
from mlx_assay.conformance.adapters.program import Program, mlx_array, plain_array
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.reporting.report import decode
from mlx_assay.fixtures.tensor import DTYPES

PROGRAMS = Path(__file__).parent / "programs"
PYTHON = f"{sys.executable} -S -E"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", "run", "--executor", "host", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_program_conforms_on_a_whole_operation(tmp_path: Path) -> None:
    program = f"cmd: {sys.executable} {PROGRAMS / 'fold.py'}"
    file = tmp_path / "report.json"
    done = run("trellis_fold", "--implementation", program, "--report", str(file), "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    report = decode(file.read_bytes())
    assert report.totals.executed == report.totals.declared > 35
    assert report.implementation.name == program
    assert report.implementation.operations == ["trellis_fold"]
    told = {"name": "fold", "version": "1.0", "device": "cpu", "protocol": "1"}
    assert told.items() <= report.implementation.details.items()
    assert "mlx" not in report.implementation.details
    assert report.implementation.details["runtime"].startswith("Python")


def test_a_report_keeps_what_a_failing_program_said(tmp_path: Path) -> None:
    fault = tmp_path / "fault"
    fault.write_text("exits-with-7")
    file = tmp_path / "report.json"
    program = f"cmd: {PYTHON} {PROGRAMS / 'faults.py'} {fault}"
    query = "apply_token_bitmask/bfloat16/mask/all-allowed?vocab=31"
    done = run(query, "--implementation", program, "--report", str(file), "-n", "0")
    assert done.returncode == 1, done.stdout + done.stderr
    records = json.loads(file.read_bytes())["cases"]
    assert {(record["verdict"], record["output"]) for record in records} == {("crashed", "cannot open the device")}


ANSWERS = {
    "": "The program ended with exit code 0",
    "print('hello')": "'hello'",
    "print('[]')": "Expected `object`, got `array`",
    "print('{}')": "missing required field `protocol`",
    "say(protocol=2)": "Invalid enum value 2",
    "say(protocol='1')": "Expected `int`, got `str` - at `$.protocol`",
    "say(name='')": "length >= 1 - at `$.name`",
    "say(name=7)": "Expected `str`, got `int` - at `$.name`",
    "say(version='x' * 201)": "length <= 200 - at `$.version`",
    "say(operations=[])": "length >= 1 - at `$.operations`",
    "say(operations='apply_token_bitmask')": "Expected `array`, got `str`",
    "say(operations=['x' * 101])": "length <= 100",
    "say(license='MIT')": "unknown field `license`",
    "say(plans='yes')": "Expected `bool`, got `str`",
    "say(operations=['sort'])": "has none of them",
    "import os; os.kill(os.getpid(), 9)": "was killed by SIGKILL",
    "print('{' + 2000000 * ' ')": "Expected lines of at most 1048576 bytes",
}
SAY = """
import json, sys
def say(**changed):
    told = {"protocol": 1, "name": "n", "version": "1", "runtime": "r", "device": "d", "operations": ["trellis_fold"]}
    print(json.dumps({**told, **changed}), flush=True)
sys.stdin.readline()
"""


def answering(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", "-c", f"{SAY}\n{code}")


@pytest.mark.parametrize("code", [code for code in ANSWERS if "sort" not in code])
def test_what_is_no_answer_to_start_is_told(code: str, scratch: str) -> None:
    with pytest.raises(Broken) as broken:
        Program(answering(code), scratch, {}, {"trellis_fold": ("x",)})
    assert ANSWERS[code] in broken.value.message


@pytest.fixture
def scratch(tmp_path: Path) -> str:
    (tmp_path / "own").mkdir()
    return str(tmp_path / "own")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("cmd: /nowhere/program", r"can be started but got '/nowhere/program': No such file or directory"),
        ("cmd: no-such-program-anywhere", r"can be started but got 'no-such-program-anywhere'"),
        ("cmd: /", r"Permission denied|is a directory"),
        ("cmd:", "Expected a command line behind 'cmd:'"),
        ("cmd: bun 'adapter.ts", "No closing quotation"),
        (f"cmd: {PYTHON} -c 'print(5)'", "Expected the answer to `start` but got '5'"),
        (f"cmd: {PYTHON} -c 'raise SystemExit(\"no GPU\")'", r"ended with exit code 1(?s:.)*no GPU"),
        (f"cmd: {PYTHON} -c 'import time; time.sleep(600)'", "Starting .* failed. No answer within the limit"),
    ],
)
def test_a_program_that_cannot_be_had_is_a_clear_error(program: str, words: str) -> None:
    limit = 2.0 if "sleep" in program else 30.0
    with Implementation(program, "host", limit) as implementation, pytest.raises(ImplementationError, match=words):
        assert implementation.operations


def test_a_program_that_cannot_be_had_is_a_usage_error(tmp_path: Path) -> None:
    done = run("trellis_fold", "--implementation", "cmd: ''", "--report", str(tmp_path / "report.json"))
    assert done.returncode == 2
    assert "Expected a command line behind 'cmd:'" in done.stderr


def test_operations_without_a_case_are_none(scratch: str) -> None:
    program = Program(answering("say(operations=['sort'])\nsys.stdin.read()"), scratch, {}, {"trellis_fold": ("x",)})
    assert program.functions() == {}
    assert program.stop()


def test_a_program_sees_no_secrets(scratch: str) -> None:
    given = {"PATH": "/bin", "HOME": "/home/me", "GITHUB_TOKEN": "secret", "PYTHONPATH": "/x", "LANG": "C"}
    found = environment("/own", given)
    assert found.keys() == {"PATH", "HOME", "LANG", "TMPDIR", "TMP", "TEMP"}
    assert found["TMPDIR"] == "/own"
    assert "GITHUB_TOKEN" not in ENVIRONMENT
    tell = "import os\nsay(name=os.environ.get('SECRET', 'none'), version=os.environ['TMPDIR'], device=os.getcwd())"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET", "told")
        program = Program(answering(f"{tell}\nsys.stdin.read()"), scratch, {}, {})
    assert program.details["name"] == "none"
    assert program.details["version"] == scratch
    assert program.details["device"] == os.getcwd()
    program.stop()


def test_a_program_that_does_not_stop_is_ended(scratch: str) -> None:
    program = Program(answering("say()\nimport time; time.sleep(600)"), scratch, {}, {})
    assert not program.stop()


def test_every_bit_goes_out_and_comes_back(scratch: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    random = np.random.default_rng(5)
    arrays = [every.view(ml_dtypes.bfloat16), every.view(np.float16)]
    arrays += [np.frombuffer(random.bytes(48 * dtype.itemsize), dtype).reshape(2, 24) for dtype in DTYPES.values()]
    arrays += [np.zeros((), np.float32), np.zeros((0, 4), np.float32), np.full((1, 1, 1), -0.0, np.float16)]
    program = Program((*PYTHON.split(), str(PROGRAMS / "mask.py")), scratch, {}, {"echo": ("x",)})
    program.allow(1 << 18)
    echo = program.functions()["echo"]
    for array in arrays:
        for given in (mlx_array(array), array):
            back = plain_array(echo(given))
            assert back is not None
            assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    strided = mlx_array(np.arange(24, dtype=np.float32).reshape(4, 6))[::-1, 1::2].transpose(1, 0)
    assert mx.array_equal(echo(strided), strided)
    assert program.stop()
    assert os.listdir(scratch) == []


def test_a_folder_goes_whatever_was_made_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = folder.create()
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    below = Path(made, "below", "deep")
    below.mkdir(parents=True)
    (below / "file").write_text("x")
    (below / "link").symlink_to(kept)
    below.chmod(0)
    below.parent.chmod(0)
    Path(made).chmod(0)
    folder.remove(made)
    assert not os.path.lexists(made)
    assert (kept / "file").read_text() == "mine"
    os.symlink(kept, made)
    folder.remove(made)
    assert not os.path.lexists(made)
    assert (kept / "file").read_text() == "mine"


def test_a_folder_is_removed_however_deep_its_owner_went() -> None:
    path = folder.create()
    place = os.open(path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("below", dir_fd=place)
        below = os.open("below", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    folder.remove(path)
    assert not os.path.lexists(path)
