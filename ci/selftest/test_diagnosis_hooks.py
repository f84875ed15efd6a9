"""What contracts know of wrong answers, and outputs, hooks and arguments that no diagnosis may fall over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance.contract import Contract, contracts, seen
from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.diagnosis.hooks import same
from mlx_assay.conformance.diagnosis.pattern import pattern
from mlx_assay.conformance.judging.panel import Panel
from mlx_assay.conformance.judging.ulp import encodings, has_distance
from mlx_assay.fixtures.kind import kinds
from mlx_assay.oracles.registry import load

HOST = {"simd_sum": "ascending-butterfly", "f32_denormals": "flushed"}
SMALL = 1 << 15
RARE = {
    "the first NaN",  # right from MLX 0.32.3 on
    *(f"the form {form}" for form in ("precise", "refined", "unrefined", "bits")),  # two by two the same, by contract
    *(f"the first {size} ids alone" for size in (256, 1024)),
    *("+0 above -0", "a logsumexp in float64", "a logsumexp added up one by one", "the cap's first 7 digits"),
    *("a sum in float64, rounded twice", "product and sum rounded apart", "denormals otherwise"),
    *("interleaved codes read row by row", "weights that are not rounded to bfloat16"),
}
"""Wrong answers that these few calls do not tell from the right one; test_planted and its twin see most of them."""
UNMET = {
    "a score is a denormal",
    "denormals taken for zero",
    "the ascending-butterfly order",
    "rows in reverse",
    "blocks in reverse",
    "the two blocks",
    "interleaved codes",
}
"""Beginnings of names that none of these few calls has."""
BF16 = np.dtype(ml_dtypes.bfloat16)


def calls(contract: Contract) -> Iterator[tuple[Mapping[str, Any], np.ndarray]]:
    """Prepared arguments and the primary oracle's answer: a small subcase of each kind."""
    panel = Panel(contract, load, contract.relaxations)
    first = panel.references[0]
    for (operation, name), kind in sorted(kinds().items()):
        if operation != contract.operation or name.startswith(("large", "real", "exhaustive", "state", "error")):
            continue
        for subcase in kind.subcases(next(iter(kind.cases("quick"))))[:1]:
            if subcase.raises:
                continue
            prepared = contract.prepare(seen(subcase, HOST))
            if max(np.size(value) for value in prepared.values()) <= SMALL and first.applies(prepared):
                yield prepared, np.asarray(first.compute(prepared))


@pytest.mark.parametrize("operation", sorted(contracts()))
def test_every_wrong_answer_fits_and_is_wrong_somewhere(operation: str) -> None:
    contract = contracts()[operation]
    assert contract.suspects is not None
    names: set[str] = set()
    wrong: set[str] = set()
    with np.errstate(all="ignore"):
        for prepared, want in calls(contract):
            for name, make in contract.suspects(prepared).items():
                made = np.asarray(make())
                assert (made.dtype, made.shape) == (want.dtype, want.shape), name
                names.add(name)
                if not same(made, want, has_distance(want.dtype)).all():
                    wrong.add(name)
    assert names
    assert names - wrong <= RARE


@pytest.mark.parametrize("operation", sorted(contracts()))
def test_every_broken_rule_is_one_and_is_known_by_a_name(operation: str) -> None:
    contract = contracts()[operation]
    assert contract.broken is not None
    assert contract.suspects is not None
    names: set[str] = set()
    starts: set[str] = set()
    with np.errstate(all="ignore"):
        for prepared, _ in calls(contract):
            names |= {*contract.suspects(prepared), *(contract.marks(prepared) if contract.marks else ())}
            broken = contract.broken(prepared)
            starts |= set(broken)
            assert set(broken.values()) <= {rule.number for rule in contract.rules}
    assert "" in starts
    assert {start for start in starts if not any(name.startswith(start) for name in names)} <= UNMET


RULES = [
    ("normalized_argmax", "the last id on ties", "3"),
    ("normalized_argmax", "scores cut to bfloat16", "2"),
    ("normalized_argmax", "the first row's normaliser for all", "1"),
    ("argmax_given", "the first row's normaliser for all", "2"),
    ("apply_token_bitmask", "bit 31 lost", "1"),
    ("apply_token_bitmask", "a mask of its own for each row", "4"),
    ("apply_token_bitmask", "something else", "2"),
    ("logit_softcap", "+0 for -0", "5"),
    ("trellis_fold", "the sequential order of a SIMD group's sum", "2"),
]


@pytest.mark.parametrize(("operation", "name", "rule"), RULES)
def test_the_rule_that_a_wrong_answer_breaks(operation: str, name: str, rule: str) -> None:
    nothing = np.zeros(1, np.float32)
    evidence = Evidence(nothing, nothing, np.zeros(1, int), {}, broken=contracts()[operation].broken)
    assert evidence.rule(name) == rule


def test_a_wrong_answer_is_told_with_the_rule_that_it_breaks() -> None:
    want = np.linspace(1, 2, 64, dtype=np.float32)
    found = pattern(
        Evidence(
            want * -0.3,
            want,
            np.arange(64),
            suspects=lambda _: {"a third of it, turned,": lambda: want * -0.3},
            broken=lambda _: {"": 1, "a third": 3, "a third of it": 4},
        )
    )
    assert (found.diagnoses[0].kind, found.diagnoses[0].rule) == ("suspect", "4")
    assert {one.rule for one in found.diagnoses[1:]} <= {""}


MARKED = {known.marks: name for name, known in contracts().items() if known.marks and name != "normalized_argmax"}


@pytest.mark.parametrize("operation", sorted(MARKED.values()))
def test_every_mark_fits_and_is_somewhere_and_not_everywhere(operation: str) -> None:
    contract = contracts()[operation]
    assert contract.marks is not None
    partly: dict[str, bool] = {}
    with np.errstate(all="ignore"):
        for prepared, want in calls(contract):
            for name, mask in contract.marks(prepared).items():
                assert (mask.dtype, mask.shape) == (np.bool_, want.shape), name
                partly[name] = partly.get(name, False) or 0 < np.count_nonzero(mask) < mask.size
    assert {name for name, found in partly.items() if not found} == set()


def broken(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    raise ZeroDivisionError("out of order" * 100)


def misshapen(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "a scalar": lambda: np.zeros(()),
        "a list": lambda: [1, 2],
        "nothing": lambda: np.zeros(0),
        "an error": broken,
    }


@pytest.mark.parametrize("hook", [broken, misshapen])
def test_a_hook_that_fails_is_named_and_costs_the_rest_nothing(hook: Callable[..., Any]) -> None:
    want = np.linspace(1, 2, 64, dtype=np.float32)
    found = pattern(Evidence(want * 0, want, np.arange(64), {"x": "text"}, marks=hook, suspects=hook, addends=hook))
    assert found.diagnoses[0].kind == "zeros"
    failed = [one.text for one in found.diagnoses if one.kind == "failed"]
    assert failed
    assert all(text.startswith("no diagnosis of ") and len(text) <= 200 for text in failed)
    assert sum(bar.count for bar in found.histogram) == 64


DTYPES = [BF16, *map(np.dtype, ("f2", "f4", "f8", "i1", "u1", "i2", "i4", "u4", "i8", "u8", "?"))]


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1, 1), (3, 1), (2, 3, 70), (1, 300), (5, 4096)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_bits_of_any_shape_have_a_pattern(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Every bit at random: NaN, infinities and denormals among them; counts add up, and no diagnosis fails."""
    rng = np.random.default_rng(3)
    size = int(np.prod(shape))
    got, want = (np.frombuffer(rng.bytes(size * dtype.itemsize), dtype).reshape(shape) for _ in range(2))
    at = np.flatnonzero(encodings(got.reshape(-1)) != encodings(want.reshape(-1)))
    found = pattern(
        Evidence(got, want, at, poison=0xFFFFFFFF, other=want, other_poison=0x7B7B7B7B, earlier=[("x", got)])
    )
    assert [one for one in found.diagnoses if one.kind == "failed"] == []
    assert found.diagnoses
    assert all(0 <= one.covers <= at.size for one in found.diagnoses)
    assert sum(bar.count for bar in found.histogram) + found.without_distance == at.size
    if found.map:
        assert sum(found.map.counts) == at.size
        assert len(found.map.counts) == found.map.rows * found.map.columns <= 64 * 64
        assert found.map.rows * found.map.row_extent >= max(1, size // shape[-1])
        assert found.map.columns * found.map.column_extent >= shape[-1]
    assert bool(found.map) == (size > 1)


def test_a_large_output_takes_little_time() -> None:
    """16 million differing places: what is looked at one by one is bounded, and counts are of all."""
    want = np.arange(1 << 24, dtype=np.uint32).astype(np.uint16).view(BF16).reshape(64, -1)
    got = (want.view(np.uint16) ^ np.uint16(0x55)).view(BF16)
    began = time.process_time()
    found = pattern(Evidence(got, want, np.arange(1 << 24), other=got, earlier=[("x", want)]))
    assert time.process_time() - began < 3
    assert sum(bar.count for bar in found.histogram) + found.without_distance == 1 << 24
    assert found.map is not None
    assert sum(found.map.counts) == 1 << 24
    assert found.diagnoses[0].kind == "everywhere"
    assert found.diagnoses[0].covers == 1 << 24
