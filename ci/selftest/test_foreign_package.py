"""The example adapter for other packages' kernels: as a module, as an installed package, and as a program."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlx_assay.conformance.adapters import target as targets
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.record import Record
from mlx_assay.fixtures.case import Case

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "foreign_package"
CASES = [
    *(
        f"apply_token_bitmask/bfloat16/{rest}"
        for rest in (
            "bits/container?container=numpy&view=every-second&vocab=200&seed=0",
            "bits/container?container=torch&view=contiguous&vocab=200&seed=0",
            "error/bits-dtype?bits=float64&container=numpy&seed=0",
            "error/bits-dtype?bits=bfloat16&container=mx&seed=0",
            "error/no-elements?shape=3x0",
            "bit/only-allowed?vocab=127&word=2&seed=0",
        )
    ),
    "compiled_logit_softcap/float32/shape/rank?cap=30&rank=3&seed=0",
    "compiled_logit_softcap/int32/error/x-dtype?size=40&seed=0",
]
NAME = "foreign-kernels"
DISTRIBUTION = "mlx_assay_example_foreign-0.1.0.dist-info"
MODULES = ("xgrammar", "mlx_lm")


@pytest.fixture(scope="module", autouse=True)
def _packages() -> None:
    for name in MODULES:
        pytest.importorskip(name, reason=f"NOT RUN: the foreign kernels: no {name}")


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    """The three names of the same kernels; an installed package is what its metadata says on the path."""
    if request.param == "program":
        yield f"cmd: '{sys.executable}' '{FOLDER / 'adapter.py'}'"
        return
    shutil.copy(FOLDER / "foreign_kernels.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    if request.param == "entry point":
        project = (FOLDER / "pyproject.toml").read_text()
        points = project.partition("[project.entry-points.")[2].partition("\n[")[0]
        folder = tmp_path / DISTRIBUTION
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mlx-assay-example-foreign\nVersion: 0.1.0\n")
        group, _, lines = points.partition("]\n")
        (folder / "entry_points.txt").write_text(f"[{group.strip(chr(34))}]\n{lines.replace(chr(34), '')}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        targets.installed.cache_clear()
    yield NAME if request.param == "entry point" else "foreign_kernels"
    targets.installed.cache_clear()


@pytest.mark.parametrize("named", ["module", "entry point", "program"], indirect=True)
def test_foreign_kernels_conform(named: str) -> None:
    with Implementation(named, "host", 120.0) as adapter:
        assert set(adapter.operations) == {"apply_token_bitmask", "compiled_logit_softcap"}
        records: list[Record] = [judge(Case.parse(case), adapter) for case in CASES]
        assert [record.message for record in records if not record.conforms] == []
        if named == NAME:
            assert adapter.details["distribution"] == "mlx-assay-example-foreign 0.1.0"
