"""Reports that somebody wrote to mislead, every text in them hostile, in every rendering; and files that are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from ctrf_schema import CTRF
from markdown_it import MarkdownIt
from markup import Page
from sarif_schema import SARIF

from mlx_assay.conformance.rendering.annotation import MOST, annotated
from mlx_assay.conformance.rendering.ctrf import ctrf
from mlx_assay.conformance.rendering.markdown import LARGEST as LARGEST_MARKDOWN
from mlx_assay.conformance.rendering.markdown import fenced, markdown
from mlx_assay.conformance.rendering.page import LARGEST, page
from mlx_assay.conformance.rendering.reading import read
from mlx_assay.conformance.rendering.sarif import sarif
from mlx_assay.conformance.rendering.text import text
from mlx_assay.conformance.reporting.report import Report, encode
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE, EXIT_USAGE

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from report_rendering import report

ATTACKS = {
    "script": "</style></script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "terminal": "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "direction": "\u202egnp.exe\u2066\u200b\u2028",
    "lines": "one\r\ntwo\n::error::three\n# four\n```\n| five |\n",
    "markdown": "`` ` ``` <details> **b** [x](http://e.vil) ![i](http://e.vil) @everyone #1 www.e.vil a|b\\",
    "command": "::set-output name=a::b%0A::error::c",
    "template": "{{ 7*7 }}{% raw %}",
    "entity": "&lt;script&gt;&#60;",
    "long": "<b>'\"&" * 2_000,
    "empty": "",
}
KEPT = frozenset({"schema", "verdict", "state", "replay"})
"""Fields of a few words alone, and the command, which is not shown apart where the message ends with it."""
CONTROLS = [*map(chr, range(32)), *map(chr, range(127, 160)), *"\u202e\u2066\u200b\u2028"]


def attacked(value: Any, attack: str, field: str = "") -> Any:
    """A document whose every text is the attack, the texts of its keys too."""
    if isinstance(value, str):
        return value if field in KEPT else attack
    if isinstance(value, list):
        return [attacked(item, attack, field) for item in value]
    if isinstance(value, dict):
        free = field in ("packages", "details", "oracles", "rules", "contracts")
        return {
            (f"{attack} {place}" if free else key): attacked(item, attack, key)
            for place, (key, item) in enumerate(value.items())
        }
    return value


@cache
def hostile(attack: str) -> Report:
    """What reading makes of such a report."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "report.json")
        file.write_bytes(msgspec.json.encode(attacked(msgspec.to_builtins(report(12, 4)), attack)))
        return read(str(file))


def shows_no_control(made: str) -> bool:
    return not [sign for sign in CONTROLS if sign != "\n" and sign in made]


@pytest.fixture(params=ATTACKS)
def report_of(request: pytest.FixtureRequest) -> Report:
    return hostile(ATTACKS[request.param])


def test_a_page_has_only_its_own_elements(report_of: Report) -> None:
    made = page(report_of)
    parsed = Page(made)
    assert parsed.faults == []
    assert shows_no_control(made)
    assert len(made.encode()) <= LARGEST
    assert {link for link in parsed.links if not link.startswith("#")} == {"data:,"}
    assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)


def test_a_page_shows_an_attack_as_text() -> None:
    assert ATTACKS["script"] in Page(page(hostile(ATTACKS["script"]))).text
    assert "\\x1b[2J" in Page(page(hostile(ATTACKS["terminal"]))).text
    assert "\\u202egnp.exe" in Page(page(hostile(ATTACKS["direction"]))).text
    assert "49" not in page(hostile(ATTACKS["template"])).partition("{{ 7*7 }}")[2][:20]


def tokens(made: str) -> set[str]:
    """Kinds of what GitHub's flavour makes of a text."""
    parsed = MarkdownIt("gfm-like", {"linkify": False}).parse(made)
    return {token.type for block in parsed for token in [block, *(block.children or [])]}


def elements(made: str) -> set[str]:
    """HTML that stands in Markdown as such."""
    parsed = MarkdownIt("gfm-like", {"linkify": False}).parse(made)
    found = [token for block in parsed for token in [block, *(block.children or [])]]
    return {token.content.strip().split("\n")[0] for token in found if token.type in ("html_inline", "html_block")}


def test_markdown_has_only_its_own_structure(report_of: Report) -> None:
    made = markdown(report_of)
    assert len(made.encode()) <= LARGEST_MARKDOWN
    assert shows_no_control(made)
    assert tokens(made) <= tokens(markdown(hostile("word"))) | {"html_inline"}
    assert not tokens(made) & {"link_open", "image", "hr", "lheading_open"}
    known = ("<code>", "</code>", "<br>", "<details>", "</details>")
    assert [one for one in elements(made) if not one.startswith(known)] == []
    assert "@e" not in "".join(line for line in made.split("\n") if line.startswith(("#", "|", "-")))


@pytest.mark.parametrize("inside", ["a", "```", "a\n````\n# b", "~~~"])
def test_a_fence_holds_whatever_stands_in_it(inside: str) -> None:
    blocks = MarkdownIt("commonmark").parse(fenced(inside))
    assert [(block.type, block.content) for block in blocks] == [("fence", inside + "\n")]


def test_a_message_of_a_million_signs_is_cut_everywhere(tmp_path: Path) -> None:
    of = report(12, 4)
    cases = [msgspec.structs.replace(case, message="m" * 1_000_000, output="o" * 1_000_000) for case in of.cases]
    file = tmp_path / "report.json"
    file.write_bytes(encode(msgspec.structs.replace(of, cases=cases)))
    cut = read(str(file))
    for made in (page(cut), markdown(cut), text(cut), annotated(cut), ctrf(cut), sarif(cut)):
        assert len(made) < 200_000
        assert "more characters" in made or made.startswith("::error")


def test_markdown_keeps_to_the_room_it_is_given() -> None:
    of = report(400, 400)
    for room in (0, 300, 2000, 50_000, 2**20):
        made = markdown(of, room)
        assert len(made.encode()) <= max(room, 100)
    assert "more cases that do not conform are left out here" in markdown(of)


def test_text_steers_no_terminal(report_of: Report) -> None:
    assert shows_no_control(text(report_of))


def test_annotations_are_so_many_lines(report_of: Report) -> None:
    lines = annotated(report_of).split("\n")
    assert lines.pop() == ""
    assert len(lines) == 4
    for line in lines:
        command, properties, message = line.split("::", 2)
        assert command == ""
        assert properties.startswith("error title=differs%3A ")
        assert shows_no_control(message)
        assert properties.count(",") == 0


def test_annotations_are_few() -> None:
    lines = annotated(report(100, 50)).splitlines()
    assert len(lines) == MOST
    assert "41 more cases" in lines[-1]


def test_ctrf_keeps_to_its_schema(report_of: Report) -> None:
    made = ctrf(report_of)
    jsonschema.validate(json.loads(made), CTRF)
    assert shows_no_control(made)


def test_sarif_keeps_to_its_schema(report_of: Report) -> None:
    made = sarif(report_of)
    jsonschema.validate(json.loads(made), SARIF)
    assert shows_no_control(made)


def nested(depth: int) -> bytes:
    return b'{"schema":"urn:mlx-assay:report:1","more":' + b"[" * depth + b"]" * depth + b"}"


def bent(**fields: Any) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(report(3, 1)), **fields})


DOCUMENTS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "empty"),
    "no JSON": (b"<report/>", "is none"),
    "half a report": (encode(report(3, 1))[:-400], "is none"),
    "another kind": (b'{"schema":"urn:mlx-assay:check:1"}', "'urn:mlx-assay:check:1'"),
    "another version": (bent(schema="urn:mlx-assay:report:2"), "'urn:mlx-assay:report:2'"),
    "no schema": (b"{}", "names no schema"),
    "a list": (b"[]", "is none"),
    "deep": (nested(100_000), "nested too deep"),
    "deep without end": (b"[" * 1_000_000, "is none"),
    "bytes": (b"\xff\xfe\x00", "is none"),
    "NaN": (b'{"schema":NaN}', "is none"),
    "a number without end": (bent(seconds=1).replace(b'"seconds":1,', b'"seconds":1e999,', 1), "is none"),
    "a huge count": (bent(totals={"declared": 10**30, "executed": 1}), "below 2^63"),
    "a wrong type": (bent(cases=[7]), "is none"),
    "an unknown verdict": (bent(verdict="\x1b[31mfine"), "is none"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_no_report_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    document, told = DOCUMENTS[name]
    file = tmp_path / "report.json"
    file.write_bytes(document)
    with pytest.raises(Refusal) as refusal:
        read(str(file))
    assert told in str(refusal.value)
    assert shows_no_control(str(refusal.value))
    assert refusal.value.code in (EXIT_USAGE, EXIT_INCOMPLETE)


def a_folder(tmp_path: Path) -> str:
    return str(tmp_path)


def a_pipe(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


def a_device(_: Path) -> str:
    return "/dev/zero"


def nothing(tmp_path: Path) -> str:
    return str(tmp_path / "absent.json")


def no_name(_: Path) -> str:
    return "a\0b"


@pytest.mark.parametrize("make", [a_folder, a_pipe, a_device, nothing, no_name])
def test_what_is_no_file_is_refused(make: Callable[[Path], str], tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="Report "):
        read(make(tmp_path))


def test_the_verb_ends_without_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(nested(100_000))
    done = subprocess.run(
        [sys.executable, "-m", "mlx_assay.conformance.cli", "report", str(file)], capture_output=True, text=True
    )
    assert done.returncode == EXIT_INCOMPLETE
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
