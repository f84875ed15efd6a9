"""Launch plans in the judge: right, stale and stray kernels, and a broken plan where an exception is expected."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case

PLANNED = '''
"""Kernels that are answered as plans."""

import json

from mlx_assay.conformance.adapters import plan
from mlx_assay.impl.kernels.text import metal_text


def apply_token_bitmask(logits, bits):
    if logits.size == 0:
        return plan.run(b"{}", {})
    shape = list(logits.shape)
    dtype = str(logits.dtype).rpartition(".")[2]
    mask = {
        "name": "mask",
        "source": SOURCE,
        "inputs": [
            {"is": "argument", "name": "logits", "argument": "logits", "shape": [logits.size]},
            {"is": "argument", "name": "bits", "argument": "bits"},
            {"is": "constant", "name": "vocab", "dtype": "uint32", "bits": [f"0x{shape[-1]:08x}"]},
        ],
        "outputs": [{"name": "out", "dtype": dtype, "shape": [logits.size]}],
        "template": [{"is": "dtype", "name": "T", "value": dtype}],
        "grid": [logits.size, 1, 1],
        "threadgroup": [64, 1, 1],
    }
    document = {"launches": [mask], "result": {"launch": 0, "output": "out", "shape": shape}}
    return plan.run(json.dumps(document).encode(), {"logits": logits, "bits": bits})


SOURCE = """
const uint i = thread_position_in_grid.x;
const uint id = i % vocab;
const bool allowed = id / 32 < uint(bits_shape[0]) && ((bits[id / 32] >> (id % 32)) & 1);
LAST
out[i] = logits[i] + T(allowed ? 0.0f : -INFINITY);
"""
'''

Judged = Callable[[str], Verdict]


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Judged]]:
    """Judges cases on an implementation whose kernels are plans; LAST in their text is replaced."""
    monkeypatch.chdir(tmp_path)
    made: list[Implementation] = []

    def with_line(line: str) -> Judged:
        name = f"planned_{len(made)}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(PLANNED).replace("LAST", line))
        made.append(Implementation(name, "host"))
        return lambda case: judge(Case.parse(case), made[-1]).verdict

    yield with_line
    for implementation in made:
        implementation.close()


BITS = "apply_token_bitmask/bfloat16/bits/container?container={}&view=every-second&vocab=200&seed=0"


def test_plan_is_judged_as_a_kernel_is(judged: Callable[[str], Judged]) -> None:
    verdict = judged("")
    assert {verdict(BITS.format(library)) for library in ("numpy", "torch", "mx")} <= {
        Verdict.SAME_BITS,
        Verdict.SAME_VALUE,
    }
    empty = "apply_token_bitmask/bfloat16/error/no-elements?shape=3x0"
    assert verdict(empty) is Verdict.ERROR, "a broken plan is no ValueError"
    stale = judged("if (id == vocab - 1) return;")
    assert stale(BITS.format("mx")) is Verdict.DIFFERS
    stray = judged("out[i + (1 << 20)] = 0;")
    assert stray(BITS.format("mx")) is Verdict.ERROR
