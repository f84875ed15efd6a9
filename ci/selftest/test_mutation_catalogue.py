"""The mutants of the built-in kernels: how many, of what, under which names, and that each text is accounted for."""

from __future__ import annotations

import ast
from collections import Counter

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.mutation.catalogue import names
from mlx_assay.conformance.mutation.equivalents import Reasons, by_id, check, reasons, spans
from mlx_assay.conformance.mutation.killers import checked_cases, killers
from mlx_assay.conformance.mutation.mutant import all_mutants, chosen, mutants_of
from mlx_assay.conformance.mutation.source import APART, SERVED, Source, folder, sources
from mlx_assay.fixtures.kind import all_cases

LEAST = 400


def test_there_are_enough_of_every_operation() -> None:
    counts = Counter(operation for mutant in all_mutants().values() for operation in mutant.source.operations)
    assert len(all_mutants()) >= LEAST
    assert set(counts) == set(contracts())


def test_every_operator_applies_somewhere() -> None:
    assert {mutant.operator for mutant in all_mutants().values()} == set(names())


def test_every_file_of_the_kernels_has_mutants_or_a_reason() -> None:
    root = folder()
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.suffix in (".py", ".metal")}
    assert files == {*SERVED, *APART}
    assert not set(SERVED) & set(APART)


def test_mutants_differ_from_the_kernel_and_from_each_other() -> None:
    texts = [(mutant.source.name, mutant.text) for mutant in all_mutants().values()]
    assert len(set(texts)) == len(texts)
    assert not {(source.name, source.text) for source in sources().values()} & set(texts)


def test_python_mutants_are_programs() -> None:
    for mutant in all_mutants().values():
        if not mutant.source.metal:
            ast.parse(mutant.text)


def test_an_id_outlives_edits_elsewhere() -> None:
    text = "const uint a = b + c;\nif (a < n) return;\n"
    before = {mutant.id for mutant in mutants_of(Source("x.metal", text, ("operation",)))}
    after = {mutant.id for mutant in mutants_of(Source("x.metal", f"// more\nuint z;\n{text}", ("operation",)))}
    assert before
    assert before == after


def test_places_of_equal_lines_have_names_of_their_own() -> None:
    found = [mutant.id for mutant in mutants_of(Source("x.metal", "a = b + c;\na = b + c;\n", ("operation",)))]
    assert len(found) == len(set(found)) == 4


def test_choices() -> None:
    some = chosen(["argmax_given"], ["barrier-dropped"], None)
    assert [mutant.source.name for mutant in some] == ["argmax/given.metal", "argmax/search.metal"]
    assert chosen([], [], []) == []
    assert chosen([], [], None) == list(all_mutants().values())


def test_reasons_are_for_mutants_that_are_there() -> None:
    check(by_id(reasons()), all_mutants().keys())


def test_places_outside_are_there_and_would_hold_mutants() -> None:
    held = {source.name: [mutant.edit.start for mutant in mutants_of(source)] for source in sources().values()}
    for entry in reasons().outside:
        (span,) = spans(Reasons(outside=[entry]), entry.file, sources()[entry.file].text)
        assert any(span[0] <= start < span[1] for start in held[entry.file]), entry.line


def test_cases_that_are_tried_first_are_of_the_quick_tier_and_of_the_right_operation() -> None:
    quick = {case.id: case.operation for case in all_cases("quick")}
    for source in sources().values():
        assert {quick[case_id] for case_id in killers(source.name)} <= set(source.operations)
    for operation in contracts():
        assert {quick[case_id] for case_id in checked_cases([operation])} <= {operation}
