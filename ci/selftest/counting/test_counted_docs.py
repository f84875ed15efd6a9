"""The example of docs/counting.md prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "counting.md"


def test_the_example_prints_what_stands_there() -> None:
    code, output = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text(), re.S)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(PAGE), "exec"), {})
    assert printed.getvalue() == output
