"""The policy of this project's own release: a whole run and a whole campaign pass it, and nothing less."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from sound import Gate, replaying, report

from mlx_assay.conformance.mutation import report as campaigns
from mlx_assay.conformance.mutation.mutant import Mutant, all_mutants
from mlx_assay.conformance.mutation.ruling import Ruling
from mlx_assay.conformance.mutation.source import SERVED
from mlx_assay.conformance.reporting.report import Implementation, Report, Totals
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE

ROOT = Path(__file__).parents[2]
ASKED = (ROOT / "ci/gate.toml").read_text()


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys.readouterr)


@pytest.fixture(scope="module")
def whole() -> Report:
    plain = report(queries=[])
    packages = {name: told.lstrip("=") for name, told in tomllib.loads(ASKED)["packages"].items()}
    environment = msgspec.structs.replace(plain.environment, packages=packages)
    named = Implementation(name="mlx_assay.impl", operations=plain.implementation.operations)
    return replaying(msgspec.structs.replace(plain, environment=environment, implementation=named))


def campaign(gate: Gate, mutants: Sequence[Mutant], survivors: int = 0) -> list[str]:
    """The option that gives the gate a campaign over mutants, the first of which survive."""
    rulings = [
        Ruling(mutant.id, "survived") if place < survivors else Ruling(mutant.id, "killed", "a/b/c")
        for place, mutant in enumerate(mutants)
    ]
    made = campaigns.campaign(mutants, rulings, complete=True, seconds=1.0, workers=2)
    return ["--mutants", gate.file("mutants.json", campaigns.encode(made))]


def test_a_whole_run_passes_and_nothing_less(whole: Report, gate: Gate) -> None:
    options = campaign(gate, list(all_mutants().values()))
    assert gate(whole, policy=ASKED, options=options) == EXIT_CONFORMS, gate.text
    for lost in whole.environment.packages:
        fewer = {name: told for name, told in whole.environment.packages.items() if name != lost}
        environment = msgspec.structs.replace(whole.environment, packages=fewer)
        less = msgspec.structs.replace(whole, environment=environment)
        assert gate(less, policy=ASKED, options=options) == EXIT_INCOMPLETE
        assert f"package {lost} " in gate.text
    cases = whole.cases[:-1]
    less = msgspec.structs.replace(whole, cases=cases, totals=Totals.of(len(cases), cases))
    assert gate(less, policy=ASKED, options=options) == EXIT_INCOMPLETE
    assert f"missing of its selection: 1 case, {whole.cases[-1].id}" in gate.text


def test_a_whole_campaign_passes_and_nothing_less(whole: Report, gate: Gate) -> None:
    mutants = list(all_mutants().values())
    assert gate(whole, policy=ASKED) == EXIT_INCOMPLETE
    assert "the policy asks for a report of mutants" in gate.text
    assert gate(whole, policy=ASKED, options=campaign(gate, mutants, survivors=1)) == EXIT_DIFFERS
    assert mutants[0].id in gate.text
    left = len(mutants) // 2
    for part, told in (
        (mutants[1:], "1 mutant of the same kernels is"),
        (mutants[::2], f"{left:,} mutants of the same kernels are"),
    ):
        assert gate(whole, policy=ASKED, options=campaign(gate, part)) == EXIT_INCOMPLETE
        assert f"{told} not in it" in gate.text


def test_it_is_about_every_operation_that_has_a_kernel() -> None:
    asked = tomllib.loads(ASKED)["mutants"]
    assert asked["operations"] == sorted({operation for served in SERVED.values() for operation in served})
    assert asked["score"] == 1.0
