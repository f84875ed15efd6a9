"""Exploration beside the listed cases: Hypothesis draws arguments, the judge judges them, and finds become files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mlx_assay.conformance import worker
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.contracts.normalized_argmax import denormals_decide
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.process.implementation import ImplementationError
from mlx_assay.conformance.profiles import chosen
from mlx_assay.fixtures.encoding import FLOATS
from mlx_assay.fixtures.found import Find
from mlx_assay.fixtures.strategies import ARGUMENTS
from mlx_assay.fixtures.tensor import Tensor

if TYPE_CHECKING:
    from mlx_assay.conformance.process.implementation import Implementation

FOLDER = "mlx-assay-found"
WHY = "Found by exploration"


@pytest.fixture(scope="session")
def implementation(pytestconfig: pytest.Config) -> Implementation:
    """The process that runs what is judged, one a worker; started here, so that its failure is told once."""
    handle = worker.implementation(pytestconfig)
    try:
        _ = handle.operations
    except ImplementationError as error:
        pytest.fail(f"mlx-assay: {error}", pytrace=False)
    return handle


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every operation in every floating-point dtype of its contract; none where a query chose listed cases."""
    asked = not Options.of(metafunc.config).queries
    pairs = [
        (name, dtype)
        for name, contract in sorted(contracts().items())
        for dtype in FLOATS
        if asked and dtype in contract.dtypes
    ]
    metafunc.parametrize(("operation", "dtype"), pairs)


@chosen()
@given(data=st.data())
def test_exploration(
    operation: str, dtype: str, implementation: Implementation, pytestconfig: pytest.Config, data: st.DataObject
) -> None:
    """Judges drawn arguments; the smallest ones that fail are left in a file that `mlx-assay keep` takes."""
    if operation not in implementation.operations:
        pytest.skip(f"{operation} is not asked: the implementation has no function of this name")
    find = Find(operation, dtype, data.draw(ARGUMENTS[operation](dtype)), WHY)
    assume(not left_to_the_device(find))
    kind = find.kind()
    (case,) = kind.cases("quick")
    record = judge(case, implementation, kind=kind, without=Options.of(pytestconfig).without)
    if not record.conforms:
        path = candidate(find, Path.cwd() / FOLDER)
        # A drawn input has no id that replays it before it is kept.
        keep = f"mlx-assay keep {path} --why '...'"
        told = record.message.replace(record.replay, keep) if record.message else f"{record.verdict}: {keep}"
        pytest.fail(told, pytrace=False)


def left_to_the_device(find: Find) -> bool:
    """Rule 7 of the argmax contracts: whether denormals are zero decides no case."""
    if find.operation not in ("normalized_argmax", "argmax_given"):
        return False
    plain = {name: value.array if isinstance(value, Tensor) else value for name, value in find.arguments.items()}
    with np.errstate(all="ignore"):  # signalling NaN and overflow are what is looked for
        return denormals_decide(contracts()[find.operation].prepare(plain))


def candidate(find: Find, folder: Path) -> Path:
    """Writes the file of a find, over the larger one that exploration came upon before it."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{find.operation}-{find.dtype}.safetensors"
    path.write_bytes(find.encoded())
    return path
