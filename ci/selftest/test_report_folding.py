"""The text of a report on a narrow terminal: folded between words, and nothing begins a line of its own."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

from mlx_assay.conformance.rendering.folding import folded, room

WORDS = "rule 3: The lowest id of the largest score wins, -0 and +0 being equal, ::error::forged and [b]more[/b]"


def screen(width: int, terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)


def parts(line: Text, width: int | None) -> list[str]:
    return [part.plain for part in folded(line, screen(width or 80), width)]


@pytest.mark.parametrize("width", [30, 40, 64, 90])
@pytest.mark.parametrize("indent", [0, 4, 20])
def test_prose_is_folded_between_words(width: int, indent: int) -> None:
    made = parts(Text(" " * indent + WORDS, "bold"), width)
    assert len(made) > 1
    assert max(map(len, made)) <= width
    assert all(re.match(r" *\| \S", line) for line in made[1:])
    joined = "".join(re.sub(r"^ *\| ", "", line) for line in made)
    assert joined.replace(" ", "") == WORDS.replace(" ", "")


def test_what_fits_and_what_may_not_be_broken_stands_as_it_is() -> None:
    assert parts(Text(WORDS), len(WORDS)) == [WORDS]
    assert parts(Text(WORDS), None) == [WORDS]
    assert parts(Text(WORDS, no_wrap=True), 40) == [WORDS]


def test_a_picture_is_cut_and_says_so() -> None:
    assert parts(Text("    " + "#" * 60, no_wrap=True, overflow="crop"), 40) == ["    " + "#" * 35 + ">"]


def test_a_word_too_long_for_the_terminal_is_broken() -> None:
    made = parts(Text("x" * 100), 40)
    assert max(map(len, made)) <= 40
    assert "".join(line.removeprefix("| ") for line in made) == "x" * 100


@pytest.mark.parametrize(
    ("terminal", "columns", "want"),
    [
        (True, "", 40),
        (False, "", None),
        (False, "72", 72),
        (False, "12", None),
        (False, "-4", None),
        (False, "9" * 20, None),
        (False, "many", None),
    ],
)
def test_a_log_is_folded_only_where_columns_are_asked_for(terminal: bool, columns: str, want: int | None) -> None:
    assert room(screen(40, terminal), {"COLUMNS": columns}) == want
