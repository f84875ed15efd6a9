"""A campaign's report, its table, the file of reasons and the order of cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlx_assay.conformance.mutation import killers, report
from mlx_assay.conformance.mutation.equivalents import StaleError, by_id, check, decode, spans
from mlx_assay.conformance.mutation.mutant import all_mutants
from mlx_assay.conformance.mutation.page import page
from mlx_assay.conformance.mutation.playbill import Playbill
from mlx_assay.conformance.mutation.ruling import Ruling
from mlx_assay.conformance.mutation.table import rendered

REASON = "The bound is checked again before anything is written, so that no bit changes."
MUTANTS = list(all_mutants().values())[:5]
CASE = "argmax_given/float32/ties/tiles?vocab=4096&seed=0"


def rulings() -> list[Ruling]:
    by = [CASE, "checker: [race] one thread writes a[0]", "compilation: source line 3: error: no"]
    killed = [Ruling(mutant.id, "killed", name) for mutant, name in zip(MUTANTS, by, strict=False)]
    return [*killed, Ruling(MUTANTS[3].id, "equivalent", reason=REASON), Ruling(MUTANTS[4].id, "survived")]


def made(count: int = 5) -> report.Campaign:
    return report.campaign(MUTANTS, rulings()[:count], complete=count == 5, seconds=1.0, workers=2)


def test_the_mutants_stand_as_promised() -> None:
    read = json.loads(report.encode(made()))
    assert {tuple(row) for row in read["mutants"]} == {
        ("id", "operation", "operator", "place", "outcome", "killed_by"),
    }
    assert [row["outcome"] for row in read["mutants"]] == ["killed", "killed", "killed", "equivalent", "survived"]
    assert read["totals"] == {"case": 1, "test": 0, "checker": 1, "compilation": 1, "equivalent": 1, "survived": 1}
    assert read["score"] == 0.75
    assert list(read["diffs"]) == [MUTANTS[4].id]
    assert read["reasons"] == {MUTANTS[3].id: REASON}


def test_a_report_is_read_as_it_was_written() -> None:
    assert report.decode(report.encode(made())) == made()
    assert report.decode(report.encode(made(3))) == made(3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": 1.0}, "follow from the mutants"),
        ({"totals": {}}, "follow from the mutants"),
        ({"schema": "other/1"}, "Expected the schema"),
        ({"complete": False}, "5 of 5 mutants that says it is complete but got complete: false"),
        ({"selected": 9}, "5 of 9 mutants that says it is not complete but got complete: true"),
        ({"mutants": "all"}, "Expected a campaign's report"),
        ({"mutants": [{"id": "a"}]}, "Expected a campaign's report"),
    ],
)
def test_a_report_that_was_changed_is_refused(change: dict[str, Any], words: str) -> None:
    read = json.loads(report.encode(made()))
    with pytest.raises(ValueError, match=words):
        report.decode(json.dumps({**read, **change}).encode())


def test_a_mutant_twice_and_an_unknown_outcome_are_refused() -> None:
    read = json.loads(report.encode(made()))
    twice = {**read, "mutants": [*read["mutants"][:4], read["mutants"][0]]}
    with pytest.raises(ValueError, match="stands twice"):
        report.decode(json.dumps(twice).encode())
    read["mutants"][0]["outcome"] = "ignored"
    with pytest.raises(ValueError, match="ignored"):
        report.decode(json.dumps(read).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"mutants": ' + b"[" * 100_000])
def test_what_is_no_report_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="Expected a campaign's report"):
        report.decode(data)


def test_the_table_tells_all() -> None:
    text = "\n".join(rendered(made()))
    assert (
        "5 mutants: 3 killed (1 by a case, 0 by a test, 1 by the checker, 1 by compilation), 1 equivalent, 1 survived"
        in text
    )
    assert "score 0.7500" in text
    assert "argmax_given/float32/ties/tiles" in text
    assert f"survived: {MUTANTS[4].id} at {MUTANTS[4].place}" in text
    assert all(f"  {line}" in text for line in MUTANTS[4].diff.splitlines() if not line.startswith(("---", "+++")))
    assert "incomplete: 2 mutants were not judged" in "\n".join(rendered(made(3)))


def test_the_page_tells_all_and_escapes_it() -> None:
    hostile = msgspec.structs.replace(made(), diffs={MUTANTS[4].id: "<script>alert(1)</script>"})
    text = page(hostile)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "0.7500" in text
    assert str(MUTANTS[4].place) in text
    assert REASON in text
    assert text.count('<details class="case"') == 1
    assert "2 mutants were not judged" in page(made(3))


def test_nothing_that_can_be_killed_has_no_score() -> None:
    only = report.campaign(MUTANTS[3:4], rulings()[3:4], complete=True, seconds=0.0, workers=1)
    assert only.score is None
    assert "score none" in "\n".join(rendered(only))


def test_a_reason_that_is_refuted_is_told() -> None:
    rows = made().mutants
    assert report.refuted({MUTANTS[0].id: REASON, MUTANTS[3].id: REASON}, rows) == [rows[0]]


def entry(**words: Any) -> str:
    return "\n".join(["[[equivalent]]", *(f"{key} = {json.dumps(value)}" for key, value in words.items())])


def test_reasons_by_id() -> None:
    read = decode(entry(reason=REASON, ids=["a", "b"]))
    assert by_id(read) == {"a": REASON, "b": REASON}
    check(by_id(read), ["a", "b", "c"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (entry(reason="It is so.", ids=["a"]), "that can be checked"),
        (entry(reason=REASON, ids=["a", "a"]), "a stands twice"),
        (entry(reason=REASON, ids=["a"], until="2027-01-01"), "unknown field"),
        (entry(ids=["a"]), "reason"),
        ("[[equivalent]", "Expected tables"),
        ("[[outside]]\nreason = 'none'\nfile = 'softcap.py'\nline = 'x'", "that can be checked"),
    ],
)
def test_a_file_of_reasons_that_cannot_be_meant_is_refused(text: str, words: str) -> None:
    with pytest.raises(StaleError, match=words):
        decode(text)


def test_a_stale_reason_is_refused() -> None:
    with pytest.raises(StaleError, match=r"1 are gone: b: remove them"):
        check({"a": REASON, "b": REASON}, ["a"])


def test_a_line_outside_reaches_as_far_as_its_block() -> None:
    text = "a = 1\ndef f(\n    x,\n) -> int:\n    b = 2\n\n    c = 3\nd = 4\n"
    read = decode(f'[[outside]]\nreason = "{REASON}"\nfile = "x.py"\nline = "def f("')
    ((start, end),) = spans(read, "x.py", text)
    assert text[start:end] == "def f(\n    x,\n) -> int:\n    b = 2\n\n    c = 3\n"
    assert spans(read, "y.py", text) == []
    for other in ("a = 1\n", text * 2):
        with pytest.raises(StaleError, match="once in x"):
            spans(read, "x.py", other)


def test_the_cases_that_kill_most_come_first() -> None:
    order = killers.learned([("a", "x"), ("a", "y"), ("a", "y"), ("b", "z"), ("a", "w")])
    assert order == {"a": ["y", "w", "x"], "b": ["z"]}


def test_a_playbill_is_read_by_another(tmp_path: Path) -> None:
    writer = Playbill(tmp_path)
    reader = Playbill(tmp_path)
    writer.write("mutant_0", False)
    assert reader.read() == ("mutant_0", False)
    writer.write("mutant_0123456789_1", True)
    assert reader.read() == ("mutant_0123456789_1", True)
