"""docs/trellis-kernels.md: its sample runs as it stands and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlx_assay.impl.executors import use

PAGE = (Path(__file__).parents[2] / "docs/trellis-kernels.md").read_text()


def test_the_sample_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    sample, shown = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.S)
    with use("host"):
        exec(compile(sample, "docs/trellis-kernels.md", "exec"), {})
    assert capsys.readouterr().out == shown
