"""A check's document, its SARIF and its text, made from findings written down here."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console
from sarif_schema import SARIF

from mlx_assay.conformance.checking import report as reports
from mlx_assay.conformance.checking import sarif
from mlx_assay.conformance.checking.ledger import Ledger
from mlx_assay.conformance.checking.protocol import Defined, Ended, Foul, Launched, Met, Returned, decode, line
from mlx_assay.conformance.checking.rendering import MOST_SHOWN, console, rendered, show
from mlx_assay.conformance.checking.report import (
    Access,
    CheckReport,
    Diagnostic,
    Location,
    Problem,
    Sensitivity,
    encode,
    outcome,
    schema,
)
from mlx_assay.conformance.checking.request import asked
from mlx_assay.conformance.checking.rules import COMPILE_ERROR, RULES
from mlx_assay.impl.executors.checker.finding import SEVERITY, Kind, Severity

PUBLISHED = Path(reports.__file__).with_name("check.schema.json")
READ = "      if (lane == 0) sums[row] = part[0] + part[1];"
WRITE = "      if (lane == 0) part[group] = sum;"


def place(number: int, text: str, meant: str, file: str = "sums.py") -> Location:
    column = text.index(meant) + 1
    return Location(
        file=file,
        line=number if file else 0,
        column=column,
        end_column=column + len(meant),
        text=text,
        part="source",
        kernel_line=number - 10,
    )


def race(**changed: Any) -> Diagnostic:
    found = Diagnostic(
        kind="race",
        severity=Severity.ERROR,
        kernel=0,
        message="two simdgroups access an element and no barrier orders them",
        accesses=[
            Access(how="read", location=place(18, READ, "part[1]"), thread=(0, 0, 0), threadgroup=(0, 2, 0)),
            Access(how="write", location=place(17, WRITE, "part[group]"), thread=(32, 0, 0), threadgroup=(0, 2, 0)),
        ],
        array="part",
        space="threadgroup",
        index=1,
        launch=Location(file="sums.py", line=23, column=1, end_column=5, text="(y,) = row_sum("),
        schedule="in-order",
        count=3,
    )
    return msgspec.structs.replace(found, **changed)


UNWRITTEN = Diagnostic(
    kind="unwritten-output",
    severity=Severity.ERROR,
    kernel=1,
    message="2 elements are never written",
    array="y",
    launch=Location(file="sums.py", line=40, column=1, end_column=9, text="(z,) = g("),
)
FLAGS = race(
    kind="barrier-flags",
    message="the barrier between them names other memory",
    barrier=place(16, "      threadgroup_barrier(mem_flags::mem_none);", "threadgroup_barrier"),
)
NOTE = race(kind="same-value-write", severity=Severity.NOTE, message="both write the same bits", count=1)
WARNING = race(kind="exit-before-barrier", severity=Severity.WARNING, message="threads return before a barrier")


def report(*findings: Diagnostic, **options: Any) -> CheckReport:
    ledger = Ledger(asked("sums.py", **options))
    for number, name in enumerate(("row_sum", "other")):
        ledger.hear(Defined(name, name, Location(file="sums.py", line=11, text="  x;"), True, []))
        ledger.hear(Launched(number, 1))
        ledger.hear(Returned(1))
    for number, finding in enumerate(findings):
        ledger.hear(Met(number, finding))
    ledger.hear(Ended())
    return ledger.report()


def text(made: CheckReport, width: int = 80) -> list[str]:
    return [shown.plain.rstrip() for shown in rendered(made, width)]


def test_every_kind_has_a_rule_of_the_checkers_severity() -> None:
    assert list(RULES) == [*(kind.value for kind in Kind), COMPILE_ERROR]
    assert all(RULES[kind.value].severity is SEVERITY[kind] for kind in Kind)
    assert all(len(rule.title) > 20 and rule.help.endswith(".") for rule in RULES.values())


def test_the_published_schema_is_that_of_the_structs() -> None:
    assert json.loads(PUBLISHED.read_text()) == schema()
    jsonschema.Draft202012Validator.check_schema(schema())


def test_a_document_keeps_to_the_schema_and_can_be_read() -> None:
    made = report(race(), UNWRITTEN, FLAGS, NOTE)
    jsonschema.validate(json.loads(encode(made)), schema())
    assert reports.decode(encode(made)) == made


OUTCOMES = {
    "clean": ((), {}, "clean", 0),
    "an error": ((race(),), {}, "findings", 1),
    "a warning alone": ((WARNING,), {}, "clean", 0),
    "a warning as an error": ((WARNING,), {"warnings_as_errors": True}, "findings", 1),
    "a note is never an error": ((NOTE,), {"warnings_as_errors": True}, "clean", 0),
    "an ignored error": ((race(),), {"ignore": ["race"]}, "clean", 0),
    "another one ignored": ((race(),), {"ignore": ["shift-count"]}, "findings", 1),
}


@pytest.mark.parametrize(("findings", "options", "verdict", "code"), OUTCOMES.values(), ids=OUTCOMES)
def test_the_verdict(findings: tuple[Diagnostic, ...], options: dict[str, Any], verdict: str, code: int) -> None:
    made = report(*findings, **options)
    assert (made.verdict, made.exit_code) == (verdict, code)
    assert made.totals.ignored == (1 if "race" in made.asked.ignored else 0)


@pytest.mark.parametrize(
    ("findings", "launches", "complete", "verdict"),
    [((), 0, True, "incomplete"), ((), 3, False, "incomplete"), ((race(),), 3, False, "findings")],
)
def test_what_was_not_checked_is_never_clean(
    findings: tuple[Diagnostic, ...], launches: int, complete: bool, verdict: str
) -> None:
    assert outcome(findings, launches, complete, False) == verdict


def test_findings_read_like_a_compilers() -> None:
    assert text(report(race(), UNWRITTEN))[:-1] == [
        "sums.py:18:44: error: two simdgroups access an element and no barrier orders them [race]",
        "   18 |       if (lane == 0) sums[row] = part[0] + part[1];",
        "      |                                            ^~~~~~~",
        "  note: read of part[1] by thread (0, 0, 0) of threadgroup (0, 2, 0)",
        "sums.py:17:22: note: other access: write of part[1] by thread (32, 0, 0) of threadgroup (0, 2, 0)",
        "   17 |       if (lane == 0) part[group] = sum;",
        "      |                      ^~~~~~~~~~~",
        "sums.py:23:1: note: in kernel 'row_sum', threadgroup array 'part', first under schedule in-order, 3 times",
        "sums.py:40:1: error: 2 elements are never written [unwritten-output]",
        "   40 | (z,) = g(",
        "      | ^~~~~~~~",
        "sums.py:11:1: note: in kernel 'other', array 'y'",
    ]


def test_the_barrier_is_shown_and_the_gravest_kernel_comes_first() -> None:
    shown = text(report(NOTE, FLAGS, msgspec.structs.replace(race(), kernel=1)))
    assert "sums.py:16:7: note: this barrier does not order threadgroup memory" in shown
    heads = [found.rpartition("[")[2] for found in shown if found.endswith("]")]
    assert heads == ["barrier-flags]", "same-value-write]", "race]"]
    assert shown[-1].startswith("findings: 2 errors, 1 note in 2 kernels, 2 launches, 4 schedules, ")


def test_a_kernel_in_no_file_is_named_instead() -> None:
    one = race(accesses=[Access(how="read", location=place(17, READ, "part[1]", file=""))], launch=None)
    shown = text(report(one))
    assert shown[0].startswith("<kernel row_sum source>:7:44: error: ")
    assert shown[1] == f"    7 | {READ}"


def test_a_long_line_is_cut_around_what_is_meant() -> None:
    long = "a = 0; " * 40 + "part[1] = 1; " + "b = 0; " * 40
    one = race(accesses=[Access(how="write", location=place(18, long, "part[1]"))])
    shown = text(report(one), width=60)
    assert all(cell_len(found) <= 60 for found in shown[1:3])
    column = shown[2].index("^")
    assert shown[1][column : column + 7] == "part[1]"
    assert shown[2][column:] == "^~~~~~~"


def test_many_findings_are_cut_short_and_counted() -> None:
    many = [race(message=f"number {number}") for number in range(MOST_SHOWN + 5)]
    shown = text(report(*many))
    assert sum(found.endswith("[race]") for found in shown) == MOST_SHOWN
    assert "5 more findings in kernel row_sum: see --json" in shown


def test_what_a_script_wrote_does_not_steer_a_terminal() -> None:
    evil = "\x1b]0;title\x07\x9b2J\r\u202e"
    one = race(message=evil, accesses=[Access(how=evil, location=place(18, f"{evil}part[1]", "part[1]"))])
    made = report(one)
    made.kernels[0] = msgspec.structs.replace(made.kernels[0], name=evil)
    made.problems.append(Problem(what="exit", message=evil))
    for shown in text(made):
        assert shown.isprintable()


@pytest.mark.parametrize(("variables", "coloured"), [({"FORCE_COLOR": "1"}, True), ({}, False)])
def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], coloured: bool) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    file = io.StringIO()
    show(report(race()), console(file))
    assert ("\x1b[" in file.getvalue()) is coloured


def test_a_terminal_gets_lines_that_fit() -> None:
    file = io.StringIO()
    screen = Console(file=file, force_terminal=True, color_system=None, width=60)
    show(report(race(), FLAGS), screen)
    lines = [shown.rstrip() for shown in file.getvalue().splitlines()]
    assert max(map(cell_len, lines)) <= 60
    assert lines[:2] == [
        "sums.py:18:44: error: two simdgroups access an element and",
        "    no barrier orders them [race]",
    ]


def test_sensitivities_are_a_table() -> None:
    made = report(sensitivity=True)
    ones = [
        Sensitivity(
            output="y",
            switch="contraction",
            value="off",
            differing=2,
            elements=8,
            index=3,
            default="0x01",
            changed="0x02",
        ),
        Sensitivity(output="y", switch="schedule", value="reverse", differing=0, elements=8),
    ]
    calls = {"transcendentals": ["exp"], "accumulations": ["dot"]}
    made.kernels[0] = msgspec.structs.replace(made.kernels[0], sensitivity=ones, **calls)
    assert text(made)[:6] == [
        "sensitivity of kernel row_sum (1 launch):",
        "  output  switch       value  elements that differ  first",
        "  y       contraction  off    2 of 8                [3] 0x01 -> 0x02",
        "  depends in no bit on: schedule",
        "  calls exp: the last bits are this machine's C library's",
        "  calls dot: the order in which products are added is published nowhere",
    ]


FOUL = {
    "a kernel that is not there": Met(0, race(kernel=7)),
    "a finding out of turn": Met(3, race()),
    "an unknown kind": Met(0, race(kind="made-up")),
    "a severity that is not the kind's": Met(0, race(severity=Severity.NOTE)),
    "a launch of no kernel": Launched(9, 1),
}


@pytest.mark.parametrize("message", FOUL.values(), ids=FOUL)
def test_a_message_that_cannot_be_is_foul(message: Met | Launched) -> None:
    ledger = Ledger(asked("x.py"))
    ledger.hear(Defined("k", "k", None, True, []))
    assert decode(line(message)) == message
    with pytest.raises(Foul):
        ledger.hear(message)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ignore": ["races"]}, "Expected a kind of finding, one of race, .* but got 'races'"),
        ({"schedules": ["random"]}, "Expected schedules, in-order, .* but got 'random'"),
        ({"schedules": ["pct:x"]}, "but got 'pct:x'"),
        ({"schedules": []}, "but got none"),
    ],
)
def test_a_wrong_word_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        asked("x.py", **options)


def test_pct_takes_the_seed() -> None:
    assert asked("x.py", seed=9).schedules == ["in-order", "reverse", "round-robin", "pct:9"]
    assert asked("x.py", schedules=["pct:3", "pct", "pct"], seed=4).schedules == ["pct:3", "pct:4"]


def test_sarif_keeps_to_the_standards_schema() -> None:
    made = report(race(), UNWRITTEN, FLAGS, NOTE, race(message="elsewhere", launch=None))
    made.problems.append(Problem(what="exit", message="ended early"))
    log = json.loads(sarif.encode(made))
    jsonschema.validate(log, SARIF)
    results = log["runs"][0]["results"]
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in results)
    found = results[0]["locations"][0]
    assert found["physicalLocation"]["artifactLocation"] == {"uri": "sums.py", "uriBaseId": "%SRCROOT%"}
    region = found["physicalLocation"]["region"]
    assert READ[region["startColumn"] - 1 : region["endColumn"] - 1] == "part[1]"


def test_sarif_names_the_kernel_where_its_text_stands_in_no_file() -> None:
    one = race(accesses=[Access(how="read", location=place(17, READ, "part[1]", file=""))], launch=None)
    log = json.loads(sarif.encode(report(one)))
    jsonschema.validate(log, SARIF)
    assert log["runs"][0]["results"][0]["locations"] == [
        {"logicalLocations": [{"name": "row_sum", "kind": "function"}]}
    ]
