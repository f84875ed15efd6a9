"""Rows of a decision: names that others wrote are cut, and a leg that lacks cases is told of."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec
from sound import COMMIT, NOW, POLICY, ids, report

from mlx_assay.conformance.gating.decision import Decision, decide
from mlx_assay.conformance.gating.reading import load
from mlx_assay.conformance.reporting.intake import printed
from mlx_assay.conformance.reporting.report import Report, Totals

LONG = "x" * 300


def decided(folder: Path, made: Report) -> Decision:
    (folder / "report.json").write_bytes(msgspec.json.encode(made))
    (folder / "policy.toml").write_text(POLICY)
    policy = load(str(folder / "policy.toml"))
    return decide(policy, [str(folder / "report.json")], datetime.fromisoformat(NOW), COMMIT)


def test_names_of_a_device_and_an_executor_are_cut(tmp_path: Path) -> None:
    made = report()
    environment = msgspec.structs.replace(made.environment, device_class=f"host-{LONG}")
    executor = msgspec.structs.replace(made.executor, name=LONG)
    (row,) = decided(tmp_path, msgspec.structs.replace(made, environment=environment, executor=executor)).legs
    assert (row.device_class, row.executor) == (printed(f"host-{LONG}", 60), printed(LONG, 60))
    assert 50 < len(row.executor) < 80


def test_names_of_operations_and_dtypes_are_cut(tmp_path: Path) -> None:
    made = report()
    case = msgspec.structs.replace(made.cases[0], operation=LONG, dtype=LONG[1:])
    found = decided(tmp_path, msgspec.structs.replace(made, cases=[case, *made.cases[1:]]))
    assert [(one.operation, one.dtype, one.cases) for one in found.operations] == [
        ("normalized_argmax", "bfloat16", len(ids()) - 1),
        (printed(LONG, 60), printed(LONG[1:], 60), 1),
    ]


def test_a_leg_that_lacks_a_case_of_its_selection_is_incomplete(tmp_path: Path) -> None:
    made = report()
    cases = made.cases[1:]
    found = decided(tmp_path, msgspec.structs.replace(made, cases=cases, totals=Totals.of(len(cases), cases)))
    assert found.verdict == "incomplete"
    assert f"missing of its selection: 1 case, {ids()[0]}" in [one.text for one in found.reasons]
