"""Captures among the fixtures: one a device class, kept as they are, never the host's own, and held to themselves."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from mlx_assay.conformance.capture.document import HOST
from mlx_assay.conformance.capture.reading import BadCapture
from mlx_assay.conformance.cli import main
from mlx_assay.conformance.regeneration import captures
from mlx_assay.conformance.regeneration.captures import adopt, filename, hold_captures


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture is a file that names its class; what makes a real one sound is held elsewhere."""
    monkeypatch.delenv("CI", raising=False)

    def read(path: Path) -> types.SimpleNamespace:
        text = path.read_text()
        if not text.startswith("class "):
            raise BadCapture(f"{path}: expected a capture")
        return types.SimpleNamespace(device_class=text.removeprefix("class "))

    monkeypatch.setattr(captures, "read", read)


def sent(folder: Path, text: str, name: str = "sent.json") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_capture_is_kept_under_its_class_and_holds(tmp_path: Path) -> None:
    kept = adopt(sent(tmp_path, "class Apple M3 Max (30 cores)"), tmp_path / "kept")
    assert kept.name == "apple-m3-max-30-cores.json" == filename("Apple M3 Max (30 cores)")
    assert kept.read_text() == "class Apple M3 Max (30 cores)"
    assert (hold_captures(tmp_path / "kept").state, hold_captures(tmp_path / "kept").cases) == ("holds", 1)
    with pytest.raises(ValueError, match="capture --compare"):
        adopt(tmp_path / "sent.json", tmp_path / "kept")


@pytest.mark.parametrize(("text", "message"), [(f"class {HOST}", "no golden of hardware"), ("junk", "expected a cap")])
def test_what_is_no_capture_of_a_device_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        adopt(sent(tmp_path, text), tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("name", "text"), [("m3.json", "junk"), ("m3.json", "class m4"), ("host.json", f"class {HOST}")]
)
def test_a_kept_capture_that_is_wrong_is_a_fault(name: str, text: str, tmp_path: Path) -> None:
    held = hold_captures(sent(tmp_path, text, name).parent)
    assert held.state == "fault"
    assert name in held.lines[0]


def test_the_command_refuses_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    assert main(["fixtures", "adopt", str(sent(tmp_path, "junk"))]) == 2
    assert "expected a capture" in capsys.readouterr().err
    monkeypatch.setenv("CI", "true")
    assert main(["fixtures", "adopt", str(sent(tmp_path, "class m3"))]) == 2
    assert "Expected no CI" in capsys.readouterr().err
