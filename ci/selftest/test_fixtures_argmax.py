"""Every case of the argmax operations has power, holds what its name promises, and has the same bits for ever."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.encoding import FLOATS, bits_of, encoded, is_denormal, is_nan
from mlx_assay.fixtures.kind import Kind, Tier, kind_of, kinds
from mlx_assay.fixtures.logsumexp import rounded_logsumexp

OPERATIONS = ("normalized_argmax", "argmax_given")
KINDS = [
    kind
    for (operation, _), kind in sorted(kinds().items())
    if operation in OPERATIONS and not kind.name.startswith(("real/", "found/"))
]
MADE_BY_ROUNDING = ("near-ties/normal",)
"""Kinds whose ties are drawn: certain where the deviation is small and the dtype short."""


@dataclass
class Facts:
    """What a case holds, as seen by this test alone."""

    case: Case
    tags: tuple[str, ...]
    subcases: int = 0
    elements: int = 0
    digest: str = ""
    shapes: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    answers: list[np.ndarray] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    conflicts: int = 0
    flushed_otherwise: int = 0
    raises: int = 0


def scores_of(logits: np.ndarray, lse: np.ndarray, flush: bool = False) -> np.ndarray:
    """Scores as float32, rounded to the lse's dtype: exact, or rounded once, in float32 before."""
    with np.errstate(all="ignore"):
        left, right = logits.astype(np.float32), lse.astype(np.float32)
        if flush:
            left, right = flushed(left), flushed(right)
        difference = left - right
        difference = flushed(difference) if flush else difference
        return difference.astype(lse.dtype).astype(np.float32)


def flushed(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.float32(0), values)


def lse_of(subcase: Subcase) -> np.ndarray:
    if "lse" in subcase.arguments:
        return subcase.arguments["lse"].array
    logits = subcase.arguments["logits"].array
    return rounded_logsumexp(logits.astype(np.float32) if logits.dtype.kind in "iu" else logits)


def observe(facts: Facts, subcase: Subcase) -> None:
    """Adds one subcase's bits, answers and specials to the facts."""
    facts.subcases += 1
    tensors = [subcase.arguments[name] for name in sorted(subcase.arguments)]
    hashed = hashlib.sha256(facts.digest.encode())
    for tensor in tensors:
        hashed.update(repr((tensor.dtype, tensor.base.shape, tensor.steps, tensor.kind)).encode())
        hashed.update(tensor.base.tobytes())
    facts.digest = hashed.hexdigest()
    facts.raises += bool(subcase.raises)
    if subcase.raises:
        return
    arrays = [tensor.array for tensor in tensors]
    logits = subcase.arguments["logits"].array
    facts.elements += logits.size
    facts.shapes.append(tuple(array.shape for array in arrays))
    facts.contents.append(hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest())
    lse = lse_of(subcase)
    scores = scores_of(logits, lse)
    answer = scores.argmax(axis=-1)
    facts.answers.append(answer)
    if lse.dtype != np.float16:
        facts.flushed_otherwise += int((scores_of(logits, lse, flush=True).argmax(axis=-1) != answer).sum())
    facts.seen |= specials(logits, "logits") | specials(lse, "lse") | score_facts(scores)
    facts.seen |= {"strided"} if any(tensor.steps for tensor in tensors) else set()
    facts.seen |= {"batch"} if logits.size > logits.shape[-1] else set()
    facts.seen |= {"large-vocab"} if logits.shape[-1] >= 32000 else set()
    wide = logits.astype(np.float32, copy=False)
    facts.conflicts += int((np.isnan(wide).any(axis=-1) & (wide == np.inf).any(axis=-1)).sum())


def specials(values: np.ndarray, where: str) -> set[str]:
    if values.dtype.kind in "iu":
        return {f"{where}:extreme"} if (values == np.iinfo(values.dtype).max).any() else set()
    dtype = str(values.dtype)
    bits = bits_of(values)
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float32)
    zero, minus_zero = (bits == bits_of(encoded(dtype, name))[0] for name in ("zero", "minus-zero"))
    largest = np.abs(wide) == encoded(dtype, "largest").astype(np.float32)[0]
    present = {
        "nan": is_nan(values),
        "inf": wide == np.inf,
        "minus-inf": wide == -np.inf,
        "denormal": is_denormal(values),
        "zero": zero,
        "minus-zero": minus_zero,
        "extreme": largest,
    }
    return {f"{where}:{name}" for name, found in present.items() if found.any()}


def score_facts(scores: np.ndarray) -> set[str]:
    top = scores.max(axis=-1, keepdims=True)
    found = {"score:ties"} if ((scores == top).sum(axis=-1) > 1).any() else set()
    found |= {"score:nan"} if np.isnan(scores).any() else set()
    return found | ({"score:inf"} if np.isinf(scores).any() else set())


def observed(kind: Kind, tier: Tier, keep: int = 1, seed: int = 0) -> Iterator[Facts]:
    for case in kind.cases(tier, seed):
        if keep > 1 and zlib.crc32(case.id.encode()) % keep:
            continue
        facts = Facts(case, kind.tags)
        for subcase in kind.subcases(case):
            observe(facts, subcase)
        yield facts


@pytest.fixture(scope="module")
def quick() -> list[Facts]:
    return [facts for kind in KINDS for facts in observed(kind, "quick")]


@pytest.fixture(scope="module")
def judged(quick: list[Facts]) -> list[Facts]:
    """Cases whose calls must answer: the quick tier, and one in forty of the full one."""
    sampled = [facts for kind in KINDS for facts in observed(kind, "full", keep=40)]
    return [facts for facts in (*quick, *sampled) if not facts.raises]


def test_the_quick_tier_is_large_enough_and_small_enough(quick: list[Facts]) -> None:
    assert len(quick) >= 600
    assert sum(facts.elements for facts in quick) < 150_000_000
    assert sum(len(list(kind.cases("full"))) for kind in KINDS) >= 5000
    large = [facts.case.id for facts in quick if facts.elements > 500_000 and "large-vocab" not in facts.tags]
    assert large == []


def test_ids_are_unique_and_read_back(quick: list[Facts]) -> None:
    ids = [case.id for kind in KINDS for case in kind.cases("full")]
    assert len(ids) == len(set(ids))
    for facts in quick:
        assert Case.parse(facts.case.id) == facts.case
        assert kind_of(facts.case).name == facts.case.kind


def test_every_kind_says_in_one_sentence_what_it_hunts() -> None:
    assert [kind.name for kind in KINDS if not kind.why.endswith(".") or "\n" in kind.why] == []


def test_bits_come_again(quick: list[Facts]) -> None:
    again = {facts.case.id: facts.digest for kind in KINDS[::5] for facts in observed(kind, "quick")}
    first = {facts.case.id: facts.digest for facts in quick}
    assert len(again) > 100
    assert {id: digest for id, digest in first.items() if id in again} == again


def test_seeds_give_other_bits() -> None:
    kind = kinds()["argmax_given", "lse/bits"]
    digests = set()
    for seed in range(5):
        case = next(kind.cases("quick", seed))
        digests.add(b"".join(subcase.arguments["logits"].base.tobytes() for subcase in kind.subcases(case)))
    assert len(digests) == 5


def test_zero_is_not_every_answer(judged: list[Facts]) -> None:
    assert [facts.case.id for facts in judged if not any(answer.any() for answer in facts.answers)] == []


def test_the_answer_before_is_not_every_answer(judged: list[Facts]) -> None:
    def stale_passes(facts: Facts) -> bool:
        before: dict[tuple[int, ...], np.ndarray] = {}
        for answer in facts.answers:
            if answer.shape in before and not np.array_equal(before[answer.shape], answer):
                return False
            before[answer.shape] = answer
        return True

    assert [facts.case.id for facts in judged if stale_passes(facts)] == []


def test_two_subcases_share_a_shape_but_not_their_content(judged: list[Facts]) -> None:
    def paired(facts: Facts) -> bool:
        contents: dict[tuple[tuple[int, ...], ...], set[str]] = {}
        for shape, content in zip(facts.shapes, facts.contents, strict=True):
            contents.setdefault(shape, set()).add(content)
        return any(len(found) > 1 for found in contents.values())

    assert [facts.case.id for facts in judged if not paired(facts)] == []


def test_labels_are_unique_in_a_case() -> None:
    for kind in KINDS:
        labels = [subcase.label for subcase in kind.subcases(next(kind.cases("quick")))]
        assert len(labels) == len(set(labels)), kind.name


def test_flushing_denormals_changes_no_answer(judged: list[Facts]) -> None:
    assert [facts.case.id for facts in judged if facts.flushed_otherwise] == []


def test_normalized_rows_never_hold_nan_beside_plus_infinity(judged: list[Facts]) -> None:
    assert [facts.case.id for facts in judged if facts.conflicts and facts.case.operation != "argmax_given"] == []
    assert any(facts.conflicts for facts in judged)


PROMISES = {
    "nan": ("logits:nan", "lse:nan", "score:nan"),
    "inf": ("logits:inf", "logits:minus-inf", "lse:inf", "lse:minus-inf", "score:inf"),
    "signed-zero": ("logits:minus-zero", "lse:minus-zero"),
    "denormal": ("logits:denormal", "lse:denormal"),
    "extreme": ("logits:extreme", "lse:extreme"),
    "mask": ("logits:minus-inf",),
    "ties": ("score:ties",),
    "strided": ("strided",),
    "batch": ("batch",),
    "large-vocab": ("large-vocab",),
}
FAMILIES = {
    "nan/": ("logits:nan",),
    "inf/": ("logits:inf", "logits:minus-inf"),
    "signed-zero/": ("logits:zero", "logits:minus-zero"),
    "denormal/": ("logits:denormal",),
    "mixture/": ("logits:nan", "logits:inf", "logits:minus-inf"),
    "lse/nan": ("lse:nan",),
    "lse/infinite": ("lse:inf", "lse:minus-inf"),
    "lse/edges": ("lse:nan", "lse:inf", "lse:minus-inf", "lse:denormal", "lse:zero", "lse:extreme"),
    "extreme/edges": ("logits:nan", "logits:inf", "logits:denormal", "logits:extreme", "logits:minus-zero"),
}


def rounds_to_ties(case: Case) -> bool:
    return case.dtype != "float32" and dict(case.parameters)["scale"] == "0.01"


EITHER = ("inf/", "lse/infinite")


def test_promised_specials_are_present(judged: list[Facts]) -> None:
    for facts in judged:
        for tag in set(facts.tags) & set(PROMISES):
            if tag == "ties" and facts.case.kind in MADE_BY_ROUNDING and not rounds_to_ties(facts.case):
                continue
            if tag == "batch" and dict(facts.case.parameters).get("rows") == 1:
                continue
            assert facts.seen & set(PROMISES[tag]), f"{facts.case.id} is tagged {tag} but has none"
        for family, needed in FAMILIES.items():
            if facts.case.kind.startswith(family):
                enough = any if family in EITHER else all
                assert enough(name in facts.seen for name in needed), f"{facts.case.id} lacks some of {needed}"


def test_errors_are_expected_where_they_are_tagged(quick: list[Facts]) -> None:
    assert {facts.case.kind for facts in quick if facts.raises} == {"error/empty", "error/scalar", "error/lse"}
    assert all(("error" in facts.tags) == bool(facts.raises) for facts in quick)


@pytest.mark.parametrize(
    ("dtype", "answers"),
    [
        ("bfloat16", [0, 7, 1, 0, 4095, 0]),
        ("float16", [0, 7, 1, 1, 4095, 0]),
        ("float32", [0, 7, 1, 1, 4095, 0]),
    ],
)
def test_published_vectors_have_their_published_answers(dtype: str, answers: list[int]) -> None:
    kind = kinds()["normalized_argmax", "ties/public-vectors"]
    found = []
    for subcase in kind.subcases(Case.make("normalized_argmax", dtype, kind.name, {"seed": 0})):
        logits = subcase.arguments["logits"].array
        found.append(int(scores_of(logits, rounded_logsumexp(logits)).argmax()))
    assert found == answers


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_number_is_ordered_among_its_neighbours(dtype: str) -> None:
    kind = kinds()["argmax_given", "exhaustive/neighbours"]
    met: set[int] = set()
    for subcase in kind.subcases(next(case for case in kind.cases("quick") if case.dtype == dtype)):
        met |= set(bits_of(subcase.arguments["logits"].array).ravel().tolist())
    every = np.arange(2**16, dtype=np.uint16).view(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)
    left_out = is_nan(every) | (bits_of(every) == 0x8000)
    if dtype == "bfloat16":
        left_out |= is_denormal(every)
    assert set(bits_of(every[~left_out]).tolist()) <= met


def test_rounding_kinds_hold_scores_that_truncation_orders_otherwise() -> None:
    for dtype in FLOATS:
        kind = kinds()["argmax_given", "rounding/midpoint"]
        case = next(case for case in kind.cases("quick") if case.dtype == dtype)
        differing = 0
        for subcase in kind.subcases(case):
            logits, lse = (subcase.arguments[name].array for name in ("logits", "lse"))
            exact = logits.astype(np.float64) - lse.astype(np.float64)
            differing += int((exact.argmax(axis=-1) != scores_of(logits, lse).argmax(axis=-1)).sum())
        assert differing > 5, dtype


DIGESTS = {
    "normalized_argmax/bfloat16/ties/rounding?vocab=1025&seed=0":
        "64ebdf0d05bc1e6c03c51e951b3ad78af81c0cf18e75a085a3c8cfb57a4d7969",
    "normalized_argmax/float32/near-ties/normal?scale=0.3&vocab=500&seed=0":
        "4c27e54b8641c2cb976e25f1c1aa93ce74e59c5958c2ad0c007d12561b4c50aa",
    "argmax_given/float16/nan/one?vocab=128&seed=0":
        "edda3258a25e188f114d4687395a10784f0e9719ea130d081b3619455c72c5c4",
    "argmax_given/float32/lse/edges?vocab=130&seed=0":
        "b216d4ec2076c9c3791b61e4a589bd75635ae27f1dfd3124a89bdda1fc4ca416",
    "normalized_argmax/bfloat16/view/transposed-slice?rows=3&vocab=65&seed=0":
        "a552d7b75326588f3a733464dfc68bde09cf25749bdd8fcca6ae46c5ad2953c3",
    "argmax_given/bfloat16/random/contaminated?percent=10&vocab=130&seed=0":
        "f7afac0fdd556e4e02dd8aca25cb324730f50c49d74d5879b3108658129c4442",
}  # fmt: skip
"""SHA-256 over the bits of a case's subcases, chained as `observe` does."""


@pytest.mark.parametrize("id", DIGESTS)
def test_the_stream_of_draws_is_the_one_that_ids_were_given_for(id: str) -> None:
    case = Case.parse(id)
    facts = Facts(case, ())
    for subcase in kind_of(case).subcases(case):
        observe(facts, subcase)
    assert facts.digest == DIGESTS[id]
