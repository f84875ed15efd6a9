"""Judging under the checker: faults of kernels whose bits are right, in every kind of implementation."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlx_assay.conformance import cli
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.report import decode
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case

MASK = '''
import math
import threading

import mlx.core as mx
import numpy as np


def words_of(bits):
    host = np.array(bits) if isinstance(bits, mx.array) else np.asarray(bits)
    if host.dtype != np.int32:
        raise TypeError("int32 words")
    return mx.array(np.ascontiguousarray(host))


def launched(logits, words):
    (out,) = KERNEL(
        inputs=[logits.reshape(-1), words, mx.array(logits.shape[-1], mx.uint32)],
        template=[("T", logits.dtype)],
        grid=(max(64, -(-logits.size // 64) * 64), 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(logits.size,)],
        output_dtypes=[logits.dtype],
    )
    return out.reshape(logits.shape)


def apply_token_bitmask(logits, bits):
    CALL


KERNEL = mx.fast.metal_kernel(
    name="mask",
    input_names=["logits", "bits", "vocab"],
    output_names=["out"],
    source="""
        threadgroup T held[64];
        const uint i = thread_position_in_grid.x;
        const uint lane = thread_position_in_threadgroup.x;
        const bool inside = i < uint(logits_shape[0]);
        held[lane] = inside ? logits[i] : T(0);
        BARRIER
        const T other = held[63 - lane];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        held[63 - lane] = other;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (!inside) return;
        const uint id = i % vocab;
        const bool allowed = id / 32 < uint(bits_shape[0]) && ((bits[id / 32] >> (id % 32)) & 1);
        out[i] = held[lane] + T(allowed ? 0.0f : -INFINITY);
        LAST
    """,
)
'''
RIGHT = "threadgroup_barrier(mem_flags::mem_threadgroup);"
WRONG = "threadgroup_barrier(mem_flags::mem_device);"
PLAIN = "return launched(logits, words_of(bits))"
THREAD = """
    found = []

    def work():
        found.append(launched(logits, words_of(bits)))
        mx.eval(found)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]
"""
FIRST = """
    if isinstance(bits, np.ndarray) and bits.dtype != np.int32:
        launched(logits, mx.array([0], mx.int32))
        raise TypeError("int32 words")
    return launched(logits, words_of(bits))
"""
PLAN = """
    from mlx_assay.conformance.adapters import plan

    dtype = str(logits.dtype).rpartition(".")[2]
    made = {
        "name": "planned",
        "source": BACKWARDS[::-1],
        "inputs": [{"is": "argument", "name": "x", "argument": "logits", "shape": [logits.size]}],
        "outputs": [{"name": "out", "dtype": dtype, "shape": [logits.size]}],
        "grid": [logits.size, 1, 1],
        "threadgroup": [32, 1, 1],
    }
    import json
    result = {"launch": 0, "output": "out", "shape": list(logits.shape)}
    return plan.run(json.dumps({"launches": [made], "result": result}).encode(), {"logits": logits})
"""
CASE = "apply_token_bitmask/bfloat16/bits/container?container=numpy&view=every-second&vocab=200&seed=0"
BACKWARDS = ";]i[x = ]i[tuo\n;]1 + i[x = ]i[tuo\n;x.dirg_ni_noitisop_daerht = i tniu tsnoc"
"""A kernel's text as it stands in no file that this process reads, like that of a program in another language."""

REFUSED = "apply_token_bitmask/bfloat16/error/bits-dtype?bits=float32&container=numpy&seed=0"
Make = Callable[..., Callable[[str], Record]]


def module(folder: Path, name: str, barrier: str, call: str, last: str) -> None:
    body = textwrap.indent(textwrap.dedent(call), "    ").strip()
    text = MASK.replace("BARRIER", barrier).replace("LAST", last).replace("CALL", body)
    (folder / f"{name}.py").write_text(text)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Judges cases on a mask of which a barrier, the call and the last line are the test's."""
    monkeypatch.chdir(tmp_path)
    made: list[Implementation] = []

    def making(
        barrier: str = RIGHT, call: str = PLAIN, last: str = "", *, checked: bool = True, limit: float = 60.0
    ) -> Callable[[str], Record]:
        name = f"mask_{len(made)}"
        module(tmp_path, name, barrier, call, last)
        own = Implementation(name, "host", limit)
        own.checked = checked
        made.append(own)
        return lambda case: judge(Case.parse(case), own)

    yield making
    for implementation in made:
        implementation.close()


def test_sound_kernel_conforms_under_the_checker(make: Make) -> None:
    record = make()(CASE)
    assert record.conforms, record.message
    assert record.launches == 2 * record.subcases > 0
    assert record.replay.endswith("--checked")
    assert make(checked=False)(CASE).launches == 0


@pytest.mark.parametrize("call", [PLAIN, THREAD], ids=["plain", "thread"])
def test_fault_behind_right_bits_is_an_error(make: Make, call: str) -> None:
    """Told by kind, place in the file, array and index, in the words of `mlx-assay check`."""
    unchecked = make(WRONG, call, checked=False)(CASE)
    assert unchecked.conforms, unchecked.message
    record = make(WRONG, call)(CASE)
    assert record.verdict is Verdict.ERROR
    line = MASK.split("BARRIER")[0].count("\n") + 2 + (call.strip().count("\n") if call is THREAD else 0)
    assert f"the checker: mask_1.py:{line}:" in record.message, record.message
    assert "[barrier-flags]" in record.message
    assert "read of held[" in record.message
    assert record.launches > 0


def test_fault_outweighs_an_exception_that_is_expected(make: Make) -> None:
    assert make(RIGHT, FIRST)(REFUSED).conforms
    record = make(WRONG, FIRST)(REFUSED)
    assert record.verdict is Verdict.ERROR
    assert "[barrier-flags]" in record.message


def test_fault_of_one_case_is_not_told_of_the_next(make: Make) -> None:
    judged = make(last="if (vocab == 200) out[i + vocab] = 0;")
    assert "[out-of-bounds]" in judged(CASE).message
    after = judged("apply_token_bitmask/bfloat16/bit/only-allowed?vocab=96&word=0&seed=0")
    assert after.conforms, after.message


def test_fault_of_a_planned_kernel_is_placed_in_its_text(make: Make) -> None:
    record = make(call=PLAN.replace("BACKWARDS", repr(BACKWARDS)))(CASE)
    assert record.verdict is Verdict.ERROR
    assert "the checker: <kernel planned source>:2:" in record.message, record.message
    assert "x[" in record.message
    assert "[out-of-bounds]" in record.message


def test_kernel_that_hangs_is_found_before_the_limit(make: Make) -> None:
    record = make(last="while (logits[0] == logits[0] || i < 5) { out[i] = T(i); }", limit=6.0)(CASE)
    assert record.verdict is Verdict.ERROR
    assert "[hang]" in record.message


def test_kernel_that_does_not_compile_is_told_as_ever(make: Make) -> None:
    record = make(last="nowhere;")(CASE)
    assert record.verdict is Verdict.ERROR
    assert "undeclared identifier 'nowhere'" in record.message
    assert "the checker" not in record.message


def test_run_checked_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verb: exit code, report, closing line, and the command that replays, which fails as the run does."""
    monkeypatch.chdir(tmp_path)
    module(tmp_path, "wrong_flags", WRONG, PLAIN, "")
    query = [CASE, "--implementation", "wrong_flags", "--executor", "host"]
    assert cli.main(["run", *query, "-n", "0", "--report", "plain.json"]) == 0
    assert cli.main(["run", *query, "-n", "0", "--report", "checked.json", "--checked"]) == 1
    report = decode(Path("checked.json").read_bytes())
    assert report.executor.details["checked"] == "yes"
    assert report.cases[0].verdict is Verdict.ERROR
    assert f"checked: {report.cases[0].launches} launches of kernels in 1 case" in capsys.readouterr().out
    assert "checked" not in json.loads(Path("plain.json").read_text())["executor"]["details"]
    assert cli.main(["replay", *query, "--checked"]) == 1
    assert cli.main(["replay", *query]) == 0


def test_run_checked_needs_the_host_and_a_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no_kernel.py").write_text("from mlx_assay.impl.kernels.softcap import logit_softcap\n")
    for verb in (["run", CASE], ["replay", CASE]):
        assert cli.main([*verb, "--executor", "metal", "--checked"]) == 2
        assert "Expected the executor 'host' for the checker but got 'metal'" in capsys.readouterr().err
    case = "logit_softcap/bfloat16/shape/rank?cap=0x1.5555555555555p-2&rank=3&seed=0"
    query = ["run", case, "--implementation", "no_kernel", "-n", "0"]
    assert cli.main(query) == 0
    assert cli.main([*query, "--checked"]) == 3
    assert "no kernel was launched under the checker" in capsys.readouterr().out
