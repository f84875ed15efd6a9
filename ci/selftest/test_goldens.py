"""Golden files: one layout, read by every library, and damage, edits and orphans named with nothing overwritten."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
import safetensors
import torch
from safetensors.torch import load_file

from mlx_assay.conformance.regeneration.holding import hold, hold_folder, hold_real
from mlx_assay.conformance.regeneration.regen import regenerate
from mlx_assay.conformance.verbs.fixtures import check
from mlx_assay.fixtures import recorded
from mlx_assay.fixtures.encoding import FLOATS, bits_of, is_nan
from mlx_assay.fixtures.goldens import catalogue, store, streams
from mlx_assay.fixtures.goldens.catalogue import groups
from mlx_assay.fixtures.goldens.document import read, written
from mlx_assay.fixtures.goldens.group import EXPECTED, canonical, digest
from mlx_assay.fixtures.goldens.store import FOLDER, Damage

SMALL = "trellis_code_values"
FILES = sorted(path for path in store.files(FOLDER) if path.suffix == store.TENSORS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of goldens with one group alone."""
    folder = tmp_path / "fixtures" / "golden_data"
    (folder / store.EXACT).mkdir(parents=True)
    for path in store.paths(FOLDER, SMALL, {}):
        shutil.copy(path, folder / store.EXACT)
    return folder


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_torch_mlx_and_safetensors_read_every_bit(path: Path) -> None:
    ours = store.load(path.with_suffix(store.TEXT)).tensors
    by_torch, by_mlx = load_file(path), mx.load(str(path))
    by_package = dict(safetensors.deserialize(path.read_bytes()))
    assert set(ours) == set(by_torch) == set(by_mlx) == set(by_package)
    words = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32}
    for name, array in ours.items():
        want, size = bits(array), array.dtype.itemsize
        signed = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[size]
        assert np.array_equal(bits(by_torch[name].reshape(-1).view(signed).numpy()), want), name
        assert np.array_equal(np.array(by_mlx[name].reshape(-1).view(words[size])), want), name
        assert bytes(by_package[name]["data"]) == want.tobytes(), name
        assert tuple(by_package[name]["shape"]) == tuple(by_mlx[name].shape) == array.shape


@pytest.mark.parametrize("dtype", FLOATS)
def test_inputs_keep_nan_payloads_and_answers_have_one_nan(dtype: str) -> None:
    payloads: set[int] = set()
    answers: set[int] = set()
    for name, array in store.load(FOLDER / store.EXACT / "apply_token_bitmask.json").tensors.items():
        if str(array.dtype) == dtype:
            (answers if name.endswith(f"/{EXPECTED}") else payloads).update(bits_of(array)[is_nan(array)].tolist())
    assert len(payloads) >= 4
    assert len(answers) == 1


def test_an_answer_keeps_all_but_its_nan() -> None:
    values = np.array([0x7F81, 0xFFC0, 0x8000, 0x7F80, 0x0001], np.uint16).view(streams.every("bfloat16").dtype)
    assert bits_of(canonical(values)).tolist() == [0x7FC0, 0x7FC0, 0x8000, 0x7F80, 0x0001]
    assert canonical(np.array([3, 4], np.uint32)).tolist() == [3, 4]


@pytest.mark.parametrize(
    "other",
    [
        {"a": np.zeros(2, np.float32)},
        {"b": np.zeros((1, 2), np.float32)},
        {"b": np.zeros(2, np.int32)},
        {"b": np.array([0, -0.0], np.float32)},
    ],
)
def test_a_digest_tells_names_shapes_dtypes_and_bits_apart(other: dict[str, np.ndarray]) -> None:
    assert digest(other) != digest({"b": np.zeros(2, np.float32)})
    assert digest(other) != digest(other, {"cap": "int 1"})


def test_streams_are_as_specified() -> None:
    assert bits_of(streams.every("float16")).tolist() == list(range(65536))
    spread = bits_of(streams.spread())
    assert [int(value) for value in spread[:3]] == [0, 0x9E3779B1, (2 * 0x9E3779B1) % 2**32]
    assert len(set(spread.tolist())) == streams.SPREAD
    assert is_nan(streams.spread()).sum() > 400


def test_every_group_has_cases_of_which_each_has_a_reason() -> None:
    for group in groups().values():
        members = group.members()
        assert members, group.name
        assert all(member.why and member.flags is not None for member in members)
        assert group.scope == "exact" or group.libraries
    assert {path.stem for path in store.documents(FOLDER)} == set(groups())


def test_a_folder_of_its_own_holds(root: Path) -> None:
    assert hold(groups()[SMALL], root).state == "holds"
    assert hold_folder(root).state == "holds"


def truncated(text: Path, tensors: Path) -> None:
    tensors.write_bytes(tensors.read_bytes()[:-5])


def flipped(text: Path, tensors: Path) -> None:
    data = bytearray(tensors.read_bytes())
    data[-1] ^= 1
    tensors.write_bytes(bytes(data))


def header_broken(text: Path, tensors: Path) -> None:
    tensors.write_bytes(b"\xff" * 64)


def lost(text: Path, tensors: Path) -> None:
    tensors.unlink()


def alone(text: Path, tensors: Path) -> None:
    text.unlink()


def edited(text: Path, tensors: Path) -> None:
    text.write_text(text.read_text().replace("precise", "precious", 1))


def digest_edited(text: Path, tensors: Path) -> None:
    document = json.loads(text.read_text())
    text.write_text(text.read_text().replace(document["cases"][0]["calls"][0]["expected"], "0" * 32))


def reformatted(text: Path, tensors: Path) -> None:
    text.write_text(json.dumps(json.loads(text.read_text())))


def cut(text: Path, tensors: Path) -> None:
    text.write_text(text.read_text()[:-200])


def field_added(text: Path, tensors: Path) -> None:
    text.write_text(text.read_text().replace('"why"', '"reason": "", "why"', 1))


def moved(text: Path, tensors: Path) -> None:
    for path in (text, tensors):
        path.rename(path.with_name(path.name.replace(SMALL, "trellis_decode")))


HARM: dict[Callable[[Path, Path], None], str] = {
    truncated: "damaged",
    flipped: "sound file of other content",
    header_broken: "damaged",
    lost: "Expected the tensors",
    alone: "Expected the document",
    edited: "edited by hand",
    digest_edited: "edited by hand",
    reformatted: "reformatted",
    cut: "damaged",
    field_added: "damaged",
}


@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__)
def test_harm_is_named_and_nothing_is_written_over_it(harm: Callable[[Path, Path], None], root: Path) -> None:
    harm(*store.paths(root, SMALL, {}))
    before = {path: path.read_bytes() for path in store.files(root)}
    for held in (hold(groups()[SMALL], root), hold_folder(root), regenerate(groups()[SMALL], None, root)):
        assert held.state == "fault"
        assert any(HARM[harm] in line and SMALL in line for line in held.lines), held.lines
    assert {path: path.read_bytes() for path in store.files(root)} == before


def test_a_moved_golden_is_named(root: Path) -> None:
    moved(*store.paths(root, SMALL, {}))
    assert "it was moved" in hold(groups()["trellis_decode"], root).lines[0]
    assert any("Expected it at" in line for line in hold_folder(root).lines)


def test_an_answer_that_its_document_does_not_mean_is_named(root: Path) -> None:
    """A file and its seal may agree and the digests of calls still be another's."""
    found = store.load(store.paths(root, SMALL, {})[0])
    name = next(name for name in found.tensors if name.endswith(EXPECTED))
    other = {**found.tensors, name: found.tensors[name] + 1}
    text = store.write(root, found.document, other, pending=False)
    with pytest.raises(Damage, match="Expected an answer of the digest"):
        store.load(text)
    text = store.write(root, found.document, {**found.tensors, "stray": np.zeros(1, np.float32)}, pending=False)
    with pytest.raises(Damage, match="'stray'"):
        store.load(text)


@pytest.mark.parametrize("name", ["exact/nobody.json", "exact/nobody.safetensors", "exact/notes.txt"])
def test_orphans_are_errors(name: str, root: Path) -> None:
    (root / name).write_text("")
    held = hold_folder(root)
    assert held.state == "fault"
    assert any(name in line for line in held.lines)


def test_what_waits_and_what_is_too_large_are_errors(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = store.load(store.paths(root, SMALL, {})[0])
    store.write(root, found.document, found.tensors, pending=True)
    assert any("waits for mlx-assay fixtures review" in line for line in hold_folder(root).lines)
    store.discard(root, SMALL, {})
    (root.parent / "large").write_bytes(bytes(store.SIZE_LIMIT))
    assert any("bytes at most" in line for line in hold_folder(root).lines)


def test_a_document_reads_as_it_was_written() -> None:
    for path in store.documents(FOLDER):
        assert written(read(path.read_bytes())) == path.read_bytes()


def test_the_real_input_is_held_to_its_digests(tmp_path: Path) -> None:
    for name in recorded.DIGESTS:
        shutil.copy(Path(recorded.__file__).parent / "data" / f"{name}.safetensors", tmp_path)
    assert hold_real(tmp_path).state == "holds"
    (tmp_path / "logits.safetensors.new").write_bytes(b"")
    assert "waits to be compared" in hold_real(tmp_path).lines[0]
    (tmp_path / "logits.safetensors.new").rename(tmp_path / "logits.safetensors")
    (tmp_path / "grammar.safetensors").unlink()
    held = hold_real(tmp_path)
    assert held.state == "fault"
    assert ["no file" in held.lines[0], "logits" in held.lines[1], len(held.lines)] == [True, True, 2]


def test_checking_writes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "GROUPS", (groups()[SMALL],))
    monkeypatch.setattr("mlx_assay.conformance.regeneration.holding.groups", lambda: {SMALL: groups()[SMALL]})
    before = {path: path.stat().st_mtime_ns for path in store.files(root.parent)}
    said: list[str] = []
    assert check(said.append, root) == 0
    assert {path: path.stat().st_mtime_ns for path in store.files(root.parent)} == before
    assert [line.split()[0] for line in said] == ["ok", "ok", "ok", "ok"]
