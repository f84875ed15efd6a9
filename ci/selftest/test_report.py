"""The report: its published schema, its verdict and exit code, and how it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from mlx_assay.conformance import session as sessions
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.quotation import passage, printable
from mlx_assay.conformance.record import Difference, Place, Record, replay_command
from mlx_assay.conformance.reporting import report as reports
from mlx_assay.conformance.reporting.report import OracleState, Report, Totals, decode, encode, outcome, schema, write
from mlx_assay.conformance.reporting.summary import closing, worst
from mlx_assay.conformance.session import Session, Worker
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, Verdict

PUBLISHED = Path(reports.__file__).with_name("report.schema.json")
CONFORMING = [Verdict.SAME_BITS, Verdict.SAME_VALUE, Verdict.WITHIN_ULP, Verdict.WITHIN_BOUND]


def record(number: int, verdict: Verdict = Verdict.SAME_BITS, **fields: Any) -> Record:
    case_id = f"normalized_argmax/bfloat16/ties/tiles?vocab={number}&seed=0"
    plain: dict[str, Any] = {
        "id": case_id,
        "operation": "normalized_argmax",
        "dtype": "bfloat16",
        "tags": ["ties"],
        "why": "Ties",
        "verdict": verdict,
        "conforms": verdict in CONFORMING,
        "oracle": "stock-mlx",
        "oracles": ["stock-mlx", "torch"],
        "missing": [],
        "subcases": 2,
        "seconds": 0.25,
        "replay": replay_command(case_id),
    }
    return Record(**{**plain, **fields})


def line(item: Record) -> str:
    return msgspec.json.encode(item).decode()


def run(records: list[Record], declared: int | None = None, path: Path | None = None, finish: bool = True) -> Report:
    session = Session(Options(queries=("normalized_argmax/*",), report=str(path) if path else None))
    ids = [item.id for item in records]
    session.declare(ids + [record(1000 + extra).id for extra in range((declared or len(ids)) - len(ids))])
    for item in records:
        session.add(line(item))
    return session.finish() if finish else session.report()


def test_the_published_schema_is_that_of_the_structs() -> None:
    assert json.loads(PUBLISHED.read_text()) == schema()
    jsonschema.Draft202012Validator.check_schema(schema())


def test_a_report_keeps_to_the_schema() -> None:
    differing = Difference("a", "stock-mlx", 1, 3, None, [Place([0, 1], "0x0400", "0x001f")], "tie lost")
    items = [record(number, verdict) for number, verdict in enumerate(Verdict)]
    report = run([*items, record(99, Verdict.DIFFERS, difference=differing, message="got 1024 want 31")])
    document = json.loads(encode(report))
    jsonschema.validate(document, json.loads(PUBLISHED.read_text()))
    assert document["totals"] == {"declared": 12, "executed": 12, "differs": 2} | {
        verdict.value: 1 for verdict in Verdict if verdict is not Verdict.DIFFERS
    }
    assert document["cases"][-1]["difference"]["places"][0] == {"index": [0, 1], "got": "0x0400", "want": "0x001f"}
    assert decode(encode(report)) == report


@pytest.mark.parametrize("change", [{"schema": "urn:other:1"}, {"totals": {}}, {"verdict": "fine"}, {"cases": [{}]}])
def test_another_document_is_refused(change: dict[str, Any]) -> None:
    document = json.loads(encode(run([record(1)]))) | change
    with pytest.raises(ValueError, match=r"Expected|missing|Invalid"):
        decode(json.dumps(document).encode())
    if "schema" not in change:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, schema())


@pytest.mark.parametrize("verdict", CONFORMING)
def test_a_run_conforms(verdict: Verdict) -> None:
    report = run([record(1), record(2, verdict)])
    assert (report.verdict, report.exit_code, report.complete) == ("conforms", EXIT_CONFORMS, True)


@pytest.mark.parametrize(
    "verdict", [Verdict.DIFFERS, Verdict.ERROR, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.UNSUPPORTED]
)
def test_a_run_differs(verdict: Verdict) -> None:
    report = run([record(1), record(2, verdict)])
    assert (report.verdict, report.exit_code) == ("differs", EXIT_DIFFERS)


def test_a_rung_that_was_not_reached_differs_whatever_its_name() -> None:
    assert run([record(1), record(2, Verdict.SAME_VALUE, conforms=False)]).verdict == "differs"


@pytest.mark.parametrize("verdict", [Verdict.NOT_RUN, Verdict.ORACLES_DISAGREE])
def test_incomplete_comes_before_differs(verdict: Verdict) -> None:
    report = run([record(1, Verdict.DIFFERS), record(2, verdict)])
    assert (report.verdict, report.exit_code) == ("incomplete", EXIT_INCOMPLETE)


def test_what_leaves_a_run_incomplete() -> None:
    assert run([record(1)], declared=2).verdict == "incomplete"
    assert run([record(1)], finish=False).verdict == "incomplete"
    assert run([record(1, missing=["torch"])]).verdict == "incomplete"
    assert run([]).verdict == "incomplete"
    assert outcome(0, [], complete=True) == "incomplete"
    assert outcome(1, [record(1), record(2)], complete=True) == "incomplete"


def test_totals_name_every_verdict() -> None:
    names = set(json.loads(msgspec.json.encode(Totals.of(0, []))))
    assert names == {"declared", "executed", *(verdict.value for verdict in Verdict)}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_report_in_pieces_is_one_document(count: int) -> None:
    hostile = 'a "cases": []\n}'
    made = run([record(number, Verdict.DIFFERS, message=hostile) for number in range(count)])
    assert encode(made) == msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"


def test_cases_stand_in_declared_order_each_once() -> None:
    items = [record(number) for number in range(5)]
    session = Session(Options())
    session.declare([item.id for item in items])
    session.declare([item.id for item in items])
    for item in (*reversed(items), items[0]):
        session.add(line(item))
    report = session.finish()
    assert [item.id for item in report.cases] == [item.id for item in items]
    assert report.totals.declared == report.totals.executed == 5


def test_a_lost_case_has_a_verdict_and_a_record_that_came_is_not_lost() -> None:
    session = Session(Options())
    crashed, failed, fine = (record(number) for number in range(3))
    session.declare([crashed.id, failed.id, fine.id])
    session.lose(crashed.id, True, "worker 'gw0' crashed while running it")
    session.lose(failed.id, False, "E   RuntimeError: broken")
    session.add(line(fine))
    session.lose(fine.id, True, "crashed at exit")
    verdicts = [item.verdict for item in session.finish().cases]
    assert verdicts == [Verdict.CRASHED, Verdict.NOT_RUN, Verdict.SAME_BITS]


def test_a_report_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    report = run([record(1)], path=path)
    before = path.read_bytes()
    assert decode(before).totals == report.totals

    def torn(report: Report) -> Iterator[bytes]:
        yield before[:10]
        raise OSError("No space left on device")

    monkeypatch.setattr(reports, "pieces", torn)
    with pytest.raises(OSError, match="No space"):
        write(report, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_is_refreshed_while_the_run_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "REFRESH_SECONDS", 0.02)
    path = tmp_path / "report.json"
    session = Session(Options(report=str(path)))
    session.declare([record(1).id, record(2).id])
    first = decode(path.read_bytes())
    session.add(line(record(1)))
    for _ in range(500):
        session_report = decode(path.read_bytes())
        if session_report.totals.executed == 1:
            break
        session._stop.wait(0.01)
    session.finish()
    assert (first.totals.executed, first.complete, first.verdict) == (0, False, "incomplete")
    assert (session_report.totals.executed, session_report.complete, session_report.verdict) == (1, False, "incomplete")


def test_what_a_worker_knows_stands_in_the_report() -> None:
    known = Worker(
        device="cpu",
        executor="host",
        executor_details={"contraction": "on"},
        operations=["normalized_argmax"],
        not_asked=["logit_softcap"],
        oracles={"torch": OracleState("missing", reason="pip install torch")},
    )
    session = Session(Options())
    session.declare([record(1).id])
    session.learn(msgspec.json.encode(known).decode())
    session.learn(msgspec.json.encode(Worker(device="another")).decode())
    session.add(line(record(1, missing=["torch"])))
    report = session.finish()
    assert (report.environment.device, report.executor.name) == ("cpu", "host")
    text = "\n".join(closing(report, None))
    assert "missing oracle: torch (pip install torch)" in text
    assert "not asked (the implementation lacks them): logit_softcap" in text
    assert "incomplete in" in text
    assert "an oracle is missing" in text


def test_the_worst_come_first() -> None:
    def differing(number: int, ulp: int | None) -> Record:
        return record(
            number, Verdict.DIFFERS, difference=Difference("a", "stock-mlx", 1, 3, ulp, []), message=f"case {number}"
        )

    items = [differing(1, 3), differing(2, 900), differing(3, None), record(4), record(5, Verdict.CRASHED, message="x")]
    items += [differing(number, 1) for number in range(6, 9)]
    assert [text.partition(": ")[2] for text in worst(run(items))[:4]] == ["x", "case 3", "case 2", "case 1"]
    assert len(worst(run(items))) == 5


def test_text_from_outside_does_not_steer_a_terminal() -> None:
    assert printable("a\x1b[31mb\r\nc\x07") == "a\\x1b[31mb\\x0d\\x0ac\\x07"


@pytest.mark.parametrize(
    ("came", "due"),
    [
        ("::error::x", "\\x3a:error::x"),
        ("  ::add-mask::x", "  \\x3a:add-mask::x"),
        ("a ##[error]x", "a \\x23#[error]x"),
        ("metal::max ##", "metal::max ##"),
    ],
)
def test_no_line_commands_a_runner(came: str, due: str) -> None:
    assert printable(came) == due


def test_every_line_after_the_first_is_indented_or_marked() -> None:
    text = "x\nconforms in 0.3 s\n::stop-commands::zz\n  executor host\n"
    assert passage(text).split("\n") == [
        *("x", "  | conforms in 0.3 s", "  | \\x3a:stop-commands::zz", "  executor host", "  | ")
    ]


def test_the_last_lines_steer_no_terminal() -> None:
    altered = msgspec.structs.replace(run([record(1)]), altered=["\x1b[2J.py"], verdict="incomplete")
    assert "\\x1b[2J.py" in closing(altered, Path("\x07"))[-1]
    assert not {"\x1b", "\x07"} & set("".join(closing(altered, Path("\x07"))))


def test_no_value_of_a_tensor_is_a_decimal_number() -> None:
    """The only numbers in a record are counts, distances, places and seconds."""
    numeric = {"subcases", "launches", "seconds", "count", "total", "worst_ulp", "index"}
    for struct in (Record, Difference, Place):
        for name, kind in struct.__annotations__.items():
            if "int" in str(kind) or "float" in str(kind):
                assert name in numeric, (struct, name)
