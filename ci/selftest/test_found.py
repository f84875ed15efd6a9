"""Finds: files that come back as they were, cases with power, and the way from a failing exploration to a kept case."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.verbs.keep import FOLDER, keep, read
from mlx_assay.fixtures import codec, found
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.found import Argument, Find
from mlx_assay.fixtures.kind import kind_of
from mlx_assay.fixtures.tensor import DTYPES, Tensor

WHY = "Planted by a test"
LAST_ID_ON_TIES = """
import mlx.core as mx

def normalized_argmax(logits):
    scores = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    return logits.shape[-1] - 1 - mx.argmax(scores[..., ::-1], axis=-1)
"""


def bits(*encodings: int) -> np.ndarray:
    return np.array([encodings], np.uint16).view(DTYPES["bfloat16"])


def softcap(cap: float | int | str | None = 30) -> Find:
    return Find("logit_softcap", "bfloat16", {"x": Tensor(bits(0x7F81, 0x8000, 0x3F80)), "cap": cap}, WHY)


def masked() -> Find:
    steps = (("transpose", (1, 0)), ("slice", ((None, None, -1), (1, 2, None))))
    logits = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3), steps)
    return Find(
        "apply_token_bitmask", "float32", {"logits": logits, "bits": Tensor(np.array([5], np.int32), (), "torch")}, WHY
    )


def alike(one: Mapping[str, Argument], other: Mapping[str, Argument]) -> bool:
    if list(one) != list(other):
        return False
    for a, b in zip(one.values(), other.values(), strict=True):
        if isinstance(a, Tensor) != isinstance(b, Tensor):
            return False
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            if (a.steps, a.kind, a.dtype, a.base.shape) != (b.steps, b.kind, b.dtype, b.base.shape):
                return False
            if a.base.tobytes() != b.base.tobytes():
                return False
        elif repr(a) != repr(b):
            return False
    return True


@pytest.mark.parametrize("cap", [30, -1, 1 / 3, math.inf, -0.0, math.nan, 5e-324, "text", None])
def test_arguments_come_back(cap: float | int | str | None) -> None:
    find = softcap(cap)
    back = Find.decoded(find.encoded())
    assert alike(back.arguments, find.arguments)
    assert (back.operation, back.dtype, back.why, back.issue) == (find.operation, find.dtype, WHY, "")


def test_views_and_carriers_come_back() -> None:
    back = Find.decoded(masked().encoded())
    assert alike(back.arguments, masked().arguments)
    logits = back.arguments["logits"]
    assert isinstance(logits, Tensor)
    assert logits.array.tolist() == [[5.0], [4.0], [3.0]]


def test_the_digest_is_of_the_input_alone() -> None:
    assert softcap().digest == replace(softcap(), why="another", issue="https://example.org/1").digest
    others = [softcap(30.0), softcap(31), masked(), replace(softcap(), operation="compiled_logit_softcap")]
    assert len({softcap().digest, *(other.digest for other in others)}) == 5
    assert len(softcap().digest) == 12


def broken(**changed: Any) -> bytes:
    archive = codec.decode(softcap().encoded())
    metadata = {key: value for key, value in {**archive.metadata, **changed}.items() if value is not None}
    return codec.encode(archive.tensors, metadata)


def argument(*written: Any) -> str:
    return json.dumps([["x", list(written)], ["cap", ["int", "30"]]])


BROKEN = {
    "no metadata": (codec.encode({}, {}), "Expected the metadata"),
    "missing why": (broken(why=None), "Expected the metadata"),
    "surplus field": (broken(note="x"), "Expected the metadata"),
    "unknown dtype": (broken(dtype="float8"), "Expected a dtype"),
    "no JSON": (broken(arguments="{"), "Expecting property name"),
    "deep JSON": (broken(arguments="[" * 100_000), "name tensors and plain values"),
    "no list": (broken(arguments="3"), "name tensors and plain values"),
    "no tensor": (broken(arguments='[["cap", ["int", "30"]]]'), "Expected the tensors"),
    "unknown tensor": (broken(arguments='[["y", ["tensor", "mx", []]]]'), "name tensors and plain values"),
    "unknown carrier": (broken(arguments=argument("tensor", "jax", [])), "Expected a tensor, float"),
    "unknown type": (broken(arguments=argument("complex", "1j")), "Expected a tensor, float"),
    "unknown step": (broken(arguments=argument("tensor", "mx", [["flip", [0]]])), "Expected a view step"),
    "step of zero": (broken(arguments=argument("tensor", "mx", [["slice", [[0, 1, 0]]]])), "zero"),
    "no step": (broken(arguments=argument("tensor", "mx", [["slice"]])), "name tensors and plain values"),
    "huge view": (broken(arguments=argument("tensor", "mx", [["broadcast", [2**40, 1, 3]]])), "elements at most"),
    "no number": (broken(arguments='[["x", ["tensor", "mx", []]], ["cap", ["float", "thirty"]]]'), "hexadecimal"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_find_is_a_clear_error(name: str, tmp_path: Path) -> None:
    data, message = BROKEN[name]
    path = tmp_path / "candidate.safetensors"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as raised:
        read(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("find", [softcap(), masked()], ids=lambda find: find.operation)
def test_a_find_is_replayed_beside_other_content(find: Find) -> None:
    kind = find.kind()
    (case,) = kind.cases("quick")
    assert case.id == f"{find.operation}/{find.dtype}/found/{find.digest}"
    assert Case.parse(case.id) == case
    first, twin, ordinary = (subcase.arguments for subcase in kind.subcases(case))
    assert alike(first, find.arguments)
    leading = next(iter(first))
    one, other = first[leading], twin[leading]
    assert isinstance(one, Tensor)
    assert isinstance(other, Tensor)
    assert one.array.shape == other.array.shape
    assert one.array.tobytes() != other.array.tobytes()
    assert tuple(ordinary) == contracts()[find.operation].parameters


def test_the_twin_of_one_encoding_differs_too() -> None:
    same = replace(softcap(), arguments={"x": Tensor(bits(0x3F80, 0x3F80)), "cap": 30})
    (case,) = same.kind().cases("quick")
    twin = same.kind().subcases(case)[1].arguments["x"]
    assert isinstance(twin, Tensor)
    assert twin.array.view(np.uint16).tolist() == [[0x3F81, 0x3F81]]


def test_every_operation_has_an_ordinary_call() -> None:
    assert found.ORDINARY.keys() == contracts().keys()
    for operation, make in found.ORDINARY.items():
        for dtype in ("bfloat16", "float16", "float32"):
            assert tuple(make(DTYPES[dtype])) == contracts()[operation].parameters


def test_kept_finds_are_in_order() -> None:
    names = {path.name for path in FOLDER.iterdir()}
    kept = dict(found.finds())
    assert kept.keys() == names, "a file that is no find lies among the finds"
    assert kept, "no find is kept"
    for name, find in kept.items():
        assert name == find.filename
        assert find.why.endswith(".")
        assert (FOLDER / name).read_bytes() == find.encoded()
        assert read(FOLDER / name).digest == find.digest
        (case,) = find.kind().cases("quick")
        assert kind_of(case).why == find.kind().why


def candidate(find: Find, tmp_path: Path) -> Path:
    path = tmp_path / "candidate.safetensors"
    path.write_bytes(find.encoded())
    return path


def test_a_candidate_is_kept_with_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    text = keep(candidate(softcap(), tmp_path), "  Why it hunts.  ", "https://example.org/7", folder=folder)
    (path,) = folder.iterdir()
    assert str(path) in text
    assert f"mlx-assay replay 'logit_softcap/bfloat16/found/{softcap().digest}'" in text
    kept = Find.decoded(path.read_bytes())
    assert (kept.why, kept.issue) == ("Why it hunts.", "https://example.org/7")
    assert kept.digest == softcap().digest
    assert kept.kind().why == "Why it hunts. (https://example.org/7)"


def test_what_cannot_be_kept_is_a_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    with pytest.raises(ValueError, match=r"nowhere\.safetensors: Expected a file to read"):
        keep(tmp_path / "nowhere.safetensors", WHY, folder=folder)
    with pytest.raises(ValueError, match="Expected why"):
        keep(candidate(softcap(), tmp_path), " ", folder=folder)
    for find, message in (
        (replace(softcap(), operation="softmax"), "Expected an operation of"),
        (replace(softcap(), dtype="int8"), "Expected a dtype of"),
        (replace(softcap(), arguments={"x": Tensor(bits(1))}), "Expected the arguments"),
    ):
        with pytest.raises(ValueError, match=message):
            keep(candidate(find, tmp_path), WHY, folder=folder)
    assert not folder.exists()
    keep(candidate(softcap(), tmp_path), WHY, folder=folder)
    with pytest.raises(ValueError, match="not kept yet"):
        keep(candidate(softcap(), tmp_path), "Another reason.", folder=folder)


def test_exploration_finds_a_planted_fault_and_leaves_a_file(tmp_path: Path) -> None:
    """The smallest input on which the last id wins a tie: a row of two."""
    (tmp_path / "last_id_on_ties.py").write_text(LAST_ID_ON_TIES)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "mlx_assay.conformance.test_exploration",
    ]
    selected = ["-k", "float16 and not bfloat16", "--mlx-assay-implementation", "last_id_on_ties", "-rs"]
    run = subprocess.run([*command, *selected], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    path = tmp_path / "mlx-assay-found" / "normalized_argmax-float16.safetensors"
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"mlx-assay keep {path}" in run.stdout
    assert "mlx-assay replay" not in run.stdout
    assert "tie lost" in run.stdout
    assert "1 failed, 10 skipped" in run.stdout
    assert "logit_softcap is not asked: the implementation has no function of this name" in run.stdout
    logits = read(path).arguments["logits"]
    assert isinstance(logits, Tensor)
    assert logits.array.shape == (2,)
    assert len(set(logits.array.view(np.uint16).tolist())) == 1
