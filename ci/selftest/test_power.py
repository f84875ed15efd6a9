"""Power: implementations that do nothing fail every case of the quick tier, and the small ones of the full."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scripts import script

from mlx_assay.conformance.contract import contracts
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import SIZES, all_cases, kind_of, kinds

SMALL = 5
"""The largest vocabulary, or number of rows, of a case in which chance alone may make every answer the same."""
SEED = 7


def told(cases: Iterator[Case]) -> list[str]:
    powerless = script("power").powerless
    return [f"{case.id}: {twin}" for case in cases if (twin := powerless(case))]


@pytest.mark.parametrize("operation", sorted(contracts()))
def test_a_twin_without_work_fails_every_quick_case(operation: str) -> None:
    """Zeros, the input, the previous output: against the primary oracle alone, so that a failure is beyond doubt."""
    assert told(case for case in all_cases("quick") if case.operation == operation) == []


def small(case: Case) -> bool:
    sizes = [value for key, value in case.parameters if key in SIZES]
    return any(sizes) and all(isinstance(size, int) and size <= SMALL for size in sizes)


def test_a_twin_without_work_fails_every_small_case_that_is_drawn_afresh() -> None:
    """ci/power.py asks the others; of each case that is large, chance would have to decide many answers."""
    cases = [case for case in all_cases("full", SEED) if small(case)]
    assert len(cases) > 2000
    assert told(iter(cases)) == []


@pytest.mark.parametrize(
    "name",
    [
        "argmax_given/float16/chunks/address?rows=3&vocab=2&seed=1",
        "normalized_argmax/float32/chunks/address?rows=3&vocab=2&seed=2",
        "argmax_given/bfloat16/large/rounding?vocab=32000&seed=1034",
        "logit_softcap/bfloat16/view/named?cap=50&columns=1&view=broadcast-rows&seed=1033",
    ],
)
def test_cases_that_chance_left_without_power_have_it(name: str) -> None:
    assert script("power").powerless(Case.parse(name)) is None


def test_a_case_without_power_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case.parse("argmax_given/float32/chunks/address?rows=9&vocab=9&seed=1")
    first: list[Subcase] = kind_of(case).subcases(case)[:1]
    power = script("power")
    monkeypatch.setattr("sys.argv", ["power.py", case.path, "--tier", "quick", "--seeds", "0", "1"])
    assert power.main() == 0
    assert capsys.readouterr().out.endswith(" cases, 0 without power\n")
    monkeypatch.setattr(type(kinds()[case.operation, case.kind]), "subcases", lambda kind, case: first)
    assert power.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(": the output of the previous call would conform to all of it")
    count = int(lines[-1].split()[0])
    assert len(lines) == count + 1
    assert lines[-1] == f"{count} cases, {count} without power"
