"""What holds for every self-test."""

import os
from collections.abc import Iterator

import pytest

STEERING = (
    "CI",
    "BUILD_NUMBER",
    "GITHUB_",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "PY_COLORS",
    "PYTEST_ADDOPTS",
)
"""Beginnings of variables by which pytest, rich and this suite itself change what they print and allow."""


@pytest.fixture(scope="session", autouse=True)
def _same_words_everywhere() -> Iterator[None]:
    """Takes away what a CI service or a terminal sets, so that children print the same wherever the tests run."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(STEERING)]:
            patch.delenv(name)
        yield
