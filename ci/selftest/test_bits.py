"""`mlx-assay bits`: two files of tensors, whatever is in them."""

from __future__ import annotations

import json
import os
import pickle
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.diagnosis import pairing
from mlx_assay.conformance.diagnosis.container import read
from mlx_assay.conformance.judging.compare import compare
from mlx_assay.fixtures.codec import save

BF16 = np.dtype(ml_dtypes.bfloat16)
WANT = np.linspace(-3, 3, 96, dtype=np.float32).reshape(3, 32)


def off(array: np.ndarray, where: object = np.s_[:, 5], step: int = 1) -> np.ndarray:
    got = array.copy()
    bits = got.view(f"u{got.itemsize}")
    bits[where] += bits.dtype.type(step)
    return got


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["bits", *map(str, arguments)])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.float16, np.int8, np.uint32, np.int64, np.float64])
def test_the_same_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str], dtype: np.dtype) -> None:
    save(tmp_path / "a", {"x": WANT.astype(dtype)}, {})
    np.save(tmp_path / "b.npy", WANT.astype(dtype))
    code, out, _ = told(capsys, tmp_path / "a", tmp_path / "b.npy")
    assert (code, out) == (0, "same: 1 same-bits, 96 elements compared\n")


def test_what_differs_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "a", {"x": off(WANT), "same": WANT, "old": WANT}, {})
    save(tmp_path / "b", {"x": WANT, "same": WANT, "new": WANT}, {})
    code, out, _ = told(capsys, tmp_path / "a", tmp_path / "b", "--json", tmp_path / "bits.json")
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == "x: differs, float32 3x32, 3 of 96 places, worst 1 ULP"
    assert "  pattern (last-place): off by one in the last place" in out
    word = int(WANT.view(np.uint32)[0, 5])
    for side, bits in (("got", word + 1), ("want", word)):
        text = f"{bits:032b}"
        assert f"{side:<4} {text[0]} {text[1:9]} {text[9:]}  0x{bits:08x}" in out
    assert lines[-3:] == [
        f"old: in {tmp_path / 'a'} alone",
        f"new: in {tmp_path / 'b'} alone",
        "differs: 1 same-bits, 1 differs, 1 missing, 1 extra, 192 elements compared",
    ]
    document = json.loads((tmp_path / "bits.json").read_text())
    assert [pair["verdict"] for pair in document["pairs"]] == ["same-bits", "differs"]
    assert document["pairs"][1]["pattern"]["histogram"]
    assert (document["missing"], document["extra"], document["ulps"]) == (["old"], ["new"], None)


def test_a_distance_passes_only_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    got = off(WANT, step=2)
    np.save(tmp_path / "a.npy", got)
    np.save(tmp_path / "b.npy", WANT)
    assert told(capsys, tmp_path / "a.npy", tmp_path / "b.npy")[0] == 1
    assert told(capsys, tmp_path / "a.npy", tmp_path / "b.npy", "--ulps", 1)[0] == 1
    code, out, _ = told(capsys, tmp_path / "a.npy", tmp_path / "b.npy", "--ulps", 2)
    assert code == 0
    assert out.startswith("array: within-ulp 2 allowed on request, float32 3x32, 3 of 96 places, worst 2 ULP\n")
    assert out.endswith("same: 1 within-ulp, 96 elements compared, 2 ULP allowed on request\n")
    np.save(tmp_path / "a.npy", np.float32([0.0, np.nan, 1]))
    np.save(tmp_path / "b.npy", np.float32([-0.0, 1, 1]))
    assert told(capsys, tmp_path / "a.npy", tmp_path / "b.npy", "--ulps", 2**31 - 1)[0] == 1
    np.save(tmp_path / "a.npy", np.arange(3))
    np.save(tmp_path / "b.npy", np.arange(3) + 1)
    assert told(capsys, tmp_path / "a.npy", tmp_path / "b.npy", "--ulps", 5)[0] == 1


@pytest.mark.parametrize("ulps", [None, 1, 2])
def test_parts_are_put_together_as_a_whole(monkeypatch: pytest.MonkeyPatch, ulps: int | None) -> None:
    """Compared in parts of 7 elements, at once, and by the judge's own comparison."""
    got = off(off(WANT, np.s_[:, 3:30:5]), np.s_[1, 20:24], 2)
    whole = pairing.pair("x", "x", got, WANT, ulps)
    monkeypatch.setattr(pairing, "PART", 7)
    assert pairing.pair("x", "x", got, WANT, ulps) == whole
    found = compare(got, WANT, (), ulps)
    assert (whole.verdict, whole.count, whole.total) == (found.rung, found.count, found.total)
    assert (whole.worst_ulp, tuple(whole.places)) == (found.worst_ulp, found.places)


def test_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "a", {"x": WANT, "y": off(WANT), "a=b": WANT}, {})
    assert told(capsys, tmp_path / "a", tmp_path / "a", "--names", "x=y")[0] == 1
    assert told(capsys, tmp_path / "a", tmp_path / "a", "--names", "x", "y", "a=b")[0] == 0
    for name in ("z", "x=z", "=", ""):
        code, out, error = told(capsys, tmp_path / "a", tmp_path / "a", "--names", name)
        assert (code, out) == (2, "")
        assert error.startswith("mlx-assay: Expected a tensor of the ")
        assert "'a=b'" in error


def test_another_dtype_or_shape_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "a", {"x": WANT, "y": WANT}, {})
    save(tmp_path / "b", {"x": WANT.astype(BF16), "y": WANT.reshape(32, 3)}, {})
    code, out, _ = told(capsys, tmp_path / "a", tmp_path / "b")
    assert code == 1
    assert out.splitlines()[:2] == [
        "x: differs, float32 [3, 32] against bfloat16 [3, 32]",
        "y: differs, float32 [3, 32] against float32 [32, 3]",
    ]


def test_nothing_to_compare_is_no_agreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for tensors in ({}, {"x": np.zeros((0, 3), np.float32)}):
        save(tmp_path / "a", tensors, {})
        code, out, _ = told(capsys, tmp_path / "a", tmp_path / "a")
        assert code == 3
        assert out.startswith("nothing was compared: ")


def test_npy_of_other_byte_and_axis_orders(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.asfortranarray(WANT).astype(">f4"))
    np.save(tmp_path / "b.npy", WANT.astype(BF16))
    found = read(tmp_path / "a.npy")["array"]
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert (found == WANT).all()
    assert read(tmp_path / "b.npy")["array"].dtype == BF16


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("sprung",)


def header(text: str, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text.encode() + body


HOSTILE = {
    "empty": b"",
    "noise": bytes(range(256)),
    "huge header": struct.pack("<Q", 1 << 60) + b"{}",
    "deep header": struct.pack("<Q", 200_000) + b"[" * 200_000,
    "not an object": struct.pack("<Q", 8) + b'{"a": 1}',
    "npy of objects": header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", pickle.dumps([Trap()])),
    "npy that is called": header("__import__('os').mkdir('sprung')\n"),
    "npy of a vast shape": header("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1048576), }\n"),
    "npy of a negative shape": header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -4), }\n", b"\0" * 16),
    "npy that is short": header("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }\n", b"\0" * 16),
    "npy of complex": header("{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }\n", b"\0" * 16),
    "npy of records": header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }\n", b"\0" * 8),
    "npy of version 9": header("{}", version=b"\x09\x00"),
    "npy without end": b"\x93NUMPY",
    "npy of parentheses": header("(" * 60_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(HOSTILE[name])
    np.save(tmp_path / "b.npy", WANT)
    for given in (("a", "b.npy"), ("b.npy", "a")):
        code, out, error = told(capsys, *given)
        assert (code, out) == (2, "")
        assert error.startswith("mlx-assay: a: expected ")
        assert len(error) < 600
    assert not (tmp_path / "sprung").exists()


def test_names_of_a_hostile_file_steer_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "a", {"\x1b[2J\u202e": WANT}, {})
    save(tmp_path / "b", {"\x1b[2J\u202e": off(WANT), "other": WANT}, {})
    code, out, _ = told(capsys, tmp_path / "a", tmp_path / "b")
    assert code == 1
    assert "\x1b" not in out
    assert "\u202e" not in out


@pytest.mark.parametrize("given", [("nowhere", "b.npy"), (".", "b.npy"), ("/dev/zero", "b.npy"), ("b.npy", "pipe")])
def test_what_is_no_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, given: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("b.npy", WANT)
    os.mkfifo("pipe")
    code, out, error = told(capsys, *given)
    assert (code, out) == (2, "")
    assert "expected a " in error


@pytest.mark.parametrize("ulps", ["0", "-1", "1.5", "x", str(2**31), "9" * 5000])
def test_a_distance_is_a_whole_number(capsys: pytest.CaptureFixture[str], ulps: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["bits", "a", "b", "--ulps", ulps])
    assert "Expected a distance" in capsys.readouterr().err


def test_the_answer_is_never_written_over_what_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "b.npy", WANT)
    before = (tmp_path / "b.npy").read_bytes()
    code, _, error = told(capsys, tmp_path / "b.npy", tmp_path / "b.npy", "--json", tmp_path / "b.npy")
    assert code == 2
    assert "one of the two" in error
    assert (tmp_path / "b.npy").read_bytes() == before
