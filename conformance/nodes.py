"""Node ids: the names under which pytest knows cases, and arguments of its command line that lead to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlx_assay.conformance.options import resolved

FOLDER = Path(__file__).parent
CASE_MARK = "::test_mlx_assay["
"""What node ids of cases have in common; where the suite lies outside of rootdir, they name no file."""


def is_case(node_id: str) -> bool:
    """Whether a node id is one of a case."""
    return CASE_MARK in node_id


def case_id(node_id: str) -> str:
    """The case id inside a node id."""
    return node_id.partition(CASE_MARK)[2].removesuffix("]")


def leads_here(argument: str, config: pytest.Config) -> bool:
    """Whether an argument of pytest's command line names this suite, or a folder that holds it."""
    name = argument.partition("::")[0]
    if config.getoption("pyargs", False) and name.startswith("mlx_assay"):
        return True
    path = resolved(config.invocation_params.dir / name)
    if path.is_relative_to(FOLDER):
        return True
    return FOLDER.is_relative_to(path) and "site-packages" not in FOLDER.relative_to(path).parts
