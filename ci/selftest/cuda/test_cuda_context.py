"""What ends a GPU's context is told with the kernel's name and the likely cause, and the next case runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from machine import NEEDS_GPU

from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.kind import kinds

pytestmark = NEEDS_GPU

PROGRAM = '''
import mlx.core as mx
from mlx_assay.impl.executors import choice, metal_kernel, use
kernel = metal_kernel("wanders", ["a"], ["out"], """{source}""")
with use("cuda"), choice.guarded():
    try:
        kernel(inputs=[mx.arange(64, dtype=mx.uint32)], output_shapes=[(64,)], output_dtypes=[mx.uint32],
               grid=(4, 1, 1), threadgroup=(4, 1, 1), init_value=0)
    except RuntimeError as error:
        print("told:", error, flush=True)
'''
PRIVATE = """
uchar own[16];
for (uint k = 0; k < 16; k++) own[k] = uchar(a[a[k] + 1]);
const thread uint* word = (const thread uint*)(own + a[thread_position_in_grid.x]);
out[thread_position_in_grid.x] = *word;
"""
STRUCT = """
struct Pair { uint x, y; };
const Pair pair = *(const device Pair*)((const device uchar*)a + a[thread_position_in_grid.x]);
out[thread_position_in_grid.x] = pair.x + pair.y;
"""
ATOMIC = """
atomic_fetch_add_explicit((device atomic_uint*)((device uchar*)out + a[1]), 1u, memory_order_relaxed);
"""


@pytest.mark.parametrize("source", [PRIVATE, STRUCT, ATOMIC], ids=["private", "struct", "atomic"])
def test_an_address_that_an_alignment_does_not_allow(source: str) -> None:
    command = (sys.executable, "-c", PROGRAM.format(source=source))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "told: [metal_kernel] kernel 'wanders' on the cuda executor" in done.stdout, done.stdout + done.stderr
    assert "misaligned address: the likely cause is" in done.stdout


@pytest.mark.parametrize("traced", [False, True])
def test_a_case_that_ends_the_gpus_context_is_an_error_and_the_next_one_runs(
    traced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "wandering_trace" if traced else "wandering"
    (tmp_path / f"{name}.py").write_text(
        "import mlx.core as mx\nfrom mlx_assay.impl.executors import metal_kernel\n"
        'kernel = metal_kernel("wanders", ["a"], ["out"], "out[0] = uint(float(a[1ul << 40]));")\n'
        f"{'@mx.compile' if traced else ''}\n"
        "def normalized_argmax(logits):\n    return kernel(inputs=[logits], output_shapes=[logits.shape[:-1]], "
        "output_dtypes=[mx.uint32], grid=(1, 1, 1), threadgroup=(1, 1, 1))[0]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with Implementation(name, "cuda", 60) as implementation:
        cases = list(kinds()["normalized_argmax", "shape/rows"].cases("quick"))[:2]
        records = [judge(case, implementation) for case in cases]
    for record in records:
        assert record.verdict is Verdict.ERROR, record.message
        assert "kernel 'wanders' on the cuda executor" in record.message
