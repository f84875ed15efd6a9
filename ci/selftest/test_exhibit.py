"""The tensors of differing cases: what a file holds, its bounds, its name, and whose files are removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlx_assay.conformance.diagnosis import exhibit as exhibits
from mlx_assay.conformance.diagnosis import keeper as keepers
from mlx_assay.conformance.diagnosis.exhibit import Exhibit
from mlx_assay.conformance.diagnosis.keeper import Keeper, Kept, emptied, file_name, folder_of
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.reporting.report import Report, decode
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.codec import decode as tensors_of
from mlx_assay.fixtures.codec import load, save
from mlx_assay.fixtures.tensor import Tensor

FOLDER = Path(__file__).parent
CASE = "normalized_argmax/float32/own/kind?rows=3&seed=0"


def exhibit(rows: int = 4, columns: int = 8, wrong: tuple[int, ...] = (1,), ids: bool = False) -> Exhibit:
    base = np.arange(rows * columns * 2, dtype=np.float32).reshape(rows, columns * 2)
    tensor = Tensor(base, (("slice", ((None, None, None), (None, None, 2))),))
    want = np.arange(rows, dtype=np.uint32) if ids else tensor.array * 2
    got = want.copy()
    got[list(wrong)] += 1
    at = np.flatnonzero(got.reshape(-1) != want.reshape(-1))
    subcase = Subcase("part", {"x": tensor, "cap": 0.1, "form": None})
    wants = [("stock 1.0", want), ("other 2", want), ("other 2", want)]
    return Exhibit(subcase, [got, got + 1], wants, at, {"case": CASE})


def test_a_file_holds_inputs_outputs_and_every_expected_one() -> None:
    found = tensors_of(exhibit().document())
    assert found.metadata == {
        "mlx-assay": "tensors:1",
        "case": CASE,
        "argument.cap": "0x1.999999999999ap-4",
        "argument.form": "None",
        "steps.x": '[["slice", [[null, null, null], [null, null, 2]]]]',
    }
    assert {name: array.shape for name, array in found.tensors.items()} == {
        "input.x": (4, 8),
        "base.x": (4, 16),
        "got.first": (4, 8),
        "got.second": (4, 8),
        "want.stock 1.0": (4, 8),
        "want.other 2": (4, 8),
        "want.other 2#2": (4, 8),
    }
    assert (found.tensors["base.x"][:, ::2] == found.tensors["input.x"]).all()
    assert (found.tensors["got.second"] - found.tensors["got.first"] == 1).all()


@pytest.mark.parametrize("ids", [False, True])
def test_of_more_than_a_file_takes_the_rows_that_differ_are_kept(monkeypatch: pytest.MonkeyPatch, ids: bool) -> None:
    monkeypatch.setattr(exhibits, "FILE_LIMIT", 2000)
    shown = exhibit(rows=64, columns=16, wrong=(3, 20, 41), ids=ids)
    found = tensors_of(shown.document())
    rows = found.tensors["rows"]
    assert rows.tolist() == [3, 20, 41][: rows.size]
    assert rows.size == 3
    assert (found.tensors["input.x"] == shown.tensors()["input.x"][rows]).all()
    got = shown.tensors()["got.first"][rows]
    assert (found.tensors["got.first"].reshape(got.shape) == got).all()
    assert "base.x" not in found.tensors
    assert found.metadata["kept"] == "rows 3 of 3 that differ, numbered in 'rows', of 64; left out: base.x"
    assert sum(array.nbytes for array in found.tensors.values()) <= 2000


def test_one_row_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhibits, "FILE_LIMIT", 100)
    with pytest.raises(ValueError, match="one row takes 392 bytes, more than 100"):
        exhibit(rows=4, columns=16).document()


def test_names_are_safe_and_of_one_case() -> None:
    ids = [CASE, CASE.replace("?", "_"), f"{CASE}0", "../../etc/passwd", "a" * 5000, "", "x/\n\x1b[2J", CASE.upper()]
    names = [file_name(case_id) for case_id in ids]
    assert len({name.lower() for name in names}) == len(ids)
    for name in names:
        assert Path(name).name == name
        assert name.isascii()
        assert name.isprintable()
        assert len(name) < 200
        assert not name.startswith(".")


def test_the_folder_is_never_the_report() -> None:
    assert folder_of(Path("a/run.json")) == Path("a/run.tensors")
    assert folder_of(Path("a/run")) == Path("a/run.tensors")
    assert folder_of(Path("a/run.tensors")) == Path("a/run.tensors.tensors")


def test_a_run_keeps_so_many_files_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepers, "MOST_FILES", 3)
    keeper = Keeper(tmp_path / "run.json")
    names = [keeper.keep(f"{CASE}{number}", exhibit()).name for number in range(5)]
    assert [bool(name) for name in names] == [True, True, True, False, False]
    assert sorted(path.name for path in (tmp_path / "run.tensors").iterdir()) == sorted(
        Path(name).name for name in names[:3]
    )
    monkeypatch.setattr(keepers, "MOST_FILES", 10)
    monkeypatch.setattr(keepers, "MOST_BYTES", sum((tmp_path / name).stat().st_size for name in names[:3]) + 10)
    assert keeper.keep(f"{CASE}9", exhibit()) == Kept()


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    report, folder = tmp_path / "run.json", tmp_path / "run.tensors"
    keeper = Keeper(report)
    ours = tmp_path / keeper.keep(CASE, exhibit()).name
    foreign = folder / "weights.safetensors"
    save(foreign, {"w": np.zeros(3, np.float32)}, {"mlx-assay": "other"})
    (folder / "notes.txt").write_text("mine")
    (folder / "broken.safetensors").write_bytes(b"\xff" * 40)
    outside = tmp_path / "outside.safetensors"
    outside.write_bytes(ours.read_bytes())
    (folder / "link.safetensors").symlink_to(outside)
    emptied(report)
    assert sorted(path.name for path in folder.iterdir()) == [
        "broken.safetensors",
        "link.safetensors",
        "notes.txt",
        "weights.safetensors",
    ]
    assert outside.exists()
    assert not ours.exists()
    for path in folder.iterdir():
        path.unlink()
    keeper.keep(CASE, exhibit())
    emptied(report)
    assert not folder.exists()


def test_a_link_in_the_folders_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run.tensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"run\.tensors"):
        Keeper(tmp_path / "run.json").keep(CASE, exhibit())
    emptied(tmp_path / "run.json")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("one row takes 9 bytes")])
def test_a_file_that_cannot_be_written_costs_no_verdict(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.syspath_prepend(FOLDER)

    def keep(case_id: str, exhibit: Exhibit) -> Kept:
        raise error

    with Implementation("bad.zeros", "host", 30.0) as implementation:
        record = judge(Case.parse("apply_token_bitmask/bfloat16/logits/all-nan?vocab=33&seed=0"), implementation,
                       keep=keep)  # fmt: skip
    assert record.difference is not None
    assert record.tensors == ""
    assert f"tensors are not kept: {error}" in record.message


def run(report: Path, implementation: str, workers: int) -> Report:
    """A run of its own process, with its report."""
    subprocess.run(
        [*(sys.executable, "-m", "mlx_assay.conformance.cli", "run", "logit_softcap/bfloat16/values/nan"),
         *("--implementation", implementation, "--executor", "host", "--report", str(report)),
         *("-n", str(workers), "--without", "stock-metal")],
        env={**os.environ, "PYTHONPATH": str(FOLDER)}, capture_output=True, check=False,
    )  # fmt: skip
    return decode(report.read_bytes())


def test_a_run_keeps_the_tensors_of_what_differs(tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    old = tmp_path / Keeper(report).keep(CASE, exhibit()).name
    document = run(report, "bad.zeros", 2)
    assert not old.exists()
    assert document.totals.differs == len(document.cases) > 0
    for record in document.cases:
        found = load(tmp_path / record.tensors)
        assert found.metadata["case"] == record.id
        assert found.metadata["implementation"] == "bad.zeros"
        assert not np.asarray(found.tensors["got.first"], np.float32).any()
    assert run(report, "bad.stock", 0).totals.differs == 0
    assert not (tmp_path / "run.tensors").exists()
