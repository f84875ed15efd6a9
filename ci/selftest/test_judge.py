"""The judge: verdicts, oracles held against each other, power, and the text that a person reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from mlx_assay.conformance.contract import Arguments, Contract, Reference
from mlx_assay.conformance.judging.judge import applicable, judge
from mlx_assay.conformance.judging.panel import Panel
from mlx_assay.conformance.judging.power import TWINS, powerless_twin
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import Kind
from mlx_assay.fixtures.tensor import Tensor

SOURCE = """
import mlx.core as mx

def double(x):
    return x + x

def other_nan(x):
    return mx.where(mx.isnan(x), -x, x + x)

def flushed(x):
    return mx.where(mx.abs(x) < 2.0**-126, 0.0, x + x)

def one_ulp(x):
    return ((x + x).view(mx.uint32) + 1).view(mx.float32)

def refuses(x):
    raise ValueError(f"no {x.ndim}-d input")

def identifiers(x):
    return mx.argmax(x, axis=-1)
"""

OPERATIONS = ("double", "other_nan", "flushed", "one_ulp", "refuses", "identifiers")
Make = Callable[..., Record]


def oracle(
    name: str = "right", compute: Callable[[np.ndarray], np.ndarray] = lambda x: x + x, fault: str = ""
) -> SimpleNamespace:
    """An oracle of the test's own; `fault` is what its self-test finds."""
    tested: list[str] = []

    def self_test() -> None:
        tested.append(name)
        if fault:
            raise RuntimeError(fault)

    return SimpleNamespace(NAME=name, version=lambda: "1.0", self_test=self_test, double=compute, tested=tested)


def absent() -> SimpleNamespace:
    def version() -> str:
        raise ImportError("no such library")

    return SimpleNamespace(NAME="absent", version=version)


class Shelf:
    """A loader of oracles by name; hashable, so that self-tests are remembered a shelf."""

    def __init__(self, *oracles: SimpleNamespace) -> None:
        self.oracles = {found.NAME: found for found in oracles}

    def __call__(self, name: str) -> Any:
        return self.oracles[name]


def reference(shelf: Shelf, name: str, conforms: Verdict = Verdict.SAME_VALUE, ulps: int | None = None) -> Reference:
    def compute(arguments: Arguments) -> np.ndarray:
        expected: np.ndarray = shelf(name).double(arguments["x"])
        return expected

    return Reference(name, compute, conforms, None if ulps is None else lambda arguments, expected: ulps)


def one_reference(shelf: Shelf, rung: Verdict = Verdict.SAME_VALUE, ulps: int | None = None) -> tuple[Reference, ...]:
    return (reference(shelf, next(iter(shelf.oracles)), rung, ulps),)


def numbers(*rows: Iterable[float]) -> list[Subcase]:
    return [Subcase(f"row-{i}", {"x": Tensor(np.array(list(row), np.float32))}) for i, row in enumerate(rows)]


PLAIN = numbers([1, 2, 3], [4, 5, 6])


@pytest.fixture(scope="module")
def implementation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Implementation]:
    folder = tmp_path_factory.mktemp("judged")
    (folder / "own_double.py").write_text(SOURCE)
    with (
        pytest.MonkeyPatch.context() as patch,
        Implementation("own_double", "host", 30.0, operations=OPERATIONS) as made,
    ):
        patch.syspath_prepend(folder)
        yield made


@pytest.fixture
def judged(implementation: Implementation) -> Make:
    """Judges subcases of an operation against references of a shelf."""

    def make(
        operation: str,
        subcases: list[Subcase],
        shelf: Shelf,
        references: tuple[Reference, ...] | None = None,
        without: tuple[str, ...] = (),
        **fields: Any,
    ) -> Record:
        contract = Contract(operation, "", ("x",), ("float32",), references or one_reference(shelf), (), **fields)
        kind = Kind(operation, "own/kind", "Because.", ("found",), ("float32",), lambda draw, dtype: subcases)
        case = Case.make(operation, "float32", "own/kind", {"seed": 0})
        return judge(case, implementation, contract=contract, kind=kind, oracles=shelf, without=without)

    return make


def test_equal_bits_conform(judged: Make) -> None:
    record = judged("double", PLAIN, Shelf(oracle()))
    assert (record.verdict, record.conforms, record.message, record.difference) == (Verdict.SAME_BITS, True, "", None)
    assert (record.oracle, record.oracles, record.missing, record.subcases) == ("right", ["right"], [], 2)
    assert (record.why, record.tags, record.relaxations) == ("Because.", ["found"], [])
    assert (
        record.replay == "mlx-assay replay 'double/float32/own/kind?seed=0' --implementation own_double --executor host"
    )
    assert msgspec.json.decode(msgspec.json.encode(record), type=Record) == record


def test_a_relaxation_that_was_needed_is_named(judged: Make) -> None:
    subcases = numbers([np.nan, 1], [2, 3])
    record = judged("other_nan", subcases, Shelf(oracle()))
    assert (record.verdict, record.conforms, record.relaxations) == (Verdict.SAME_VALUE, True, ["nan-any"])
    strict = judged("other_nan", subcases, Shelf(oracle()), relaxations=())
    assert (strict.verdict, strict.conforms) == (Verdict.DIFFERS, False)


def test_a_rung_below_the_one_that_is_asked_for_differs(judged: Make) -> None:
    shelf = Shelf(oracle())
    record = judged("other_nan", numbers([np.nan, 1], [2, 3]), shelf, one_reference(shelf, Verdict.SAME_BITS))
    assert (record.verdict, record.conforms) == (Verdict.DIFFERS, False)
    assert "policy same-bits" in record.message


def test_a_distance_within_the_bound_conforms(judged: Make) -> None:
    shelf = Shelf(oracle())
    bounded = one_reference(shelf, Verdict.WITHIN_ULP, 1)
    assert judged("one_ulp", PLAIN, shelf, bounded).verdict is Verdict.WITHIN_ULP
    assert judged("double", PLAIN, shelf, bounded).verdict is Verdict.SAME_BITS
    narrow = judged("one_ulp", PLAIN, shelf, one_reference(shelf, Verdict.WITHIN_ULP, 0))
    assert (narrow.verdict, narrow.difference and narrow.difference.worst_ulp) == (Verdict.DIFFERS, 1)


def neighbour(x: np.ndarray) -> np.ndarray:
    return np.nextafter(x + x, np.float32(np.inf))


def test_an_independent_bound_does_not_weaken_equal_bits(judged: Make) -> None:
    shelf = Shelf(oracle(), oracle("near", neighbour))
    references = (reference(shelf, "right"), reference(shelf, "near", Verdict.WITHIN_ULP, 1))
    assert judged("double", PLAIN, shelf, references).verdict is Verdict.SAME_BITS
    assert judged("one_ulp", PLAIN, shelf, references).verdict is Verdict.DIFFERS


def test_oracles_that_disagree_are_no_fault_of_the_implementation(judged: Make) -> None:
    shelf = Shelf(oracle(), oracle("near", neighbour))
    record = judged("double", PLAIN, shelf, (reference(shelf, "right"), reference(shelf, "near")))
    assert (record.verdict, record.conforms) == (Verdict.ORACLES_DISAGREE, False)
    assert "Oracles right 1.0 and near 1.0 disagree at [0]: 0x40000000 against 0x40000001 (3 of 3" in record.message


@pytest.mark.parametrize("wrong", [lambda x: (x + x)[:2], lambda x: (x + x).astype(np.float16)], ids=["shape", "dtype"])
def test_oracles_of_other_shapes_disagree(judged: Make, wrong: Callable[[np.ndarray], np.ndarray]) -> None:
    shelf = Shelf(oracle(), oracle("wrong", wrong))
    record = judged("double", PLAIN, shelf, (reference(shelf, "right"), reference(shelf, "wrong")))
    assert record.verdict is Verdict.ORACLES_DISAGREE
    assert "Oracles right 1.0 and wrong 1.0 disagree" in record.message


def raising(x: np.ndarray) -> np.ndarray:
    raise ZeroDivisionError("out of order")


def test_an_oracle_that_raises_is_named(judged: Make) -> None:
    record = judged("double", PLAIN, Shelf(oracle("broken", raising)))
    assert record.verdict is Verdict.ORACLES_DISAGREE
    assert "Oracle broken 1.0 raised ZeroDivisionError: out of order" in record.message


def test_a_self_test_that_fails_is_named_and_runs_once(judged: Make) -> None:
    sound, broken = oracle(), oracle("broken", fault="expected 2 but got 3")
    shelf = Shelf(sound, broken)
    references = (reference(shelf, "right"), reference(shelf, "broken"))
    for _ in range(3):
        record = judged("double", PLAIN, shelf, references)
        assert record.verdict is Verdict.ORACLES_DISAGREE
        assert "self-test of oracle broken 1.0 failed: RuntimeError: expected 2 but got 3" in record.message
    assert (sound.tested, broken.tested) == (["right"], ["broken"])


def test_a_missing_oracle_is_listed_and_the_others_judge(judged: Make) -> None:
    shelf = Shelf(oracle(), absent())
    record = judged("double", PLAIN, shelf, (reference(shelf, "absent"), reference(shelf, "right")))
    assert (record.verdict, record.oracle, record.oracles) == (Verdict.SAME_BITS, "right", ["right"])
    assert record.missing == ["absent"]


def test_without_any_oracle_nothing_is_judged(judged: Make) -> None:
    record = judged("double", PLAIN, Shelf(absent()))
    assert (record.verdict, record.conforms, record.missing) == (Verdict.NOT_RUN, False, ["absent"])
    assert "absent missing" in record.message


def test_an_oracle_without_an_opinion_is_not_asked(judged: Make) -> None:
    shelf = Shelf(oracle(), oracle("broken", raising))
    silent = Reference("broken", lambda arguments: raising(arguments["x"]), applies=lambda arguments: False)
    assert judged("double", PLAIN, shelf, (reference(shelf, "right"), silent)).verdict is Verdict.SAME_BITS
    alone = judged("double", PLAIN, shelf, (silent,))
    assert alone.verdict is Verdict.ORACLES_DISAGREE
    assert "No oracle of the contract has an opinion" in alone.message


@pytest.mark.parametrize(
    ("rows", "twin"),
    [
        (([0, 0], [0, 0]), "an output of zeros"),
        (([np.inf, np.inf], [-np.inf, np.inf]), "the input itself"),
        (([1, 2], [1, 2]), "the output of the previous call"),
        (([1, 2],), "the output of the previous call"),
    ],
    ids=["zeros", "input", "previous", "alone"],
)
def test_a_case_without_power_is_the_suites_fault(judged: Make, rows: Any, twin: str) -> None:
    record = judged("double", numbers(*rows), Shelf(oracle()))
    assert (record.verdict, record.conforms) == (Verdict.NOT_RUN, False)
    assert f"case without power: {twin} would conform to all of it" in record.message


def test_one_subcase_with_power_is_enough(judged: Make) -> None:
    assert judged("double", numbers([0, 0], [0, 0], [0, 1]), Shelf(oracle())).verdict is Verdict.SAME_BITS


def test_a_kind_without_subcases_is_not_run(judged: Make) -> None:
    assert judged("double", [], Shelf(oracle())).verdict is Verdict.NOT_RUN


def test_a_function_that_is_not_there_is_unsupported(judged: Make) -> None:
    record = judged("triple", PLAIN, Shelf(oracle()))
    assert record.verdict is Verdict.UNSUPPORTED
    assert "no function triple" in record.message


def test_an_expected_exception_conforms_and_its_absence_does_not(judged: Make) -> None:
    refused = [Subcase("bad", {"x": Tensor(np.zeros(2, np.float32))}, raises=("TypeError", "ValueError"))]
    assert judged("refuses", refused, Shelf(oracle())).verdict is Verdict.SAME_BITS
    record = judged("double", refused, Shelf(oracle()))
    assert record.verdict is Verdict.ERROR
    assert "got float32 2, expected TypeError or ValueError to be raised" in record.message
    other = [Subcase("bad", {"x": Tensor(np.zeros(2, np.float32))}, raises=("TypeError",))]
    record = judged("refuses", other, Shelf(oracle()))
    assert record.verdict is Verdict.ERROR
    assert "raised ValueError: no 1-d input, expected TypeError" in record.message


def test_a_mistake_outranks_a_difference(judged: Make) -> None:
    mixed = [*numbers([1, 2], [3, 4]), Subcase("bad", {"x": Tensor(np.zeros(2, np.float32))}, raises=("ValueError",))]
    assert judged("one_ulp", mixed, Shelf(oracle())).verdict is Verdict.ERROR


@pytest.mark.parametrize(
    ("description", "names"),
    [
        ({"f32_denormals": "flushed"}, ("nan-any", "denormal-flush", "denormal-sum")),
        ({"f32_denormals": "kept"}, ("nan-any",)),
        ({}, ("nan-any",)),
    ],
)
def test_denormals_may_be_flushed_only_where_the_executor_says_so(
    description: dict[str, str], names: tuple[str, ...]
) -> None:
    assert applicable(("nan-any", "denormal-flush", "denormal-sum"), {"executor": description}) == names


def test_flushed_denormals_need_their_relaxation(judged: Make) -> None:
    subcases = numbers([1e-40, 1], [2, 3])
    relaxed = judged("flushed", subcases, Shelf(oracle()), relaxations=("denormal-flush",))
    assert (relaxed.verdict, relaxed.relaxations) == (Verdict.SAME_VALUE, ["denormal-flush"])
    assert judged("flushed", subcases, Shelf(oracle()), relaxations=("nan-any",)).verdict is Verdict.DIFFERS


def test_the_text_of_a_lost_tie_reads_as_the_documentation_has_it(judged: Make) -> None:
    rows = np.array([[5, 1, 0, 0], [1, 9, 9, 9]], np.float32)
    strided = np.repeat(np.stack([rows[::-1], rows]), 2, axis=2)
    steps = (("slice", ((None, None, None), (None, None, 2))),)
    subcases = [Subcase(f"part-{i}", {"x": Tensor(part, steps)}) for i, part in enumerate(strided)]

    def last(x: np.ndarray) -> np.ndarray:
        return (x.shape[-1] - 1 - x[..., ::-1].argmax(-1)).astype(np.uint32)

    shelf = Shelf(oracle("last-wins", last))
    record = judged("identifiers", subcases, shelf, explain=lambda arguments, got, want, index: f"tie lost at {index}")
    assert record.verdict is Verdict.DIFFERS
    assert record.message == (
        "identifiers[float32 2x4 strided] row 0: got 1 want 3 (tie lost at (0,), 1 of 2 places)\n"
        "  policy same-value · oracle last-wins 1.0 · executor host · "
        "mlx-assay replay 'identifiers/float32/own/kind?seed=0' --implementation own_double --executor host"
    )
    assert record.difference is not None
    assert (record.difference.subcase, record.difference.oracle) == ("part-0", "last-wins 1.0")
    assert [(place.index, place.got, place.want) for place in record.difference.places] == [
        ([0], "0x00000001", "0x00000003")
    ]


def test_the_text_of_a_float_shows_bits_and_value(judged: Make) -> None:
    record = judged("one_ulp", PLAIN, Shelf(oracle()))
    first = record.message.splitlines()[0]
    assert (
        first
        == "one_ulp[float32 3] at [0]: got 0x40000001 (2.00000024) want 0x40000000 (2) (worst 1 ULP, 3 of 3 places)"
    )


def test_an_oracle_that_is_left_out_is_neither_asked_nor_missed(judged: Make) -> None:
    wrong = oracle("wrong-one", lambda x: x)
    shelf = Shelf(oracle(), wrong, absent())
    shelf.oracles["wrong_one"] = wrong
    references = (*one_reference(shelf), reference(shelf, "wrong_one"), reference(shelf, "absent"))
    assert judged("double", PLAIN, shelf, references).verdict is Verdict.ORACLES_DISAGREE
    record = judged("double", PLAIN, shelf, references, without=("wrong-one", "absent"))
    assert (record.verdict, record.oracles, record.missing) == (Verdict.SAME_BITS, ["right"], [])
    assert judged("double", PLAIN, shelf, references[:1], without=("right",)).verdict is Verdict.NOT_RUN


def test_an_oracle_that_shares_a_runtime_does_not_judge_alone(judged: Make) -> None:
    shelf = Shelf(oracle("own"), oracle("shared"))
    shared = replace(reference(shelf, "shared"), alone=False)
    silent = replace(reference(shelf, "own"), applies=lambda arguments: False)
    assert judged("double", PLAIN, shelf, (reference(shelf, "own"), shared)).verdict is Verdict.SAME_BITS
    record = judged("double", PLAIN, shelf, (silent, shared))
    assert record.verdict is Verdict.ORACLES_DISAGREE
    assert "No oracle of the contract has an opinion" in record.message


def test_an_explanation_that_fails_does_not_end_the_judge(judged: Make) -> None:
    def explain(*rest: Any) -> str:
        raise IndexError("beyond")

    record = judged("one_ulp", PLAIN, Shelf(oracle()), explain=explain)
    assert record.verdict is Verdict.DIFFERS
    assert "no explanation: IndexError: beyond" in record.message


def test_every_twin_is_found_where_it_conforms() -> None:
    shelf = Shelf(oracle())
    panel = Panel(Contract("double", "", ("x",), ("float32",), one_reference(shelf), ()), shelf, ())
    found = set()
    for rows in ([0.0], [0.0]), ([np.inf], [-np.inf]), ([1.0], [1.0]):
        subcases = numbers(*rows)
        expected = [panel.expect({"x": subcase.arguments["x"].array}) for subcase in subcases]  # type: ignore[union-attr]
        found.add(powerless_twin(subcases, expected, ()))
    assert found == set(TWINS)
