"""Policies and command lines that cannot be meant: each is usage, says what is wrong, and nothing is written."""

from __future__ import annotations

import hashlib
import os
import re
from itertools import chain
from pathlib import Path

import pytest
from sound import COMMIT, NOW, POLICY, QUERY, Gate, ids, report

from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE, EXIT_USAGE, Verdict

ROOT = Path(__file__).parents[2]
WAIVER = f"""
[[waivers]]
query = "{ids()[0]}"
reason = "known since June"
issue = "https://example.org/issues/1"
expect = "differs"
until = 2026-06-30
"""
NEED = f'\n[[needs]]\nquery = "{QUERY}"\nverdict = "same-bits"\n'
FULL = POLICY + WAIVER + NEED


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys.readouterr)


def test_the_whole_policy_can_be_meant(gate: Gate) -> None:
    assert gate(report(verdicts={ids()[0]: Verdict.DIFFERS}), policy=FULL) == EXIT_CONFORMS, gate.text


EDITS: dict[str, tuple[str, str, str]] = {
    "no schema": ("schema =", "scheme =", "unknown field `scheme`|missing required field `schema`"),
    "another schema version": ("policy:1", "policy:2", "Invalid enum value"),
    "no age": ("age_hours = 24", "", "missing required field `age_hours`"),
    "an age of nothing": ("age_hours = 24", "age_hours = 0", ">= 1"),
    "a negative age": ("age_hours = 24", "age_hours = -24", ">= 1"),
    "an endless age": ("age_hours = 24", "age_hours = inf", "Expected `int`, got `float`"),
    "an age that is no number": ("age_hours = 24", "age_hours = nan", "Expected `int`, got `float`"),
    "an unknown key": ("age_hours = 24", "age_hours = 24\nage_hour = 2", "unknown field `age_hour`"),
    "an unknown key of a leg": ("cases = 20", "cases = 20\nbit = false", r"unknown field `bit` - at `\$.legs"),
    "an unknown key of a waiver": ('expect = "differs"', 'expect = "differs"\nuntill = 2', "unknown field `untill`"),
    "an unknown key of a need": ('verdict = "same-bits"', 'verdict = "same-bits"\nleg = "host"', "unknown field `leg`"),
    "an unknown key of the suite": ("[packages]", '[suite]\njury = "any"\n[packages]', "unknown field `jury`"),
    "a key twice": ("age_hours = 24", "age_hours = 24\nage_hours = 48", "Cannot overwrite"),
    "not TOML": ("[packages]", "[packages", "Expected|end"),
    "no legs": (POLICY[POLICY.index("[legs") :], "", "missing required field `legs`"),
    "no leg that is required": ("cases = 20", "cases = 20\nrequired = false", "Expected a leg that is required"),
    "a leg's name that is none": ("[legs.host]", '[legs."a b"]', "matching regex"),
    "no lowest number": ("cases = 20", "", "missing required field `cases`"),
    "a lowest number of nothing": ("cases = 20", "cases = 0", ">= 1"),
    "a lowest number as a text": ("cases = 20", 'cases = "20"', "Expected `int`, got `str`"),
    "no implementation": ('implementation = "kernels"', "", "missing required field `implementation`"),
    "no device class": ('["host-*"]', "[]", "length >= 1"),
    "a device class as a text": ('["host-*"]', '"host-*"', "Expected `array`, got `str`"),
    "bits of a paravirtual device": ('["host-*"]', '["paravirtual"]', "Expected a real device class"),
    "an unknown executor": ('executor = "host"', 'executor = "hots"', "Expected an executor"),
    "an unknown tier": ("cases = 20", 'cases = 20\ntier = "all"', "Invalid enum value 'all'"),
    "an unknown seed": ("cases = 20", 'cases = 20\nseed = "fresh"', "Invalid enum value|Expected"),
    "a negative seed": ("cases = 20", "cases = 20\nseed = -1", ">= 0"),
    "an unknown oracle": ("cases = 20", 'cases = 20\nwithout = ["torhc"]', "Expected an oracle"),
    "an unknown operation": ("cases = 20", 'cases = 20\nnot_asked = ["argmin"]', "Expected operations"),
    "a query of an unknown operation": (f'queries = ["{QUERY}"]', 'queries = ["argmin/*"]', "Expected an operation"),
    "a query that is none": (f'queries = ["{QUERY}"]', 'queries = ["/"]', "Expected a query"),
    "a lowest number of an unknown dtype": (
        "cases = 20",
        'cases = 20\n[legs.host.least]\n"normalized_argmax/float8" = 1',
        "Expected a dtype",
    ),
    "a package's version that is none": ('"==0.32.*"', '"newest"', "Expected a version"),
    "a package's version that is empty": ('"==0.32.*"', '""', "length >= 1"),
    "a package that no report tells of": ("[packages]", '[allowed]\ntorhc = "==1"\n[packages]', "Expected a package"),
    "a package in two spellings": (
        "[packages]",
        '[allowed]\nml_dtypes = "==1"\nml-dtypes = "==1"\n[packages]',
        "in two spellings",
    ),
    "a package needed and allowed": ("[packages]", '[allowed]\nMLX = "==1"\n[packages]', "but got mlx in both"),
    "a package needed and allowed of a leg": (
        "cases = 20",
        'cases = 20\nallowed = {mlx = "==1"}',
        "but got mlx in both",
    ),
    "a leg's name with a line's end": ("[legs.host]", '[legs."host\\n"]', "matching regex"),
    "a digest with a line's end": ("[packages]", '[suite]\nfixtures = "any\\n"\n[packages]', "matching regex"),
    "a waiver of blanks": ("known since June", "        ", "matching regex"),
    "a waiver whose issue steers": ("org/issues/1", "org/issues/\\u001b[31m", "matching regex"),
    "a waiver whose issue ends a line": ("org/issues/1", "org/issues/1\\n", "matching regex"),
    "the suite's version that is none": ("[packages]", '[suite]\nversion = "x"\n[packages]', "Expected a version"),
    "a digest that is none": ("[packages]", '[suite]\nfixtures = "0123"\n[packages]', "matching regex"),
    "a waiver of an unknown operation": (f'query = "{ids()[0]}"', 'query = "argmin/*"', "Expected an operation"),
    "a waiver without a reason": ('reason = "known since June"', "", "missing required field `reason`"),
    "a waiver with an empty reason": ("known since June", "", "length >= 8"),
    "a waiver without an issue": ('issue = "https://example.org/issues/1"', "", "missing required field `issue`"),
    "a waiver whose issue is no link": ("https://example.org/issues/1", "see above", "matching regex"),
    "a waiver whose issue is plain http": ("https://example", "http://example", "matching regex"),
    "a waiver without an end": ("until = 2026-06-30", "", "missing required field `until`"),
    "a waiver that ends at an hour": ("2026-06-30", "2026-06-30T12:00:00Z", "Expected `date`, got `datetime`"),
    "a waiver that ends on no day": ("until = 2026-06-30", 'until = "never"', "Invalid|Expected"),
    "a waiver without a verdict": ('expect = "differs"', "", "missing required field `expect`"),
    "a waiver of what agrees": ('expect = "differs"', 'expect = "same-bits"', "Invalid enum value"),
    "a waiver of what was not run": ('expect = "differs"', 'expect = "not-run"', "Invalid enum value"),
    "a waiver of what oracles disagree on": ('"differs"', '"oracles-disagree"', "Invalid enum value"),
    "a waiver of an unknown leg": ('expect = "differs"', 'expect = "differs"\nleg = "m9"', "Expected a leg, host"),
    "a need of an unknown verdict": ('verdict = "same-bits"', 'verdict = "differs"', "Invalid enum value"),
    "a need of nothing": (NEED.split("\n")[2], "", "missing required field `query`"),
    "nested deep": ("[packages]", f"x = {'[' * 4000}{']' * 4000}\n[packages]", "policy"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_policy_that_cannot_be_meant_is_usage(gate: Gate, name: str) -> None:
    old, new, told = EDITS[name]
    assert old in FULL
    options = ["--json", str(gate.folder / "out.json")]
    assert gate(report(), policy=FULL.replace(old, new, 1), options=options) == EXIT_USAGE, gate.text
    assert re.search(told, gate.text), gate.text
    assert "Traceback" not in gate.text
    assert not (gate.folder / "out.json").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}", b"\0" * 100, b"a" * 2**21])
def test_a_damaged_policy_is_usage(gate: Gate, content: bytes) -> None:
    path = gate.file("bad.toml", content)
    assert gate.call("gate", gate.file("a.json", report()), "--policy", path, "--commit", COMMIT) == EXIT_USAGE
    assert f"policy {path}: " in gate.text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--commit", "HEAD"], "Expected a whole commit"),
        (["--commit", COMMIT[:12]], "Expected a whole commit"),
        (["--now", "noon"], "--now: "),
        (["--now", "2026-06-01T12:00:00"], "Expected a time with its offset"),
        (["--statement", "s.json"], "Expected --artefact FILE"),
        (["--artefact", "absent.tgz"], "there is none"),
        (["--artefact", "sha256:0123"], "there is none"),
        (["--url", "javascript:alert(1)"], "Expected a URL"),
        (["--json", "gate.toml"], "which is used already"),
        (["--json", "a.json"], "which is used already"),
        (["--json", "x", "--markdown", "x"], "which is used already"),
        (["--json", "/dev/null"], "device, pipe or socket"),
        (["--policy", "absent.toml"], "there is none"),
        (["--polcy", "x"], "unrecognized arguments"),
        (["--pol", "gate.toml"], "unrecognized arguments"),
        (["--policy", "gate.toml", "--policy", "gate.toml"], "expected --policy once"),
        (["--commit", COMMIT, "--commit", COMMIT], "expected --commit once"),
        (["--artefact", "pipe"], "Expected a regular file"),
        (["--artefact", "/dev/zero"], "Expected a regular file"),
        (["--artefact", "/dev/null"], "Expected a regular file"),
        (["--artefact", "empty"], "the file is empty"),
        (["--artefact", f"sha256:{hashlib.sha256().hexdigest()}"], "got that of nothing"),
        (["--artefact", "loop"], "symbolic links"),
        (["--json", "loop"], "a link that leads nowhere"),
        (["--json", "-"], "Expected a file but got '-'"),
    ],
)
def test_a_command_line_that_cannot_be_meant_is_usage(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(gate.folder)
    gate.file("a.json", report())
    gate.file("gate.toml", POLICY)
    Path("empty").write_bytes(b"")
    Path("loop").symlink_to("loop")
    os.mkfifo("pipe")
    given = {"--policy": "gate.toml", "--commit": COMMIT, "--now": NOW}
    assert gate.call("gate", "a.json", *chain(*given.items())) == EXIT_CONFORMS, gate.text
    kept = {name: value for name, value in given.items() if name not in words}
    assert gate.call("gate", "a.json", *chain(*kept.items()), *words) == EXIT_USAGE
    assert told in gate.text
    assert (gate.folder / "a.json").exists()


def test_files_of_an_earlier_call_do_not_stand_for_this_one(gate: Gate) -> None:
    names = {name: gate.file(name, b"PASSED") for name in ("statement", "predicate", "json", "markdown")}
    options = [word for name, path in names.items() for word in (f"--{name}", path)]
    assert gate(b"{}", options=[*options, "--artefact", f"sha256:{'0' * 64}"]) == EXIT_INCOMPLETE
    assert [name for name in names if (gate.folder / name).exists()] == ["json", "markdown"]
    assert gate(b"{}", policy="", options=[*options, "--artefact", f"sha256:{'0' * 64}"]) == EXIT_USAGE
    assert not any((gate.folder / name).exists() for name in names)


@pytest.mark.parametrize("rule", ['Torch = "==1"', 'TORCH = "==1"'])
def test_a_package_counts_in_any_spelling_of_its_name(gate: Gate, rule: str) -> None:
    assert gate(report(), policy=POLICY.replace("[packages]", f"[allowed]\n{rule}\n[packages]")) == EXIT_INCOMPLETE
    assert "expected Torch ==1 but got 2.13.0" in gate.text.replace("TORCH", "Torch")
    assert gate(report(), policy=POLICY.replace("mlx =", "MLX =")) == EXIT_CONFORMS, gate.text


@pytest.mark.parametrize("now", ["9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+00:00"])
def test_the_first_and_the_last_moment_close_the_gate(gate: Gate, now: str) -> None:
    given = ["--policy", gate.file("gate.toml", POLICY), "--commit", COMMIT, "--now", now]
    assert gate.call("gate", gate.file("a.json", report()), *given) == EXIT_INCOMPLETE
    assert "it is older than" in gate.text or "it is from the future" in gate.text


def test_a_link_to_itself_is_no_report(gate: Gate) -> None:
    (gate.folder / "loop").symlink_to("loop")
    loop, sound = str(gate.folder / "loop"), gate.file("a.json", report())
    assert gate.call("gate", loop, "--policy", gate.file("g.toml", POLICY), "--commit", COMMIT) == EXIT_INCOMPLETE
    assert gate.call("merge", loop, "--report", str(gate.folder / "out.json")) == EXIT_INCOMPLETE
    assert gate.call("merge", sound, "--report", loop) == EXIT_USAGE
    assert gate.call("report", loop) == EXIT_USAGE
    assert gate.call("report", sound, "--html", loop) == EXIT_USAGE
    assert "Traceback" not in gate.text
