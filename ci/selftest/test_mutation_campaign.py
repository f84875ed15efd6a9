"""Mutants of the built-in kernels, judged: who kills each is known beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mlx_assay.conformance.mutation.bench import Bench
from mlx_assay.conformance.mutation.killers import checked_cases, killers
from mlx_assay.conformance.mutation.mutant import Mutant, Place, all_mutants
from mlx_assay.conformance.mutation.operator import Edit
from mlx_assay.conformance.mutation.ruling import EQUIVALENT, KILLED, SURVIVED
from mlx_assay.conformance.mutation.source import sources
from mlx_assay.fixtures.case import Case
from mlx_assay.impl.executors.cache import CACHE_VARIABLE, cache_directory

LIMIT = 20.0
SHORT_LIMIT = 2.0

WEAK = {
    "apply_token_bitmask": "apply_token_bitmask/float32/error/bits-plain?bits=none&seed=0",
}


def strong(operations: tuple[str, ...]) -> list[Case]:
    """The cases that are tried first, of every text that serves these operations, and those under the checker."""
    names = [source.name for source in sources().values() if source.operations == operations]
    ids = [*(case_id for name in names for case_id in killers(name)), *checked_cases(operations)]
    return [Case.parse(case_id) for case_id in dict.fromkeys(ids)]


def weak(operations: tuple[str, ...]) -> Sequence[Case]:
    """One case, which hunts something else."""
    return [Case.parse(WEAK[operations[0]])]


def found(file: str, operator: str, after: str) -> Mutant:
    """The one mutant whose changed line holds a text."""
    named = [one for one in all_mutants().values() if (one.source.name, one.operator) == (file, operator)]
    (mutant,) = [one for one in named if after in one.place.after]
    return mutant


def made(file: str, old: str, new: str, same_code: bool = False) -> Mutant:
    """A mutant that the catalogue does not make."""
    source = sources()[file]
    at = source.text.index(old)
    edit = Edit(at, at + len(old), new)
    digest = hashlib.sha256(new.encode()).hexdigest()[:10]
    name = f"{source.operations[0]}/made/{file}/{digest}"
    return Mutant(name, "made", Place.of(source, edit), source, edit, same_code)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(cache_directory()))
        made = Bench(tmp_path_factory.mktemp("mutants"), LIMIT, suite=strong)
        yield made
        made.close()


CASES = {
    "bound": ("token_bitmask.metal", "comparison-strictness", "place <= min("),
    "bit order": ("token_bitmask.metal", "shift", "(31u - id % 32)"),
    "one row for all": ("token_bitmask.metal", "axis-mistaken", "row = thread_position_in_grid.x"),
    "short mask": ("token_bitmask.py", "launcher-operation", "np.ones(count"),
    "unchecked words": ("token_bitmask.py", "launcher-condition-part-dropped", "and True"),
    "another function": ("softcap.py", "launcher-operation", "mx.sin(x / constant)"),
    "NaN never seen": ("argmax/maxima.metal", "nan-rule-dropped", "own.nan || false"),
}


@pytest.mark.parametrize("name", CASES)
def test_killed_by_a_case(bench: Bench, name: str) -> None:
    mutant = found(*CASES[name])
    ruling = bench.rule(mutant)
    assert ruling.outcome == KILLED
    assert ruling.killed_by in {case.id for case in strong(mutant.source.operations)}


def test_killed_by_compilation(bench: Bench) -> None:
    ruling = bench.rule(found("token_bitmask.py", "launcher-order", "inputs=[words, logits"))
    assert ruling.outcome == KILLED
    assert ruling.killed_by.startswith("compilation: source line 1")


def test_killed_by_the_checker(bench: Bench) -> None:
    """What barriers order no case can see where threads run one after another."""
    weakened = [one for one in all_mutants().values() if one.operator == "barrier-weakened"]
    ruling = bench.rule(next(one for one in weakened if one.source.name == "argmax/given.metal"))
    assert ruling.outcome == KILLED
    assert ruling.killed_by.startswith("checker: [barrier-flags] one thread ")


def test_equivalent_by_the_same_machine_code(bench: Bench) -> None:
    ruling = bench.rule(found("argmax/shared.metal", "integer-off-by-one", "int NAN_SKIPPED = 1"))
    assert ruling.outcome == EQUIVALENT
    assert "The compiler makes the same code of it in all" in ruling.reason


STRAY = "uint spare[2]; for (uint i = 0; i {} 2u; ++i) spare[i] = i; const uint block = column"


@pytest.mark.parametrize(("comparison", "outcome"), [("<", EQUIVALENT), ("<=", KILLED)])
def test_a_stray_access_that_the_compiler_drops_is_no_equivalent(bench: Bench, comparison: str, outcome: str) -> None:
    mutant = made("trellis/decode.metal", "const uint block = column", STRAY.format(comparison), same_code=True)
    ruling = bench.rule(mutant)
    assert ruling.outcome == outcome
    assert ruling.killed_by.startswith("checker: [out-of-bounds] writes spare[2]") is (outcome == KILLED)


def test_what_hangs_is_killed_in_time(bench: Bench) -> None:
    bench.limit = SHORT_LIMIT
    ruling = bench.rule(made("token_bitmask.metal", "++place", "place += 0"))
    bench.limit = LIMIT
    assert ruling.outcome == KILLED
    assert ruling.seconds < LIMIT


def test_the_mutant_after_a_hang_is_judged_as_ever(bench: Bench) -> None:
    assert bench.rule(made("token_bitmask.metal", "// A thread", "// a thread")).outcome == SURVIVED


@pytest.mark.parametrize("name", ["bit order", "one row for all"])
def test_survives_a_suite_that_hunts_something_else(bench: Bench, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: it is the cases that kill."""
    monkeypatch.setattr(bench, "suite", weak)
    assert bench.rule(found(*CASES[name])).outcome == SURVIVED


def test_the_working_tree_is_not_touched(bench: Bench) -> None:
    before = {name: source.digest for name, source in sources().items()}
    bench.rule(found(*CASES["bound"]))
    sources.cache_clear()
    assert {name: source.digest for name, source in sources().items()} == before
    assert not list(bench.folder.glob("mutant_[!0]*")), "copies are removed once they were judged"


def test_a_copy_is_a_module_of_its_own(bench: Bench) -> None:
    text = (Path(bench.folder) / "mutant_0" / "softcap.py").read_text()
    assert "mlx_assay.impl.kernels" not in text
