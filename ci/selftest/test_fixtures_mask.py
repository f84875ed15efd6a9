"""The cases of apply_token_bitmask: ids, promises of their tags, power against answers that cost no work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from mlx_assay.conformance.adapters.program import Told, plain_array
from mlx_assay.fixtures import mask_arguments, mask_lengths, mask_shapes, masked_logits, token_bitmask
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.encoding import bits_of, edges, is_denormal, is_nan
from mlx_assay.fixtures.kind import Kind, kinds
from mlx_assay.fixtures.masks import (
    BITS_VIEWS,
    NEGATIVE_VIEWS,
    UNIFORM_VIEWS,
    bits_tensor,
    mask_call,
    only,
    packed,
    words_of,
)
from mlx_assay.fixtures.power import digest, free_passes
from mlx_assay.fixtures.tensor import SWAP, Tensor, viewed

MODULES = (token_bitmask, mask_lengths, masked_logits, mask_shapes, mask_arguments)
KINDS: list[Kind] = [kind for module in MODULES for kind in module.KINDS]
JUDGED = [kind for kind in KINDS if "error" not in kind.tags]
ERRORS = [kind for kind in KINDS if "error" in kind.tags]
by_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
by_judged_kind = pytest.mark.parametrize("kind", JUDGED, ids=lambda kind: kind.name)


def quick(kind: Kind) -> Iterator[tuple[Case, list[Subcase]]]:
    for case in kind.listed():
        yield case, kind.subcases(case)


def tensor(subcase: Subcase, name: str) -> Tensor:
    argument = subcase.arguments[name]
    assert isinstance(argument, Tensor)
    return argument


def masked(subcase: Subcase) -> np.ndarray:
    """What the contract's formula gives, id by id: logits + (bit ? 0 : -inf), a missing word being zero."""
    logits, words = tensor(subcase, "logits").array, tensor(subcase, "bits").array.view(np.uint32)
    ids = np.arange(logits.shape[-1])
    present = ids // 32 < len(words)
    word = np.zeros(len(ids), dtype=np.uint32)
    word[present] = words[ids[present] // 32]
    allowed = (word >> (ids % 32).astype(np.uint32)) & np.uint32(1)
    addend = np.where(allowed == 1, np.float32(0), np.float32(-np.inf))
    with np.errstate(invalid="ignore"):  # inf - inf, and signalling NaNs
        return (logits.astype(np.float32) + addend).astype(logits.dtype)


def answered(*subcases: Subcase) -> tuple[tuple[Subcase, ...], list[np.ndarray], list[np.ndarray]]:
    """Subcases, what an operation might hand back untouched, and what is right."""
    inputs = [tensor(subcase, "logits").array for subcase in subcases]
    return subcases, inputs, [masked(subcase) for subcase in subcases]


def test_there_are_many_cases_and_the_quick_ones_are_small() -> None:
    cases = [(case, subcases) for kind in KINDS for case, subcases in quick(kind)]
    sizes = [tensor(subcase, "logits").base.size for _, subcases in cases for subcase in subcases]
    assert len(cases) >= 500
    assert sum(sizes) < 60_000_000
    assert np.mean(np.array(sizes) <= 8192) > 0.9
    assert sum(1 for kind in KINDS for _ in kind.cases("full")) >= len(cases) + 2000


def test_ids_are_unique_and_read_back() -> None:
    ids = [case.id for kind in KINDS for case in kind.cases("full")]
    assert len(set(ids)) == len(ids)
    for text in ids:
        assert Case.parse(text).id == text


def test_every_kind_is_discovered() -> None:
    known = kinds()
    assert all(known[kind.operation, kind.name] is kind for kind in KINDS)


@by_kind
def test_an_id_alone_gives_the_same_bits_again(kind: Kind) -> None:
    for case, subcases in quick(kind):
        again = kind.subcases(Case.parse(case.id))
        assert digest(again) == digest(subcases), case.id


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.seeded], ids=lambda kind: kind.name)
def test_another_seed_gives_other_bits(kind: Kind) -> None:
    first, other = next(kind.cases("quick")), next(kind.cases("quick", seed=1001))
    plain = all(not isinstance(value, Tensor) for value in kind.subcases(first)[0].arguments.values())
    assert first.id != other.id
    assert plain or digest(kind.subcases(first)) != digest(kind.subcases(other))


@by_judged_kind
def test_answers_that_cost_no_work_fail(kind: Kind) -> None:
    for case in (*kind.cases("full"), *kind.cases("quick", seed=1007)):
        subcases = kind.subcases(case)
        assert all(not subcase.raises for subcase in subcases), case.id
        assert len({subcase.label for subcase in subcases}) == len(subcases), case.id
        assert free_passes(*answered(*subcases)) == [], case.id


def test_cases_without_power_are_told() -> None:
    x, zero = np.array([1.0, 2.0], np.float32), np.zeros(2, np.float32)
    opened, closed = words_of(3), words_of(0)
    assert free_passes(*answered(mask_call("a", zero, opened), mask_call("b", zero + 0, words_of(7)))) == [
        "zeros",
        "the input",
        "the answer to a call of the same shape",
    ]
    assert free_passes(*answered(mask_call("a", x, opened), mask_call("b", 2 * x, opened))) == ["the input"]
    assert free_passes(*answered(mask_call("a", x, closed), mask_call("b", 2 * x, closed))) == [
        "the answer to a call of the same shape"
    ]
    assert free_passes(*answered(mask_call("a", x, opened), mask_call("b", x, closed))) == []


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.name)
def test_error_cases_name_what_must_be_raised(kind: Kind) -> None:
    for case, subcases in quick(kind):
        assert subcases, case.id
        assert all(set(subcase.raises) <= {"TypeError", "ValueError"} and subcase.raises for subcase in subcases)


PROMISES = {
    "nan": lambda x: is_nan(x).any(),
    "inf": lambda x: np.isin(bits_of(x), bits_of(edges(str(x.dtype), "infinity"))).any(),
    "signed-zero": lambda x: (bits_of(x) == bits_of(np.array([-0.0], x.dtype))).any(),
    "denormal": lambda x: is_denormal(x).any(),
}


@by_judged_kind
def test_tags_promise_what_the_logits_hold(kind: Kind) -> None:
    for case, subcases in quick(kind):
        logits = [tensor(subcase, "logits") for subcase in subcases]
        everything = np.concatenate([one.array.reshape(-1) for one in logits if one.dtype == case.dtype])
        for tag in set(kind.tags) & set(PROMISES):
            assert PROMISES[tag](everything), f"{case.id} holds no {tag}"
        if "large-vocab" in kind.tags:
            assert all(one.base.shape[-1] >= 32000 for one in logits), case.id
        if "batch" in kind.tags and dict(case.parameters).get("rows", 2) != 1:
            assert any(one.base.size > one.base.shape[-1] for one in logits), case.id
        if "strided" in kind.tags and "contiguous" not in dict(case.parameters).values():
            assert any(tensor(subcase, name).steps for subcase in subcases for name in ("logits", "bits")), case.id


def test_special_logits_meet_both_verdicts_of_the_mask() -> None:
    groups = {"nan-payload": "nan", "infinity": "infinity", "signed-zero": "zero", "extreme": "extreme"}
    for name, group in groups.items():
        kind = next(kind for kind in KINDS if kind.name == f"logits/{name}")
        for case, subcases in quick(kind):
            wanted = bits_of(edges(case.dtype, group))
            for subcase in subcases:
                row = tensor(subcase, "logits").array[0]
                closed = np.unpackbits(tensor(subcase, "bits").array.view(np.uint8), bitorder="little")[: len(row)] == 0
                for encoding in wanted:
                    places = bits_of(row) == encoding
                    assert (places & closed).any(), (case.id, subcase.label)
                    assert (places & ~closed).any(), (case.id, subcase.label)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_encoding_is_allowed_once_and_rejected_once(dtype: str) -> None:
    kind = next(kind for kind in KINDS if kind.name == "logits/every-encoding")
    case = next(case for case in kind.cases("quick") if case.dtype == dtype)
    seen: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for subcase in kind.subcases(case):
        row = bits_of(tensor(subcase, "logits").array)[0]
        opened = np.unpackbits(tensor(subcase, "bits").array.view(np.uint8), bitorder="little") == 1
        seen[True].append(row[opened])
        seen[False].append(row[~opened])
    for verdict in (True, False):
        assert np.array_equal(np.sort(np.concatenate(seen[verdict])), np.arange(65536)), verdict


def test_single_bits_cover_the_first_three_words() -> None:
    kind = next(kind for kind in KINDS if kind.name == "bit/only-allowed")
    cases = [case for case in kind.listed() if case.dtype == "float32" and dict(case.parameters)["vocab"] == 96]
    survivors = [np.flatnonzero(np.isfinite(masked(subcase))) for case in cases for subcase in kind.subcases(case)]
    assert [list(ids) for ids in survivors] == [[i] for i in range(96)]


def test_words_are_little_endian() -> None:
    assert only([31], 32).tolist() == [-2147483648]
    assert only([31, 32], 33).tolist() == [-2147483648, 1]
    assert only([0, 33], 64).tolist() == [1, 2]
    assert packed(np.ones(33, dtype=bool)).tolist() == [-1, 1]
    assert words_of(0x80000000, 0x7FFFFFFF).tolist() == [-2147483648, 2147483647]


@pytest.mark.parametrize("view", BITS_VIEWS)
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_views_of_words_equal_the_words(view: str, count: int) -> None:
    words = Draw(7).bits(np.dtype(np.int32), (count,))
    if view in UNIFORM_VIEWS:
        words = np.full(count, words[0])
    handed = bits_tensor(words, view)
    assert np.array_equal(handed.array, words)
    skipped = handed.base.size - (1 if view in UNIFORM_VIEWS else count)
    assert np.isin(handed.base, ~words).sum() >= skipped


def test_views_that_cannot_be_are_refused() -> None:
    for view in NEGATIVE_VIEWS:
        with pytest.raises(ValueError, match="negative stride"):
            bits_tensor(words_of(1, 2), view, "torch")
    with pytest.raises(ValueError, match="all alike"):
        bits_tensor(words_of(1, 2), "broadcast")
    for container in ("mx", "torch"):
        with pytest.raises(ValueError, match="of a NumPy array alone but got one of " + container):
            Tensor(words_of(1, 2), (SWAP,), container)


def test_swapped_words_keep_their_values_in_other_bytes() -> None:
    words = Tensor(words_of(1, 0x80000002), (SWAP,), "numpy")
    handed = viewed(words.base, words.steps, np)
    assert not handed.dtype.isnative
    assert handed.tobytes() == words.base.byteswap().tobytes()
    assert words.array.dtype.isnative
    assert np.array_equal(words.array, words.base)
    with pytest.raises(Told, match="machine's byte order") as refused:
        plain_array(handed)
    assert refused.value.kind == "TypeError"


PINNED = {
    "bfloat16/mask/random?density=32&vocab=1000&seed=0": "ad7eb082efda28e0fa7d4372db50b13d",
    "float16/bits/container?container=torch&view=column-of-five&vocab=200&seed=0": "967ebbabe4e672bf7ff7c4e92d768e8e",
    "float32/vocabulary/padded-large?tokens=151669&vocab=151936&seed=0": "131f1c05f364b302710c59798612dd65",
    "float16/view/logits?view=transposed-slice&vocab=130&seed=0": "49de26e35be6b9e1d151eaa463789d00",
    "float16/logits/every-encoding": "88def6a283fb63c0a244b40124d8d763",
    "float32/logits/every-edge?vocab=97&seed=0": "5e00e07e452ca5dfdba323b9994cddaf",
}


@pytest.mark.parametrize("text", PINNED)
def test_bits_stay_for_ever(text: str) -> None:
    case = Case.parse(f"apply_token_bitmask/{text}")
    kind = next(kind for kind in KINDS if kind.name == case.kind)
    assert digest(kind.subcases(case)) == PINNED[text]
