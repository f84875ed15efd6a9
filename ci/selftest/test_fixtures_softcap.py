"""The cases of the softcaps: ids, promises of their tags, power against answers that cost no work."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlx_assay.fixtures import caps, softcap, softcap_calls, softcap_sweeps, softcap_values
from mlx_assay.fixtures.capped import OPERATIONS, softcap_call
from mlx_assay.fixtures.caps import Cap, cap_of, cap_text
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.encoding import FLOATS, bits_of, edges, is_denormal, is_nan, ordinals
from mlx_assay.fixtures.kind import Kind, kinds
from mlx_assay.fixtures.power import digest, free_passes
from mlx_assay.fixtures.tensor import DTYPES, Tensor

MODULES = (softcap, softcap_values, softcap_sweeps, softcap_calls)
KINDS: list[Kind] = [kind for module in MODULES for kind in module.KINDS]
FUSED = [kind for kind in KINDS if kind.operation == OPERATIONS[0]]
JUDGED = [kind for kind in KINDS if "error" not in kind.tags]
ERRORS = [kind for kind in KINDS if "error" in kind.tags]


def name_of(kind: Kind) -> str:
    return f"{kind.operation}/{kind.name}"


def named(operation: str, name: str) -> Kind:
    return next(kind for kind in KINDS if (kind.operation, kind.name) == (operation, name))


def quick(kind: Kind) -> Iterator[tuple[Case, list[Subcase]]]:
    for case in kind.listed():
        yield case, kind.subcases(case)


def x_of(subcase: Subcase) -> Tensor:
    x = subcase.arguments["x"]
    assert isinstance(x, Tensor)
    return x


def cap_in(subcase: Subcase) -> Cap:
    cap = subcase.arguments["cap"]
    assert isinstance(cap, int | float)
    return cap


def cap_as(dtype: str, cap: Cap) -> np.ndarray:
    """A Python number as MLX makes it: through float32 to the dtype."""
    with np.errstate(over="ignore", under="ignore"):
        return np.array(cap, np.float64).astype(np.float32).astype(DTYPES[dtype])


def capped(subcase: Subcase) -> np.ndarray:
    """tanh(x / cap) * cap in float64, rounded to x's dtype after each operation."""
    x = x_of(subcase).array
    cap = cap_as(str(x.dtype), cap_in(subcase)).astype(np.float64)
    with np.errstate(all="ignore"):
        quotient = (x.astype(np.float64) / cap).astype(x.dtype)
        bent = np.tanh(quotient.astype(np.float64)).astype(x.dtype)
        return np.asarray(bent.astype(np.float64) * cap).astype(x.dtype)


def answered(*subcases: Subcase) -> tuple[tuple[Subcase, ...], list[np.ndarray], list[np.ndarray]]:
    """Subcases, what an operation might hand back untouched, and what is right."""
    return subcases, [x_of(subcase).array for subcase in subcases], [capped(subcase) for subcase in subcases]


def test_there_are_many_cases_and_the_quick_ones_are_small() -> None:
    cases = [subcases for kind in KINDS for _, subcases in quick(kind)]
    sizes = np.array([x_of(subcase).base.size for subcases in cases for subcase in subcases])
    assert len(cases) >= 350
    assert sizes.sum() < 60_000_000
    assert np.mean(sizes <= 4097) > 0.98
    assert sum(1 for kind in KINDS for _ in kind.cases("full")) >= len(cases) + 2000


def test_ids_are_unique_and_read_back() -> None:
    ids = [case.id for kind in KINDS for case in kind.cases("full")]
    assert len(set(ids)) == len(ids)
    assert all(Case.parse(text).id == text for text in ids)


def test_every_kind_is_discovered() -> None:
    known = kinds()
    assert all(known[kind.operation, kind.name] is kind for kind in KINDS)


def test_both_operations_have_the_same_kinds() -> None:
    names = {operation: [kind.name for kind in KINDS if kind.operation == operation] for operation in OPERATIONS}
    assert names[OPERATIONS[0]] == names[OPERATIONS[1]] != []


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_an_id_alone_gives_the_same_bits_again(kind: Kind) -> None:
    for case, subcases in quick(kind):
        assert digest(kind.subcases(Case.parse(case.id))) == digest(subcases), case.id


@pytest.mark.parametrize("kind", [kind for kind in FUSED if kind.seeded], ids=name_of)
def test_another_seed_gives_other_bits(kind: Kind) -> None:
    first, other = next(kind.cases("quick")), next(kind.cases("quick", seed=1001))
    assert digest(kind.subcases(first)) != digest(kind.subcases(other))


@pytest.mark.parametrize("kind", JUDGED, ids=name_of)
def test_answers_that_cost_no_work_fail(kind: Kind) -> None:
    for case in kind.cases("full" if kind.operation == OPERATIONS[0] else "quick"):
        subcases = kind.subcases(case)
        assert all(not subcase.raises for subcase in subcases), case.id
        assert len({subcase.label for subcase in subcases}) == len(subcases), case.id
        assert free_passes(*answered(*subcases)) == [], case.id


def test_cases_without_power_are_told() -> None:
    x = np.array([1.0, 2.0, 30.0], np.float32)
    assert free_passes(*answered(softcap_call("a", x, math.nan), softcap_call("b", 2 * x, math.nan))) == [
        "the answer to a call of the same shape"
    ]
    assert free_passes(*answered(softcap_call("a", x / 1e9, 30), softcap_call("b", x / 1e8, 30)))[:1] != ["zeros"]
    assert "the input" in free_passes(*answered(softcap_call("a", x, 2.0**60), softcap_call("b", -x, 2.0**60)))
    assert "zeros" in free_passes(*answered(softcap_call("a", x, 0), softcap_call("b", 2 * x, 0)))


@pytest.mark.parametrize("path", ["shape/odd-size?rows=1&size=1", "shape/rank?cap=30&rank=0"])
def test_few_inputs_never_lie_all_where_the_curve_is_straight(path: str) -> None:
    for seed in range(1000):
        case = Case.parse(f"logit_softcap/bfloat16/{path}&seed={seed}")
        inputs = [x_of(subcase).array for subcase in named("logit_softcap", case.kind).subcases(case)]
        assert max(float(np.abs(x.astype(np.float32)).max()) for x in inputs) >= 30 / 4


@pytest.mark.parametrize("kind", ERRORS, ids=name_of)
def test_error_cases_name_what_must_be_raised(kind: Kind) -> None:
    for case, subcases in quick(kind):
        assert subcases, case.id
        for subcase in subcases:
            assert set(subcase.raises) == {"TypeError", "ValueError"}
            cap, x = subcase.arguments["cap"], subcase.arguments["x"]
            assert isinstance(x, Tensor)
            number = isinstance(cap, int | float) and not isinstance(cap, bool)
            assert not number or x.dtype not in FLOATS


def holds(tag: str, x: np.ndarray, cap: np.ndarray) -> bool:
    """Whether x or the cap, as the dtype has it, is what a tag promises."""
    both = np.concatenate([x.reshape(-1), cap.reshape(-1)])
    dtype = str(x.dtype)
    if tag == "nan":
        return bool(is_nan(both).any())
    if tag == "denormal":
        return bool(is_denormal(both).any())
    wanted = {"inf": ("infinity",), "signed-zero": ("zero",), "extreme": ("extreme", "infinity")}[tag]
    return bool(np.isin(bits_of(both), bits_of(edges(dtype, *wanted))).any())


@pytest.mark.parametrize("kind", JUDGED, ids=name_of)
def test_tags_promise_what_the_cases_hold(kind: Kind) -> None:
    for case, subcases in quick(kind):
        own = [subcase for subcase in subcases if x_of(subcase).dtype == case.dtype]
        for tag in set(kind.tags) & {"nan", "inf", "signed-zero", "denormal", "extreme"}:
            assert any(holds(tag, x_of(s).array, cap_as(case.dtype, cap_in(s))) for s in own), f"{case.id}: no {tag}"
        if "strided" in kind.tags and "contiguous" not in dict(case.parameters).values():
            assert all(x_of(subcase).steps for subcase in subcases), case.id
        if "large-vocab" in kind.tags:
            assert all(x_of(subcase).base.shape[-1] >= 32000 for subcase in subcases), case.id


@pytest.mark.parametrize("kind", [kind for kind in FUSED if kind.name.startswith("cap/")], ids=name_of)
def test_the_cap_of_the_id_is_used_beside_ordinary_ones(kind: Kind) -> None:
    for case, subcases in quick(kind):
        wanted = cap_as(case.dtype, cap_of(dict(case.parameters)["cap"])).tobytes()
        used = [cap_as(case.dtype, cap_in(subcase)).tobytes() for subcase in subcases]
        assert used.count(wanted) >= 2, case.id


def test_tables_of_caps_are_what_they_are_called() -> None:
    for dtype in ("bfloat16", "float16", "float32"):
        assert all(cap_as(dtype, cap) == 0 for cap in (*caps.ZERO, *caps.UNDERFLOWING))
        assert all(np.isinf(cap_as(dtype, cap)) for cap in (*caps.INFINITE, *caps.OVERFLOWING))
        assert all(float(cap_as(dtype, cap)) == cap for cap in caps.PLAIN)
    for dtype in ("bfloat16", "float32"):
        assert all(is_denormal(cap_as(dtype, cap)) for cap in caps.DENORMAL)
        finite = [cap_as(dtype, cap) for cap in (*caps.HUGE, *caps.MINUTE)]
        assert all(np.isfinite(cap) and not is_denormal(cap) for cap in finite)
    assert all(np.isinf(cap_as("float16", cap)) for cap in caps.HALF_OVERFLOWING)
    assert all(np.isfinite(cap_as("float16", cap)) for cap in caps.HALF_HUGE)
    assert [int(bits_of(cap_as("float16", cap))[0]) for cap in caps.HALF_DENORMAL] == [17, 1, 0, 1]
    assert int(bits_of(cap_as("float16", caps.TINY[2]))[0]) == 1 << 10


def test_caps_rounded_twice_differ_from_caps_rounded_once() -> None:
    """2^-30 above a tie rounds up, but float32 has lost it, and the tie goes to even: down."""
    assert float(cap_as("bfloat16", caps.ROUNDED_TWICE[0])) == 1.0
    assert float(cap_as("float16", caps.ROUNDED_TWICE[1])) == 1.0
    assert float(np.float64(caps.ROUNDED_TWICE[1]).astype(np.float16)) == 1 + 2.0**-10


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_exhaustive_cases_hold_every_encoding_once(operation: str, dtype: str) -> None:
    kind = named(operation, "exhaustive/every-encoding")
    for case, subcases in quick(kind):
        if case.dtype == dtype:
            seen = np.concatenate([bits_of(x_of(subcase).array) for subcase in subcases])
            assert np.array_equal(np.sort(seen), np.arange(65536))
            assert all(x_of(subcase).base.size == 4096 for subcase in subcases)


def test_sweeps_hold_neighbouring_encodings() -> None:
    for name in ("zero", "one", "bend", "saturation", "overflow"):
        for _, subcases in quick(named(OPERATIONS[0], f"sweep/{name}")):
            assert all(np.all(np.diff(ordinals(x_of(subcase).array)) == 1) for subcase in subcases)


def test_overflow_sweeps_straddle_the_largest_exponential() -> None:
    for case, subcases in quick(named(OPERATIONS[0], "sweep/overflow")):
        cap = abs(float(cap_of(dict(case.parameters)["cap"])))
        doubled = [np.abs(x_of(subcase).array.astype(np.float64)) / cap for subcase in subcases]
        limit = math.log(float(np.finfo(np.float32).max))
        for factor in (1, 2):
            assert any(x.min() < limit / factor < x.max() for x in doubled), (case.id, factor)


def test_published_vectors_are_there_and_tell_roundings_apart() -> None:
    integers = softcap_call("x", np.array([30.0], DTYPES["bfloat16"]), 50)
    assert float(capped(integers)[0]) == 27.0
    assert float(np.float32(math.tanh(0.6) * 50).astype(DTYPES["bfloat16"])) == 26.875
    for dtype, answer in (("bfloat16", 29.875), ("float16", 29.921875)):
        assert float(capped(softcap_call("x", np.array([100.0], DTYPES[dtype]), 30))[0]) == answer
    for case, subcases in quick(named(OPERATIONS[0], "values/rounded-each-step")):
        assert {30.0, 100.0} <= set(x_of(subcases[0]).array.astype(np.float64).tolist()), case.id
    for _, subcases in quick(named(OPERATIONS[0], "values/saturated")):
        for subcase in subcases:
            largest = np.abs(x_of(subcase).array.astype(np.float64))
            assert np.isinf(largest).any()
            assert (largest == float(cap_as(x_of(subcase).dtype, 1331))).any()


def test_one_graph_sees_an_empty_array_between_others() -> None:
    for _, subcases in quick(named(OPERATIONS[0], "reuse/changing-shapes")):
        assert [x_of(subcase).base.shape for subcase in subcases][:5] == [(1, 8), (2, 5), (3, 1), (0, 4), (1, 8)]


@given(st.floats() | st.integers(-(2**31), 2**31))
def test_caps_come_back_from_their_text(cap: Cap) -> None:
    text = cap_text(cap)
    parameters = dict(Case.parse(Case.make("op", "float32", "kind", {"cap": text}).id).parameters)
    back = cap_of(parameters["cap"])
    assert type(back) is type(cap)
    assert repr(back) == repr(cap)


def test_text_that_is_no_cap_is_refused() -> None:
    with pytest.raises(ValueError, match="hex text of a float but got 'thirty'"):
        cap_of("thirty")


PINNED = {
    "compiled_logit_softcap/bfloat16/exhaustive/every-encoding?cap=30": "307d81c42980f145fe4634f924e7d6a0",
    "logit_softcap/float32/cap/inexact?cap=0x1.5555555555555p-2&seed=0": "c2f4c31250b704ace5900c2c509a6c02",
    "logit_softcap/float16/values/saturated?cap=30&seed=0": "9f87007d8be42d42919f7103aee486ca",
    "compiled_logit_softcap/float32/sweep/strided?cap=30&seed=0": "37ec2f712910429716b02fbb78162777",
    "compiled_logit_softcap/float32/sweep/overflow?cap=0x1.999999999999ap-4": "30e7a0122af10a7cfdf111da537c441c",
    "logit_softcap/bfloat16/view/named?cap=30&view=reversed-both&seed=0": "16c8ebcb8ca3c5fa93e450100674a4de",
}


@pytest.mark.parametrize("text", PINNED)
def test_bits_stay_for_ever(text: str) -> None:
    case = Case.parse(text)
    assert digest(named(case.operation, case.kind).subcases(case)) == PINNED[text]
