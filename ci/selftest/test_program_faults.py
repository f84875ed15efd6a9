"""Programs from outside that are wrong in one way: the verdict that each gets, and that nothing else is touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.descendants import descendants
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case

PROGRAMS = Path(__file__).parent / "programs"
CASE = Case.parse("apply_token_bitmask/bfloat16/mask/pattern?vocab=97&seed=0")
OTHER = Case.parse("apply_token_bitmask/float16/mask/all-allowed?vocab=33&seed=0")
LIMIT = 30.0
SHORT_LIMIT = 1.0

DIFFERS, ERROR, CRASHED, TIMED_OUT = Verdict.DIFFERS, Verdict.ERROR, Verdict.CRASHED, Verdict.TIMED_OUT
UNSUPPORTED, SAME_BITS = Verdict.UNSUPPORTED, Verdict.SAME_BITS

FAULTS: dict[str, tuple[Verdict, str]] = {
    "nothing": (ERROR, "Expected the output in the file `out` but there is none"),
    "elsewhere": (ERROR, "Expected the output in the file `out` but there is none"),
    "symbolic-link": (ERROR, "Expected a regular file as `out` but it cannot be opened"),
    "hard-link": (ERROR, "Expected `out` to be a file of its own but it is linked to another name"),
    "pipe": (ERROR, "Expected a regular file as `out` but it is a folder, pipe, socket or device"),
    "folder": (ERROR, "Expected a regular file as `out` but it is a folder, pipe, socket or device"),
    "sparse-gigabytes": (ERROR, "Expected an output of at most"),
    "sparse-terabyte": (CRASHED, "the program ended with exit code 1; it printed last:\n  | Traceback"),
    "folder-replaced": (CRASHED, "FileNotFoundError"),
    "empty-file": (ERROR, "Expected 8 bytes of header length but the file has 0 bytes"),
    "text-file": (ERROR, "Expected a header within the file"),
    "truncated-file": (ERROR, "Expected two rising offsets within"),
    "trailing-bytes": (ERROR, "bytes of data but the file holds"),
    "header-beyond-file": (ERROR, "Expected a header within the file"),
    "no-tensor": (ERROR, "Expected one tensor in `out` but got 0"),
    "two-tensors": (ERROR, "Expected one tensor in `out` but got 2"),
    "unknown-dtype": (ERROR, "Expected a dtype of BF16"),
    "impossible-shape": (ERROR, "Expected a size of"),
    "wrong-dtype": (ERROR, "got uint8 "),
    "wrong-shape": (ERROR, "got bfloat16 1x"),
    "too-large": (ERROR, "Expected an output of at most"),
    "swapped-bytes": (DIFFERS, "places"),
    "zeros": (DIFFERS, "places"),
    "stale": (DIFFERS, "places"),
    "right-once": (DIFFERS, "second call"),
    "other-number": (ERROR, "but got one to seq"),
    "number-as-text": (ERROR, "Expected `int`, got `str`"),
    "number-as-float": (ERROR, "Expected `int`, got `float`"),
    "no-number": (ERROR, "missing required field `seq`"),
    "not-json": (ERROR, "'done'"),
    "json-array": (ERROR, "Expected `object`, got `array`"),
    "nan-in-json": (ERROR, "invalid character"),
    "unknown-field": (ERROR, "unknown field `output`"),
    "two-answers": (ERROR, "got ok and error"),
    "no-answer": (ERROR, "got none of them"),
    "ok-false": (ERROR, "Invalid enum value"),
    "unknown-type": (ERROR, "Invalid enum value 'KeyError'"),
    "nested-deep": (ERROR, "Expected the answer to `run`"),
    "plan-unannounced": (ERROR, "Expected `plans: true`"),
    "noise-before": (ERROR, "'loading the model'"),
    "noise-behind": (ERROR, "Expected one line an order on standard output but got 'ready' too"),
    "said-twice": (ERROR, "Expected one line an order on standard output"),
    "escape-sequences": (ERROR, "�]0;owned�"),
    "long-line": (ERROR, "Expected lines of at most 1048576 bytes"),
    "flood": (ERROR, "Expected lines of at most 1048576 bytes"),
    "exits": (CRASHED, "the program ended with exit code 0"),
    "exits-with-7": (CRASHED, "the program ended with exit code 7; it printed last:\n  | cannot open the device"),
    "segfault": (CRASHED, "the program was killed by SIGSEGV"),
    "half-a-line": (CRASHED, "exit code 0 after '{\"seq\":', which has no line break"),
    "closes-output": (CRASHED, "the program closed its standard output"),
    "hangs": (TIMED_OUT, "no answer within the limit, killed; it printed last:\n  | thinking"),
    "hangs-on": (TIMED_OUT, "no answer within the limit, killed"),
    "hangs-in-a-line": (TIMED_OUT, "no answer within the limit, killed"),
    "unsupported": (UNSUPPORTED, "raised unsupported: no such kernel on this device"),
    "fails": (ERROR, "raised error: out of memory"),
    "fails-by-value": (ERROR, "raised ValueError: not this"),
    "talks": (SAME_BITS, ""),
    "talks-much": (SAME_BITS, ""),
    "leaves-a-process": (SAME_BITS, ""),
    "leaves-a-session": (SAME_BITS, ""),
    "forbids-its-folder": (SAME_BITS, ""),
}


class Bench:
    """One implementation, whose program reads the name of its fault anew at each call."""

    def __init__(self, folder: Path) -> None:
        self.fault = folder / "fault"
        self.fault.write_text("")
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.implementation = Implementation(
            f"cmd: {sys.executable} -S -E {PROGRAMS / 'faults.py'} {self.fault}",
            "host",
            LIMIT,
            operations=["apply_token_bitmask"],
        )

    def judged(self, fault: str, case: Case = CASE) -> Record:
        self.fault.write_text(fault)
        verdict, _ = FAULTS.get(fault, (SAME_BITS, ""))
        assert self.implementation.operations
        self.implementation.limit = SHORT_LIMIT if verdict is TIMED_OUT else LIMIT
        try:
            return judge(case, self.implementation)
        finally:
            self.implementation.limit = LIMIT


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("programs"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(made.scratch))
        with made.implementation:
            yield made


def test_every_fault_stands_in_the_table() -> None:
    sys.path.insert(0, str(PROGRAMS))
    try:
        import faults
    finally:
        sys.path.remove(str(PROGRAMS))
    assert list(faults.FAULTS) == list(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_gets_its_verdict_and_touches_no_other_case(bench: Bench, fault: str) -> None:
    verdict, words = FAULTS[fault]
    record = bench.judged(fault)
    assert record.verdict is verdict, record.message
    assert words.lower() in record.message.lower()
    assert record.conforms == (verdict is SAME_BITS)
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in record.message + record.output)
    after = bench.judged("", OTHER)
    assert after.verdict is SAME_BITS, after.message


def test_standard_error_is_kept_of_cases_that_do_not_conform(bench: Bench) -> None:
    assert bench.judged("talks").output == ""
    record = bench.judged("exits-with-7")
    assert record.output == "cannot open the device"


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("fault", ["leaves-a-process", "leaves-a-session"])
def test_what_a_program_starts_ends_with_it(bench: Bench, fault: str) -> None:
    left = Path(f"{bench.fault}.left")
    left.unlink(missing_ok=True)
    bench.implementation.close()
    assert bench.judged(fault).conforms
    pid = int(left.read_text())
    assert alive(pid)
    bench.implementation.close()
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)


JUDGE = """
import sys, time
from mlx_assay.conformance.process.implementation import Implementation
implementation = Implementation(sys.argv[1], "host", 60.0, operations=["apply_token_bitmask"])
print(implementation.operations, implementation._child._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_program_and_no_folder_outlives_its_judge(number: signal.Signals, tmp_path: Path) -> None:
    deaf = "import sys, time; sys.path.insert(0, sys.argv[1]); import mask; input(); mask.say(mask.started({}))"
    program = f"cmd: {sys.executable} -S -E -c '{deaf}; time.sleep(600)' {PROGRAMS}"
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert judge.stdout is not None
    child = int(judge.stdout.readline().split()[-1])
    below = descendants(child)
    assert len(below) == 2, "the program and its guardian"
    assert len(os.listdir(tmp_path)) == 1
    judge.send_signal(number)
    judge.wait(10)
    judge.stdout.close()
    deadline = time.monotonic() + 10
    while (any(map(alive, [child, *below])) or os.listdir(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, [child, *below]))
    assert os.listdir(tmp_path) == []


def test_nothing_is_left_behind(bench: Bench) -> None:
    bench.implementation.close()
    for path in bench.scratch.glob("*-moved"):
        shutil.rmtree(path)
    assert os.listdir(bench.scratch) == []
    assert bench.judged("forbids-its-folder").conforms
    assert len(os.listdir(bench.scratch)) == 1
    bench.implementation.close()
    assert os.listdir(bench.scratch) == []


WATCHED = """
import os, sys
from mlx_assay.conformance.adapters.guardian import Guardian
from mlx_assay.conformance.process import bounds
bounds.leave_to(Guardian(sys.argv[1]).release)
lifeline, judge = os.pipe()
os.close(judge)
bounds._watch(lifeline)
"""


def test_a_folder_is_removed_before_its_group_is_ended(tmp_path: Path) -> None:
    """Where the judge's end is noticed before the system ends the process, as it is on macOS, and under load."""
    folder = tmp_path / "program"
    (folder / "inside").mkdir(parents=True)
    done = subprocess.run([sys.executable, "-c", WATCHED, str(folder)], start_new_session=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert not folder.exists()
