"""The suite's own files: sealed before an implementation is let in, and loaded before it could write to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlx_assay.conformance.options import Options, output
from mlx_assay.conformance.process import seal as seals
from mlx_assay.conformance.session import Session


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite of one file, sealed; the real seal stands again afterwards."""
    (tmp_path / "compare.py").write_text("right")
    monkeypatch.setattr(seals, "_folders", lambda: [tmp_path])
    seals.seal.cache_clear()
    seals.seal()
    yield tmp_path
    seals.seal.cache_clear()


def test_an_untouched_suite_is_not_altered(folder: Path) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "compare.pyc").write_bytes(b"1")
    assert seals.altered() == []


def test_files_that_change_come_or_go_are_named(folder: Path) -> None:
    (folder / "compare.py").write_text("wrong")
    (folder / "sitecustomize.py").write_text("")
    assert seals.altered() == [str(folder / "compare.py"), str(folder / "sitecustomize.py")]
    (folder / "compare.py").unlink()
    assert str(folder / "compare.py") in seals.altered()


def test_a_run_in_which_the_suite_changed_is_incomplete(folder: Path) -> None:
    session = Session(Options())
    session.declare([])
    (folder / "compare.py").write_text("wrong")
    report = session.finish()
    assert report.altered == [str(folder / "compare.py")]
    assert (report.verdict, report.exit_code) == ("incomplete", 3)


LOADED = """
import sys, pkgutil
from mlx_assay.conformance.process.seal import preload, seal
import mlx_assay.conformance.judging, mlx_assay.conformance.contracts, mlx_assay.fixtures, mlx_assay.oracles
preload()
packages = (mlx_assay.conformance.judging, mlx_assay.conformance.contracts, mlx_assay.fixtures, mlx_assay.oracles)
names = [m.name for p in packages for m in pkgutil.iter_modules(p.__path__, p.__name__ + ".")]
print(len(names), [name for name in names if name not in sys.modules])
print(len(seal()))
"""


def test_what_judges_is_loaded_before_an_implementation_starts() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    count, missing = first.split(" ", 1)
    assert int(count) > 40
    assert missing == "[]"
    assert int(second) > 100


def test_outputs_are_regular_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/null")
    for path in (
        tmp_path / "pipe",
        tmp_path / "device",
        tmp_path,
        "",
        "/proc/report.json",
        tmp_path / "none" / "a.json",
    ):
        with pytest.raises(ValueError, match="Expected a"):
            output(str(path))
    assert output(str(tmp_path / "report.json")) == tmp_path / "report.json"


def test_a_report_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "target.json")
    Session(Options(report=str(tmp_path / "link.json"))).finish()
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "target.json").read_bytes().startswith(b"{")
