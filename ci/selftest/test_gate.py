"""The gate: what passes, and what each part of a policy asks for."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from sound import COMMIT, FAILING, POLICY, QUERY, Gate, document, ids, report

from mlx_assay.conformance.gating import decision, policy
from mlx_assay.conformance.reporting.report import Executor, Shard, Source
from mlx_assay.conformance.splitting import whole
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, EXIT_USAGE, Verdict

ROOT = Path(__file__).parents[2]
FIRST, SECOND = ids()[:2]
SMOKE = """
[legs.smoke]
implementation = "kernels"
device_class = ["paravirtual"]
executor = "metal"
queries = ["normalized_argmax/bfloat16/ties/*"]
cases = 20
bits = false
"""
METAL = SMOKE.replace("smoke", "m4").replace("paravirtual", "g16").replace("bits = false", "")


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys.readouterr)


def waiver(query: str, expect: str = "differs", until: str = "2026-06-01", more: str = "") -> str:
    return (
        f'[[waivers]]\nquery = "{query}"\nreason = "known since June"\nissue = "https://example.org/issues/1"\n'
        f'expect = "{expect}"\nuntil = {until}\n{more}\n'
    )


def test_a_sound_report_passes(gate: Gate) -> None:
    assert gate(report()) == EXIT_CONFORMS, gate.text
    assert f"conforms: reports: 1, cases: {len(ids())}" in gate.text


@pytest.mark.parametrize("verdict", FAILING)
def test_a_failing_case_differs(gate: Gate, verdict: Verdict) -> None:
    assert gate(report(verdicts={FIRST: verdict})) == EXIT_DIFFERS
    assert f"host: {verdict}: 1 case, {FIRST}: mlx-assay replay '{FIRST}'" in gate.text


def test_incomplete_comes_before_differs(gate: Gate) -> None:
    assert gate(report(verdicts={FIRST: Verdict.DIFFERS, SECOND: Verdict.NOT_RUN})) == EXIT_INCOMPLETE
    assert f"differs: 1 case, {FIRST}" in gate.text
    assert f"not run: 1 case, {SECOND}" in gate.text


def test_a_missing_leg_is_incomplete_and_one_that_is_not_required_is_not(gate: Gate) -> None:
    assert gate(report(), policy=POLICY + METAL) == EXIT_INCOMPLETE
    assert "m4: it has no report: mlx-assay run --leg m4" in gate.text
    assert gate(report(), policy=POLICY + METAL + "required = false\n") == EXIT_CONFORMS
    assert gate(report(), report("m4", device="g16"), policy=POLICY + METAL) == EXIT_CONFORMS, gate.text


def test_bits_need_a_real_device(gate: Gate) -> None:
    hosted = report("m4", device="paravirtual")
    open_to_any = POLICY + METAL.replace('["g16"]', '["*"]')
    assert gate(report(), hosted, policy=open_to_any) == EXIT_INCOMPLETE
    assert "m4: a paravirtual device has no bits to rely on" in gate.text


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.DIFFERS, EXIT_CONFORMS),
        (Verdict.ERROR, EXIT_DIFFERS),
        (Verdict.CRASHED, EXIT_DIFFERS),
        (Verdict.TIMED_OUT, EXIT_DIFFERS),
        (Verdict.UNSUPPORTED, EXIT_DIFFERS),
        (Verdict.NOT_RUN, EXIT_INCOMPLETE),
        (Verdict.ORACLES_DISAGREE, EXIT_INCOMPLETE),
    ],
)
def test_smoke_has_to_be_there_and_not_to_crash(gate: Gate, verdict: Verdict, code: int) -> None:
    smoke = report("smoke", device="paravirtual", verdicts={FIRST: verdict})
    assert gate(report(), smoke, policy=POLICY + SMOKE) == code, gate.text


def test_a_need_asks_for_more_than_the_contract(gate: Gate) -> None:
    query = "trellis_fold"
    asked = POLICY.replace(QUERY, query)
    made = report(queries=[query], verdicts={})
    relaxed = [
        *made.cases[:-1],
        type(made.cases[0])(
            **{name: getattr(made.cases[-1], name) for name in made.cases[-1].__struct_fields__}
            | {"verdict": Verdict.SAME_VALUE, "relaxations": ["nan-any"]}
        ),
    ]
    weaker = report(queries=[query], cases=relaxed, totals=type(made.totals).of(len(relaxed), relaxed))
    need = f'[[needs]]\nquery = "{query}"\nverdict = "same-bits"\n'
    assert gate(weaker, policy=asked) == EXIT_CONFORMS, gate.text
    assert gate(weaker, policy=asked + need) == EXIT_DIFFERS
    assert "same-value where same-bits is needed: 1 case" in gate.text
    assert gate(weaker, policy=asked + need + 'device_class = ["g16"]\n') == EXIT_INCOMPLETE
    assert "need 1 (trellis_fold): it meets no case of any report" in gate.text
    accepted = waiver(relaxed[-1].id, "same-value")
    assert gate(weaker, policy=asked + need + accepted) == EXIT_CONFORMS, gate.text


def test_a_waiver_covers_the_case_that_fails_as_it_expects(gate: Gate) -> None:
    failing = report(verdicts={FIRST: Verdict.DIFFERS})
    assert gate(failing, policy=POLICY + waiver(FIRST)) == EXIT_CONFORMS, gate.text
    assert f"waiver holds: {FIRST}, cases: 1, differs until 2026-06-01: known since June" in gate.text
    assert gate(failing, policy=POLICY + waiver(FIRST, more='leg = "host"')) == EXIT_CONFORMS


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (waiver(FIRST, until="2026-05-31"), "it expired: its last day was 2026-05-31"),
        (waiver(FIRST, "crashed"), "expected crashed but got differs"),
        (waiver(SECOND), "now conforming: 1 case"),
        (waiver("normalized_argmax/bfloat16/ties/*"), f"now conforming: {len(ids()) - 1} cases"),
        (waiver("normalized_argmax/float32/ties/*"), "it meets no case of any report"),
        (waiver(FIRST) + waiver(FIRST), "another waiver covers"),
    ],
)
def test_a_waiver_that_no_longer_says_what_is_fails(gate: Gate, text: str, told: str) -> None:
    assert gate(report(verdicts={FIRST: Verdict.DIFFERS}), policy=POLICY + text) == EXIT_INCOMPLETE
    assert told in gate.text


def test_what_is_about_a_leg_without_a_sound_report_is_not_judged(gate: Gate) -> None:
    need = '[[needs]]\nquery = "trellis_fold"\nverdict = "same-bits"\n'
    asked = POLICY + METAL + waiver(FIRST, more='leg = "m4"') + waiver("trellis_fold") + need
    old = report("m4", device="g16", minutes=60 * 30, verdicts={FIRST: Verdict.DIFFERS})
    whole_leg = ids()
    shard = report("m4", device="g16", ids=whole_leg[::2], shard=Shard(index=1, count=2, whole=whole(whole_leg)))
    for unsound in ([], [old], [shard]):
        assert gate(report(), *unsound, policy=asked) == EXIT_INCOMPLETE
        assert "it meets no case" not in gate.text
        assert "remove it" not in gate.text
        assert "waiver not judged: trellis_fold" in gate.text
    assert gate(report(), report("m4", device="g16"), policy=asked) == EXIT_INCOMPLETE
    assert gate.text.count("it meets no case of any report") == 2


def test_a_waiver_is_told_once_and_its_issue_can_be_followed(gate: Gate) -> None:
    page = str(gate.folder / "out.md")
    failing = report(verdicts={FIRST: Verdict.DIFFERS})
    assert gate(failing, policy=POLICY + waiver(FIRST), options=["--markdown", page]) == EXIT_CONFORMS
    assert "<https://example.org/issues/1>" in Path(page).read_text()
    assert not [line for line in gate.text.splitlines() if line != line.rstrip()]
    assert gate(failing, policy=POLICY + waiver(FIRST, until="2026-05-31")) == EXIT_INCOMPLETE
    assert gate.text.count("https://example.org/issues/1") == gate.text.count("waiver 1") == 1


@pytest.mark.parametrize("verdict", [Verdict.NOT_RUN, Verdict.ORACLES_DISAGREE])
def test_a_waiver_never_covers_what_was_not_judged(gate: Gate, verdict: Verdict) -> None:
    made = report(verdicts={FIRST: verdict})
    assert gate(made, policy=POLICY + waiver(FIRST)) == EXIT_INCOMPLETE
    assert gate(made, policy=POLICY + waiver(FIRST, str(verdict))) == EXIT_USAGE


def test_a_waiver_of_one_leg_covers_no_other(gate: Gate) -> None:
    both = [report(verdicts={FIRST: Verdict.DIFFERS}), report("m4", device="g16", verdicts={FIRST: Verdict.DIFFERS})]
    assert gate(*both, policy=POLICY + METAL + waiver(FIRST, more='leg = "m4"')) == EXIT_DIFFERS
    assert gate(*both, policy=POLICY + METAL + waiver(FIRST)) == EXIT_CONFORMS, gate.text


LAX = ("age_hours = 24", "age_hours = 24\ncommit = false")


def test_legs_are_of_one_commit_though_no_commit_is_asked_for(gate: Gate) -> None:
    asked = (POLICY + METAL).replace("age_hours = 24", "age_hours = 24\ncommit = false")
    other = report("m4", device="g16", source=Source(commit=COMMIT[::-1]))
    assert gate(report(), other, policy=asked, options=["--commit", COMMIT]) == EXIT_INCOMPLETE
    files = [gate.file("a.json", report()), gate.file("b.json", other)]
    told = ["--policy", gate.file("p.toml", asked), "--now", "2026-06-01T12:00:00Z"]
    assert gate.call("gate", *files, *told) == EXIT_INCOMPLETE
    assert "reports: they are of several commits" in gate.text
    for commit in ("", "main"):
        nameless = gate.file("a.json", report(source=Source(commit=commit)))
        assert (
            gate.call("gate", nameless, *told[:1], gate.file("q.toml", POLICY.replace(*LAX)), *told[2:])
            == EXIT_INCOMPLETE
        )
        assert "reports: they name no commit" in gate.text


def test_a_commit_is_asked_for_unless_the_policy_says_otherwise(gate: Gate) -> None:
    words = ["gate", gate.file("a.json", report()), "--policy", gate.file("p.toml", POLICY)]
    assert gate.call(*words) == EXIT_USAGE
    assert "give it by --commit SHA" in gate.text


def test_shards_are_one_leg(gate: Gate) -> None:
    names = ids()
    parts = [
        report(ids=names[index::2], shard=Shard(index=index + 1, count=2, whole=whole(names)), minutes=60 + index)
        for index in range(2)
    ]
    assert gate(*parts) == EXIT_CONFORMS, gate.text
    assert gate(*reversed(parts)) == EXIT_CONFORMS
    assert gate(parts[0]) == EXIT_INCOMPLETE
    assert "host: missing: shard 2 of 2" in gate.text


def test_a_checked_leg_has_launches_under_the_checker(gate: Gate) -> None:
    asked = POLICY + "checked = true\n"
    told = document(report())
    assert gate(told, policy=asked) == EXIT_INCOMPLETE
    told = document(report(executor=Executor(name="host", details={"executor": "host", "checked": "yes"})))
    assert gate(told, policy=asked) == EXIT_INCOMPLETE
    assert "its kernels did not run under the checker (0 launches did)" in gate.text
    told["cases"][0]["launches"] = 4
    assert gate(told, policy=asked) == EXIT_CONFORMS, gate.text


def test_what_is_written(gate: Gate) -> None:
    paths = {name: str(gate.folder / f"out.{name}") for name in ("json", "markdown")}
    options = [word for name, path in paths.items() for word in (f"--{name}", path)]
    hostile = report(verdicts={FIRST: Verdict.DIFFERS}, leg="<b>|*x*\x1b[31m")
    assert gate(report(), hostile, options=options) == EXIT_INCOMPLETE
    made = json.loads(Path(paths["json"]).read_bytes())
    jsonschema.validate(made, decision.schema())
    assert (made["verdict"], made["schema"]) == ("incomplete", "urn:mlx-assay:gate:1")
    assert made["legs"][0] | {"leg": "host", "cases": len(ids()), "verdict": "conforms"} == made["legs"][0]
    text = Path(paths["markdown"]).read_text()
    assert "<b>" not in text
    assert "*x*" not in text
    assert "\x1b" not in text + gate.text
    assert text.startswith("## mlx-assay gate: incomplete\n")


def test_schemas_are_those_of_the_structs() -> None:
    folder = Path(policy.__file__).parent
    for module, name in ((policy, "policy"), (decision, "decision")):
        published = json.loads((folder / f"{name}.schema.json").read_text())
        assert published == module.schema()
        jsonschema.Draft202012Validator.check_schema(published)
    for path in (ROOT / "ci/gate.toml", ROOT / "ci/examples/gate.toml"):
        given = tomllib.loads(path.read_text())
        for one in given.get("waivers", []):
            one["until"] = one["until"].isoformat()
        jsonschema.validate(given, policy.schema())
