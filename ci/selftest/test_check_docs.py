"""docs/checking.md: its examples say what the verb says, its tables what the code holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlx_assay.conformance.checking.request import LAUNCH_LIMIT, LIMIT, SCHEDULES, SEED
from mlx_assay.conformance.checking.rules import RULES
from mlx_assay.conformance.cli import main, parser

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/checking.md").read_text()
CONSOLE = re.compile(r"```console\n(.*?)```", re.S)
VARIES = re.compile(r"\d+\.\d s$|, \d+ times$", re.M)
"""Time, and how many runs a launch needs."""


def examples() -> list[tuple[str, str]]:
    found = [re.search(r"\$ mlx-assay (check [^\n]*)\n(.*)", block, re.S) for block in CONSOLE.findall(PAGE)]
    return [(match[1], match[2]) for match in found if match]


@pytest.mark.parametrize(("command", "shown"), examples(), ids=[command for command, _ in examples()])
def test_an_example_says_what_the_verb_says(
    command: str, shown: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT / "ci/examples")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    code = main(command.split())
    assert VARIES.sub("", capfd.readouterr().out) == VARIES.sub("", shown)
    assert code == (1 if shown.splitlines()[-1].startswith("findings") else 0)


def test_there_are_examples() -> None:
    assert len(examples()) == 2


def test_the_table_of_kinds_is_that_of_the_rules() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (error|warning|note) \| (.*) \| (.*) \|$", PAGE, re.M)
    assert rows == [(rule.kind, rule.severity.value, rule.title, rule.help) for rule in RULES.values()]


def test_every_option_has_its_line() -> None:
    verbs = next(action for action in parser()._actions if action.dest == "verb")
    assert isinstance(verbs.choices, dict)
    options = {name for action in verbs.choices["check"]._actions for name in action.option_strings}
    told = set(re.findall(r"`(--[a-z-]+)", PAGE.partition("## Kinds")[0]))
    assert options - {"-h", "--help"} == told - {"--rows"}


def test_defaults_are_the_same_everywhere() -> None:
    asked = parser().parse_args(["check", "x.py"])
    assert (asked.schedules.split(","), asked.seed) == (list(SCHEDULES), SEED)
    assert (asked.limit, asked.launch_limit) == (LIMIT, LAUNCH_LIMIT)


def test_every_problem_is_named() -> None:
    code = "".join(path.read_text() for path in (ROOT / "conformance/checking").glob("*.py"))
    told = re.findall(r'(?:trouble|_stumble)\(\s*"(\w+)"|Problem\(what="(\w+)"|what = "(\w+)"', code)
    names = {name for found in told for name in found if name} | set(re.findall(r'else "(exception)"', code))
    paragraph = PAGE.partition("`what` is ")[2].partition("\n\n")[0]
    assert names == {"nothing", *re.findall(r"`(\w+)`", paragraph)}
