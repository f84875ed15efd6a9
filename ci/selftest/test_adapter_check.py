"""mlx-assay adapter-check: each way to be wrong is told, with its mend; nothing is told of a program that is right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlx_assay.conformance import cli
from mlx_assay.conformance.adapters import bits, greeting, manners
from mlx_assay.conformance.adapters.examination import Examiner, Remark
from mlx_assay.fixtures.encoding import FORMATS

PROGRAMS = Path(__file__).parent / "programs"
PYTHON = (sys.executable, "-S", "-E")
LIMIT = 5.0
SHORT_LIMIT = 1.0

PRELUDE = f"import json, os, sys, time; sys.path.insert(0, {str(PROGRAMS)!r}); import mask\n"
SWAP = """
def swap(path, dtype, one, other):
    d, s, b = mask.read(path)["out"]
    parts = [b[i : i + len(one)] for i in range(0, len(b), len(one))] if d == dtype else [b]
    mask.write(path, {"out": (d, s, b"".join(other if part == one else part for part in parts))})
"""

START = """
def start(executor):
    return {{**mask.started(executor), {changed}}}
mask.main(start=start)
"""
ANSWER = """
count = [0]
def answer(order):
    count[0] += 1
    told = mask.answered(order)
    {deed}
    return told
mask.main(answer)
"""
LOOP = """
for line in sys.stdin:
    order = json.loads(line)
    {deed}
    if order["cmd"] == "start":
        mask.say(mask.started({{}}))
    elif order["cmd"] == "run":
        mask.say(mask.answered(order))
"""


def written(body: str) -> str:
    """Code that replaces the output's one tensor."""
    return f"d, s, b = mask.read(order['out'])['out']; mask.write(order['out'], {{'out': {body}}})"


def spoiled(dtype: str, one: str, other: str) -> str:
    """Code that gives every element of one encoding another one, as a reader of floats may."""
    return answer(f"swap(order['out'], {dtype!r}, bytes.fromhex({one!r})[::-1], bytes.fromhex({other!r})[::-1])")


def start(changed: str) -> str:
    return START.format(changed=changed)


def answer(deed: str) -> str:
    return ANSWER.format(deed=deed)


def loop(deed: str) -> str:
    return LOOP.format(deed=deed)


STEPS: dict[str, Callable[[Examiner], None]] = {
    "start": greeting.greet,
    "answers": manners.answers,
    "operation": manners.strange_operation,
    "order": manners.strange_order,
    "echo": bits.echo,
    "stop": manners.farewell,
    "again": manners.again,
}

WRONG: dict[str, tuple[str, str, str, str]] = {
    # name: step, program, weight, words
    "no protocol": ("start", "print('{}')", "fault", "no field `protocol`"),
    "protocol 2": ("start", start("'protocol': 2"), "fault", "the field `protocol` of the answer to `start` is wrong"),
    "name a number": ("start", start("'name': 7"), "fault", "the field `name` of the answer to `start` is wrong"),
    "version missing": ("start", "print('{\"protocol\": 1}')", "fault", "no field `version`"),
    "version empty": ("start", start("'version': ''"), "advice", "the field `version` is empty"),
    "long device": ("start", start("'device': 'x' * 300"), "fault", "the field `device`"),
    "a field too many": (
        "start",
        start("'licence': 'MIT'"),
        "fault",
        "a field 'licence' that the protocol does not know",
    ),
    "no operations": ("start", start("'operations': []"), "fault", "the field `operations`"),
    "misspelt": ("start", start("'operations': ['logit_sofcap']"), "advice", "no contract is called 'logit_sofcap'"),
    "nothing known": ("start", start("'operations': ['sort']"), "fault", "none of the operations has a contract"),
    "named twice": ("start", start("'operations': 2 * ['trellis_row', 'trellis_fold']"), "advice", "is named twice"),
    "prose first": ("start", "print('loading'); mask.main()", "fault", "the first line is no JSON: 'loading'"),
    "an array": ("start", "print('[1]')", "fault", "is no JSON object"),
    "prose behind": (
        "start",
        "mask.say(mask.started({})); print('ready', flush=True); time.sleep(9)",
        "fault",
        "'ready'",
    ),
    "silent": ("start", "time.sleep(9)", "fault", "No answer within the limit"),
    "unflushed": ("start", "print(json.dumps(mask.started({}))); time.sleep(9)", "fault", "No answer within the limit"),
    "dies": ("start", "sys.exit('no such device')", "fault", "exit code 1; on standard error:\nno such device"),
    "slow": ("start", "time.sleep(0.5); mask.main()", "advice", "the answer to `start` took 0."),
    "own count": (
        "answers",
        answer("told['seq'] = count[0]"),
        "fault",
        "asked with seq 7, apply_token_bitmask was answered",
    ),
    "no file": ("answers", answer("os.unlink(order['out'])"), "fault", "but there is none"),
    "wrong place": ("answers", answer("os.rename(order['out'], order['out'] + '.x')"), "fault", "but there is none"),
    "keeps files": (
        "answers",
        answer("open(order['out'] + '.log', 'w').close()"),
        "advice",
        "each call leaves files in its folder: out-",
    ),
    "keeps a cache": ("answers", answer("open(os.path.dirname(order['out']) + '/cache', 'w').close()"), "ok", ""),
    "eats its input": ("answers", answer("open(order['in'], 'ab').write(b'x')"), "advice", "the file `in` was changed"),
    "no safetensors": ("answers", answer("open(order['out'], 'wb').write(b'x')"), "fault", "8 bytes of header length"),
    "counts calls": (
        "answers",
        answer(written("(d, s, bytes([b[0] ^ count[0]]) + b[1:])")),
        "fault",
        "gave other bits",
    ),
    "unsupported": ("answers", answer("told = {'seq': order['seq'], 'unsupported': 'no GPU'}"), "advice", "no GPU"),
    "chatty": ("answers", answer("print('done')"), "fault", "'done'"),
    "says yes": ("operation", answer("told = {'seq': order['seq'], 'ok': True}"), "fault", "it answered `ok`"),
    "says error": (
        "operation",
        answer("told = {'seq': order['seq'], 'error': 'what?'}"),
        "advice",
        "it answered `error`",
    ),
    "dies of it": ("operation", answer("assert 'ok' in told, told"), "fault", "AssertionError"),
    "answers all": (
        "order",
        loop("order['cmd'] == 'no-such-order' and mask.say({'seq': 0})"),
        "fault",
        "it cannot know",
    ),
    "no echo": ("echo", start("'operations': ['apply_token_bitmask']"), "advice", "no operation `echo`"),
    "NaN lost": ("echo", spoiled("BF16", "7f81", "7fc1"), "fault", "0x7f81, a NaN, came back as 0x7fc1 (1 of 65536"),
    "-0 lost": ("echo", spoiled("F16", "8000", "0000"), "fault", "0x8000, -0, came back as 0x0000"),
    "flushed": ("echo", spoiled("BF16", "0001", "0000"), "fault", "0x0001, a denormal, came back as 0x0000"),
    "flat": ("echo", answer(written("(d, [1, *s], b)")), "fault", "came back as bfloat16 [1, 65536]"),
    "wider": ("echo", answer(written("('F32', [0], b'')")), "fault", "came back as float32 [0]"),
    "stays": ("stop", "mask.main(); time.sleep(9)", "fault", "after `stop`"),
    "ignores stop": ("stop", loop("0"), "ok", ""),
    "ignores the end": (
        "stop",
        loop("order['cmd'] == 'stop' and os._exit(0)") + "time.sleep(9)",
        "fault",
        "standard input had ended",
    ),
    "status 3": ("stop", loop("order['cmd'] == 'stop' and os._exit(3)"), "advice", "status 3 after `stop`"),
}
SLOW_START = 0.4


def examined(step: str, code: str, tmp_path: Path, *, more: str = "") -> list[Remark]:
    script = tmp_path / "program.py"
    script.write_text(PRELUDE + SWAP + more + code)
    examiner = Examiner((*PYTHON, str(script)), {}, SHORT_LIMIT if "sleep(9)" in code else LIMIT)
    if step != "start":
        examiner.take("start", "", greeting.greet, needed=True)
    examiner.remarks.clear()
    examiner.take(step, "", STEPS[step], needed=True)
    return examiner.remarks


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greeting, "SLOW_SECONDS", SLOW_START)
    step, code, weight, words = WRONG[name]
    remarks = examined(step, code, tmp_path)
    if weight == "ok":
        assert remarks == []
        return
    assert [remark for remark in remarks if remark.weight == weight and words in remark.what], remarks
    assert all(remark.mend for remark in remarks)


def test_a_lock_between_programs_is_told(tmp_path: Path) -> None:
    lock = f"os.open({str(tmp_path / 'lock')!r}, os.O_CREAT | os.O_EXCL)\n"
    (remark,) = examined("again", "mask.main()", tmp_path, more=f"import atexit\n{lock}")[-1:]
    assert remark.weight == "fault"
    assert "exit code 1" in remark.what


@pytest.mark.parametrize(("deed", "told"), [("time.sleep(0.06)", ""), ("time.sleep(9)", "no answer within the limit")])
def test_the_limit_is_for_an_answer_and_not_for_a_case(
    deed: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 calls of the case take longer together than one of them may."""
    case = manners.plain_case("apply_token_bitmask", "bfloat16")
    assert case is not None
    monkeypatch.setattr(bits, "_chosen", lambda operation: [case[0]])
    script = tmp_path / "program.py"
    script.write_text(PRELUDE + answer(deed))
    examiner = Examiner((*PYTHON, str(script)), {}, 3.0)
    examiner.take("cases", "", bits.cases, needed=True)
    assert [told in remark.what.lower() for remark in examiner.remarks] == ([True] if told else [])


def test_a_program_that_npm_has_put_aside_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "node_modules" / ".bin" / "bun-of-npm"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    for verb in (["adapter-check"], ["run", "scatter_row/*", "--implementation"]):
        assert cli.main([*verb, "cmd: bun-of-npm x"]) == 2
        assert (
            "node_modules/.bin/bun-of-npm is one, name it so or put its folder on the PATH" in capsys.readouterr().err
        )


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_told_of_a_program_that_is_right(step: str, tmp_path: Path) -> None:
    assert examined(step, "mask.main()", tmp_path) == []


def test_echo_sends_every_encoding_of_sixteen_bits() -> None:
    arrays = list(bits.echoed())
    for name in ("bfloat16", "float16"):
        (whole,) = (array for array in arrays if str(array.dtype) == name)
        assert len(np.unique(whole.view(np.uint16))) == 1 << 16
    assert {str(array.dtype) for array in arrays} >= {*FORMATS, "int32", "uint8"}
    assert () in {array.shape for array in arrays}
    assert any(0 in array.shape for array in arrays)


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", "adapter-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_verb_on_a_program_that_is_right() -> None:
    done = check(f"cmd: {' '.join(PYTHON)} {PROGRAMS / 'mask.py'}", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "urn:mlx-assay:adapter-check:1"
    assert found["verdict"] == "conforms"
    assert found["remarks"] == []
    assert [step["state"] for step in found["steps"]] == 8 * ["ok"]
    assert found["started"]["name"] == "mask"


def test_the_verb_on_a_program_that_is_wrong(tmp_path: Path) -> None:
    fault = tmp_path / "fault"
    fault.write_text("swapped-bytes")
    done = check(f"cmd: {' '.join(PYTHON)} {PROGRAMS / 'faults.py'} {fault}")
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "FAULT   cases: a case of each operation and dtype, judged" in lines
    assert any(re.match(r"        \d+\. differs: apply_token_bitmask\[", line) for line in lines)
    assert "mlx-assay replay 'apply_token_bitmask/" in done.stdout
    assert lines[-1].startswith("differs: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bun adapter.ts", "Expected a program, as 'cmd: bun adapter.ts'"),
        ("cmd:", "Expected a command line behind 'cmd:'"),
        ("cmd: no-such-program-anywhere", "Expected a program on the PATH"),
    ],
)
def test_what_names_no_program_is_a_usage_error(text: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["adapter-check", text]) == 2
    assert words in capsys.readouterr().err


def test_a_program_that_does_not_start_is_a_fault_and_the_rest_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["adapter-check", f"cmd: {' '.join(PYTHON)} -c 'print(\"\\x1b[2J\")'"]) == 1
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert printed.count("not run ") == 7
