"""A process whose GPU does nothing more, for arguments neither, is replaced after its case; without a GPU to lose."""

from pathlib import Path

import pytest

from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.kind import kinds

LOSING = """
import os
from mlx_assay.conformance.process.material import Material
from mlx_assay.impl.executors.cuda import device

calls = 0

def gone(*_):
    raise RuntimeError("cudaMallocManaged failed")

def normalized_argmax(logits):
    global calls
    calls += 1
    device.lose()
    Material.arguments = gone
    raise RuntimeError(f"kernel 'wanders', call {calls} of its process")
"""


def test_each_case_has_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "losing.py").write_text(LOSING)
    monkeypatch.syspath_prepend(tmp_path)
    cases = list(kinds()["normalized_argmax", "shape/rows"].cases("quick"))[:2]
    with Implementation("losing", "host", 60) as implementation:
        records = [judge(case, implementation) for case in cases]
    for record in records:
        assert record.verdict is Verdict.ERROR, record.message
        assert "kernel 'wanders', call 1 of its process" in record.message
