"""Queries and selections: what is meant, what is refused, and what is near."""

from __future__ import annotations

import pytest

from mlx_assay.conformance import options
from mlx_assay.conformance.query import Query, QueryError
from mlx_assay.conformance.selection import NothingSelected, operations, replayed, select, tags_of
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import TIERS, all_cases

CASE = Case.make("normalized_argmax", "bfloat16", "ties/tile-edge", {"rows": 3, "vocab": 1025, "seed": 7})


@pytest.mark.parametrize(
    "query",
    [
        "normalized_argmax",
        "normalized_argmax/bfloat16",
        "normalized_argmax/*",
        "*/bfloat16/ties*",
        "*tile-edge",
        "*",
        "*?rows=3",
        "*?vocab=1025&seed=7",
        "*?vocab=10*",
        "*?tag=ties",
        "*?tag=ti*&rows=3",
        "normalized_argmax/bfloat16/ties?seed=7",
        CASE.id,
    ],
)
def test_a_query_means_a_case(query: str) -> None:
    assert Query.parse(query).matches(CASE, ("ties", "odd-shape"))


@pytest.mark.parametrize(
    "query",
    [
        "normalized",
        "normalized_argmax/bf*/nan*",
        "*/float16/*",
        "*?rows=30",
        "*?rows=3&vocab=1",
        "*?columns=3",
        "*?tag=nan",
        "*?tag=tie",
        "tile-edge",
        "NORMALIZED_ARGMAX/*",
    ],
)
def test_a_query_does_not_mean_a_case(query: str) -> None:
    assert not Query.parse(query).matches(CASE, ("ties", "odd-shape"))


@pytest.mark.parametrize("text", ["", "?rows=3", "/normalized_argmax", "a//b", "normalized_argmax/", "*?rows", "*?=3"])
def test_a_malformed_query_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="Expected"):
        Query.parse(text)


@pytest.mark.parametrize(
    ("query", "what"),
    [("softcap/*", "operation"), ("normalized_argmin", "operation"), ("normalized_argmax/f16/*", "dtype")],
)
def test_unknown_names_are_told_apart_from_no_match(query: str, what: str) -> None:
    with pytest.raises(QueryError, match=f"Expected an? {what} .* but got"):
        select([query])


def test_no_match_names_the_nearest() -> None:
    with pytest.raises(NothingSelected, match=r"masc/random.*matches no case.*mask/random"):
        select(["apply_token_bitmask/float16/masc/random"])
    with pytest.raises(NothingSelected, match="matches no case"):
        select(["apply_token_bitmask/*", "*/no-such-kind"])


def test_a_selection_is_what_a_loop_finds() -> None:
    quick = list(all_cases("quick"))
    assert list(select([]).cases) == list(dict.fromkeys(quick))
    assert {case.id for case in select(["*/bfloat16/*"]).cases} == {c.id for c in quick if c.dtype == "bfloat16"}
    assert {case.id for case in select(["*?tag=nan"]).cases} == {c.id for c in quick if "nan" in tags_of(c)}
    both = select(["normalized_argmax", "*/bfloat16/*"]).cases
    assert len(both) == len({case.id for case in both})
    assert {c.id for c in both} == {c.id for c in quick if c.operation == "normalized_argmax" or c.dtype == "bfloat16"}


def test_the_full_tier_holds_the_quick_one() -> None:
    full = {case.id for case in select([], "full").cases}
    assert {case.id for case in select([]).cases} < full


def test_every_id_selects_itself() -> None:
    cases = list(all_cases("quick"))
    for case in cases[:: len(cases) // 25]:
        assert [found.id for found in select([case.id]).cases] == [case.id]


def test_a_whole_id_selects_no_case_that_has_its_parameters_and_more() -> None:
    short = "logit_softcap/float32/sweep/strided?cap=0x1.5555555555555p-2&seed=0"
    assert [case.id for case in select([short], "full").cases] == [short]
    wider = select([f"{short.replace('seed=0', 'seed=*')}"], "full").cases
    assert len(wider) > 1


def test_a_whole_id_beyond_the_tier_is_selected() -> None:
    case = next(case for case in all_cases("quick") if dict(case.parameters).get("seed") == 0)
    drawn = case.id.replace("seed=0", "seed=4711")
    assert [found.id for found in select([drawn]).cases] == [drawn]
    assert replayed(drawn).id == drawn


def test_a_seed_draws_fresh_ids_and_the_same_ones_again() -> None:
    first, again, plain = (
        {case.id for case in select(["normalized_argmax/*"], seed=seed).cases} for seed in (123, 123, 0)
    )
    seeded = {case_id for case_id in plain if "seed=" in case_id}
    assert first == again
    assert seeded
    assert not first & seeded


def test_operations_that_are_lacking_are_named() -> None:
    only = operations()[0]
    selection = select([], implemented=[only])
    assert {case.operation for case in selection.cases} == {only}
    assert set(selection.not_asked) == set(operations()) - {only}
    with pytest.raises(NothingSelected, match=f"has {only} but the queries ask for {operations()[1]}"):
        select([f"{operations()[1]}/*"], implemented=[only])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing/bfloat16/ties/tile-edge", "Expected an operation"),
        ("normalized_argmax/bf16/ties/tile-edge", "Expected a dtype"),
        ("normalized_argmax/bfloat16", "Expected a whole case id"),
        ("normalized_argmax/bfloat16/*", "Expected a whole case id"),
        ("normalized_argmax/bfloat16/tiess/tiles", r"nearest: .*ties"),
    ],
)
def test_an_id_that_cannot_be_replayed_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        replayed(text)


def test_a_missing_parameter_is_named() -> None:
    case = next(case for case in all_cases("quick") if dict(case.parameters).keys() > {"seed"})
    key = next(key for key, _ in case.parameters if key != "seed")
    with pytest.raises(QueryError, match=f"Expected the parameters .*{key}=..."):
        replayed(f"{case.path}?seed=0")


def test_tiers_are_those_of_the_fixtures() -> None:
    assert options.TIERS == TIERS


@pytest.mark.parametrize("text", ["-1", "1.5", "x", "", "2147483648", "¹"])
def test_a_wrong_seed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Expected a seed"):
        options.seed(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_a_wrong_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Expected a limit"):
        options.limit(text)


@pytest.mark.parametrize("name", ["loadscope", "loadfile", "loadgroup", "each"])
def test_a_distribution_that_loses_cases_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="Expected --dist load or worksteal"):
        options.distribution(name)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("apply_token_bitmask/*?tag=nam", "tag is nan, .* not 'nam'"),
        ("normalized_argmax/*?row=3", "there is no parameter 'row', expected .*rows, .*tag, vocab"),
        ("normalized_argmax/*?rows=31234", "rows is .*, not '31234'"),
    ],
)
def test_a_filter_that_fits_nothing_is_named_with_what_would_fit(query: str, said: str) -> None:
    with pytest.raises(NothingSelected, match=said):
        select([query])
