"""The two doors to MLX's stock kernels, and which of their launches run here."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

# The trials are modules beside the tests.
sys.path.insert(0, str(Path(__file__).parent))

NIGHTLY = "MLX_ASSAY_NIGHTLY"


@pytest.fixture(scope="session")
def texts() -> Any:
    from trials.libraries import Texts

    return Texts()


@cache
def _bitcode() -> Any:
    from trials.libraries import Bitcode

    from mlx_assay.impl.executors.apple import WheelError

    try:
        return Bitcode()
    except WheelError as error:
        return error


@pytest.fixture
def bitcode() -> Any:
    """Apple's kernels of the installed MLX's version; the test counts as not run where the wheel cannot be had."""
    if isinstance(found := _bitcode(), Exception):
        pytest.skip(f"not run: {found}")
    return found


def pytest_generate_tests(metafunc: Any) -> None:
    if "trial" in metafunc.fixturenames:
        from trials.table import every, gate

        chosen = every() if os.environ.get(NIGHTLY) else gate()
        if "bitcode" in metafunc.fixturenames:
            # The others MLX compiles when they are asked for: its library holds none.
            chosen = tuple(trial for trial in chosen if trial.doors != "text")
        metafunc.parametrize("trial", chosen, ids=[f"{i}-{trial}" for i, trial in enumerate(chosen)])
