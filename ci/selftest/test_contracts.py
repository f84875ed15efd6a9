"""Contracts: complete, in step with docs/contracts.md, right on public vectors, and able to explain a difference."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.contracts import logit_softcap as softcap
from mlx_assay.conformance.contracts import normalized_argmax as argmax
from mlx_assay.conformance.judging.panel import Disagreement, Expected, Panel
from mlx_assay.conformance.judging.relaxation import RELAXATIONS
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.oracles import numpy_reference, precise_softcap, registry, stock_mlx

ROOT = Path(__file__).parents[2]
BFLOAT16, FLOAT32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
STOCK = ("apply_token_bitmask", "argmax_given", "compiled_logit_softcap", "logit_softcap", "normalized_argmax")
TRELLIS = (
    "down_codebook_row",
    "down_k3_interleaved_codebook_row",
    "factored_row",
    "scatter_row",
    "trellis_code_values",
    "trellis_decode",
    "trellis_fold",
)
OPERATIONS = tuple(sorted((*STOCK, *TRELLIS)))

EVERY_SOFTCAP = {
    "stock_mlx",
    "mlx_lm_softcap",
    "precise_softcap",
    "numpy_reference",
    "torch_reference",
    "stock_metal",
}

operations = pytest.mark.parametrize("operation", OPERATIONS)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def expect(operation: str, arguments: Mapping[str, Any]) -> list[Expected]:
    contract = contracts()[operation]
    return Panel(contract, registry.load, contract.relaxations).expect(arguments)


def explained(operation: str, arguments: Mapping[str, Any], got: np.ndarray, index: tuple[int, ...]) -> str:
    contract = contracts()[operation]
    prepared = contract.prepare(arguments)
    want = contract.references[0].compute(prepared)
    return contract.explain(prepared, got, want, index)


def test_every_operation_has_its_contract() -> None:
    assert tuple(sorted(contracts())) == OPERATIONS


@operations
def test_a_contract_is_complete(operation: str) -> None:
    contract = contracts()[operation]
    assert (contract.references[0].oracle == "stock_mlx") == (operation in STOCK)
    assert {reference.oracle for reference in contract.references} <= set(registry.NAMES)
    assert set(contract.relaxations) <= set(RELAXATIONS)
    assert [rule.number for rule in contract.rules] == list(range(1, len(contract.rules) + 1))
    assert all(rule.text.endswith((".", ")")) and rule.source for rule in contract.rules)
    for reference in contract.references:
        assert (reference.conforms is Verdict.WITHIN_ULP) == (reference.ulps is not None) <= bool(reference.rule)


def documented(operation: str) -> str:
    """The section of docs/contracts.md whose heading names the operation."""
    sections = re.split(r"^## ", (ROOT / "docs/contracts.md").read_text(), flags=re.MULTILINE)
    (found,) = [section for section in sections if f"`{operation}" in section.partition("\n")[0]]
    return found


@operations
def test_docs_carry_the_same_rules(operation: str) -> None:
    section = documented(operation)
    for rule in contracts()[operation].rules:
        versions = f" (from {rule.since})" if rule.since else f" (to {rule.until})" if rule.until else ""
        assert f"{rule.number}. {rule.text}{versions} [{rule.source}]" in " ".join(section.split())
    numbers = re.findall(r"^(\d+)\. ", section, flags=re.MULTILINE)
    assert numbers == [str(rule.number) for rule in contracts()[operation].rules]


@pytest.mark.parametrize(
    ("release", "rule"),
    [
        ("0.31.2", "skipped"),
        ("0.32.2", "skipped"),
        ("0.32.3", "first"),
        ("0.32.4", "first"),
        ("0.32.4.dev20260901", "first"),
        ("0.33.0", "first"),
        ("1.0.0", "first"),
        ("0.9.10", "skipped"),
    ],
)
def test_the_nan_rule_follows_the_release(release: str, rule: str) -> None:
    assert argmax.nan_rule_of(release) == rule


@pytest.mark.parametrize(
    ("release", "dtype", "cap", "same"),
    [
        ("0.32.2", "float32", 30.0, True),
        ("0.32.2", "float32", 1 / 3, False),
        ("0.32.2", "float32", float("nan"), True),
        ("0.32.2", "float32", 1e300, True),
        ("0.32.2", "float16", 1 / 3, True),
        ("0.32.2", "bfloat16", 1 / 3, True),
        ("0.32.3", "float32", 1 / 3, True),
    ],
)
def test_a_compiled_graph_has_seven_digits_of_a_cap_to_0_32_2(
    monkeypatch: pytest.MonkeyPatch, release: str, dtype: str, cap: float, same: bool
) -> None:
    monkeypatch.setattr(softcap, "version", lambda name: release)
    monkeypatch.setattr(softcap, "constants_whole", softcap.constants_whole.__wrapped__)
    x = np.ones(1, BFLOAT16 if dtype == "bfloat16" else dtype)
    assert softcap.cap_printed({"x": x, "cap": cap}) == same


def test_an_unreadable_release_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"Expected an MLX release .* but got 'main'"):
        argmax.nan_rule_of("main")


@pytest.mark.parametrize(
    ("dtype", "place", "value", "want"),
    [
        ("bfloat16", 7, 2.0**-7, 0),
        ("float16", 7, 0.001, 0),
        ("float32", 7, 1e-8, 0),
        ("bfloat16", 7, 2.0**-5, 7),
        ("bfloat16", 0, -(2.0**-5), 1),
        ("bfloat16", 0, -(2.0**-7), 0),
    ],
)
def test_normalising_makes_ties(dtype: str, place: int, value: float, want: int) -> None:
    """ml-explore/mlx-lm#1479: an argmax of the logits alone answers 7, 7, 7, 7, 1, 1."""
    logits = np.zeros(4096, BFLOAT16 if dtype == "bfloat16" else dtype)
    logits[place] = value
    answers = expect("normalized_argmax", {"logits": logits})
    assert [int(answer.output) for answer in answers] == [want] * 4


def test_a_dead_end_gives_0() -> None:
    masked = expect("apply_token_bitmask", {"logits": np.ones(40, BFLOAT16), "bits": np.zeros(2, np.int32)})[0].output
    assert [int(answer.output) for answer in expect("normalized_argmax", {"logits": masked})] == [0] * 4


@pytest.mark.parametrize("operation", STOCK)
def test_oracles_are_held_against_each_other(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: dict[str, Any] = {
        "logits": np.array([[1, 3, 2]], FLOAT32),
        "lse": np.array([[0.5]], FLOAT32),
        "bits": np.array([5], np.int32),
        "x": np.array([[1.0, 20.0, -3.0]], FLOAT32),
        "cap": 30.0,
    }
    given = {name: arguments[name] for name in contracts()[operation].parameters}
    assert expect(operation, given)
    sound = numpy_reference.argmax_given
    monkeypatch.setattr(numpy_reference, "argmax_given", lambda *rest: sound(*rest) + np.uint32(1))
    monkeypatch.setattr(numpy_reference, "apply_token_bitmask", lambda logits, bits: logits)
    monkeypatch.setattr(numpy_reference, "logit_softcap", lambda x, cap: x)
    with pytest.raises(Disagreement, match=r"stock-mlx .* and numpy-reference .* disagree"):
        expect(operation, given)


def test_argmax_explains_itself() -> None:
    logits = np.array([[0.0, 0.0, -4.0, 1.0]], BFLOAT16)
    arguments = {"logits": logits, "lse": np.array([[8.0]], BFLOAT16)}
    for wrong, text in ((9, "id out of range: 9 of 4"), (0, "score 0xc100 is below 0xc0e0")):
        assert explained("argmax_given", arguments, np.array([wrong], np.uint32), (0,)) == text
    tied = {**arguments, "logits": np.array([[0.0, 0.0, -4.0, -1.0]], BFLOAT16)}
    assert explained("argmax_given", tied, np.array([1], np.uint32), (0,)) == "tie lost: scores 0xc100 = 0xc100"
    nan = {**arguments, "logits": np.array([[0.0, np.nan, -4.0, 1.0]], BFLOAT16)}
    assert re.match("NaN rule, (first|skipped): scores", explained("argmax_given", nan, np.array([2], "u4"), (0,)))


def test_the_mask_explains_itself() -> None:
    arguments = {"logits": np.ones((1, 70), FLOAT32), "bits": np.array([-(2**31), 0], np.int32)}
    got = np.ones((1, 70), FLOAT32)
    for identity, text in (
        (31, "id 31 is allowed by bit 31 of word 0, 0x80000000; logit 0x3f800000"),
        (33, "id 33 is rejected by bit 1 of word 1, 0x00000000; logit 0x3f800000"),
        (69, "id 69 is rejected: word 2 is missing; logit 0x3f800000"),
    ):
        assert explained("apply_token_bitmask", arguments, got, (0, identity)) == text


@pytest.mark.parametrize("operation", ["logit_softcap", "compiled_logit_softcap"])
def test_the_softcap_explains_itself(operation: str) -> None:
    arguments = {"x": np.array([30.0], BFLOAT16), "cap": 50.0}
    text = explained(operation, arguments, np.array([1.0], BFLOAT16), (0,))
    assert text == "x 0x41f0, cap 0x4248, x/cap 0x3f1a, tanh 0x3f0a"
    zero_d = explained(operation, {"x": np.array(30.0, BFLOAT16), "cap": 50}, np.array(1.0, BFLOAT16), ())
    assert zero_d == text


@pytest.mark.parametrize("operation", ["logit_softcap", "compiled_logit_softcap"])
def test_the_softcap_is_bounded_by_the_rule(operation: str) -> None:
    x = np.linspace(-90, 90, 301).astype(FLOAT32)
    answers = {answer.reference.oracle: answer for answer in expect(operation, {"x": x, "cap": 30})}
    precise = answers["precise_softcap"]
    assert precise.reached(precise.compare(answers["stock_mlx"].output, ()))
    wrong = precise.output.copy()
    wrong[200] = np.nextafter(wrong[200], np.float32(0))
    assert precise.reached(precise.compare(wrong, ()))
    wrong[200] *= np.float32(1 - 2.0**-19)
    assert not precise.reached(precise.compare(wrong, ()))
    for oracle in ("numpy_reference", "torch_reference"):
        assert not answers[oracle].reached(answers[oracle].compare(wrong, ()))


def flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock_mlx, "flushes_denormals", lambda: True)


def applicable(operation: str, arguments: Mapping[str, Any]) -> set[str]:
    contract = contracts()[operation]
    prepared = contract.prepare(arguments)
    return {reference.oracle for reference in contract.references if reference.applies(prepared)}


def test_denormals_are_left_to_a_device_that_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    flushing(monkeypatch)
    tiny, cap = np.array([[2.0**-130, 1.0]], FLOAT32), np.array([[0.0]], FLOAT32)
    assert applicable("argmax_given", {"logits": tiny, "lse": cap}) == {"stock_mlx", "stock_metal"}
    decided = np.array([[2.0**-130, 2.0**-129]], FLOAT32)
    assert applicable("argmax_given", {"logits": decided, "lse": cap}) == {"stock_mlx"}
    assert len(applicable("argmax_given", {"logits": tiny + 1, "lse": cap})) == 4
    assert len(applicable("normalized_argmax", {"logits": np.array([[1, 2]], np.int32)})) == 4
    for operation in ("logit_softcap", "compiled_logit_softcap"):
        assert applicable(operation, {"x": tiny, "cap": 1e-40}) == {"stock_mlx", "mlx_lm_softcap"}
        assert applicable(operation, {"x": tiny, "cap": 30}) == EVERY_SOFTCAP - {"stock_metal"}
        assert applicable(operation, {"x": tiny + 1, "cap": 30}) == EVERY_SOFTCAP
        assert applicable(operation, {"x": tiny.astype(np.float16), "cap": 1e-40}) == EVERY_SOFTCAP


def test_cases_that_denormals_decide_are_told() -> None:
    zero = np.zeros((1, 1), FLOAT32)
    for row, decided in (([1e-40, 2e-40], True), ([2e-40, 1e-40], False), ([1e-40, 1.0], False), ([-1e-40, 0.0], True)):
        arguments = {"logits": np.array([row], FLOAT32), "lse": zero}
        assert argmax.denormals_decide(arguments) is decided
    half = {"logits": np.array([[2.0**-24, 2.0**-23]], np.float16), "lse": zero.astype(np.float16)}
    assert argmax.denormals_decide(half) is False


def test_a_leading_nan_is_left_to_the_device_under_the_old_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argmax, "nan_rule", lambda: "skipped")
    lse = np.zeros((1, 1), FLOAT32)
    for row, count in (([np.nan, 1.0], 1), ([1.0, np.nan], 4), ([np.nan, -np.inf], 4), ([np.nan, np.nan], 4)):
        assert len(applicable("argmax_given", {"logits": np.array([row], FLOAT32), "lse": lse})) == count


def test_the_rule_needs_no_mpmath(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpmath", None)
    x = np.linspace(-50, 50, 999).astype(FLOAT32)
    for flushed in (False, True):
        low, high = precise_softcap.interval(x, 30, flushed)
        assert (low <= high).all()
    with pytest.raises(ImportError):
        precise_softcap.version()
