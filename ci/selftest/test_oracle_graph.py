"""One process at a time compiles a graph, which a case is given time for."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlx_assay.conformance.contract import GRAPH_SECONDS, contracts
from mlx_assay.conformance.process.child import Death
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import all_cases, kind_of
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.oracles import graph, mlx_lm_softcap

HOLDS = """
import sys
from mlx_assay.oracles.graph import compiling
with compiling(*sys.argv[1:]):
    print("holds", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(graph, "_known", set())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    graph._locks.cache_clear()
    yield
    graph._locks.cache_clear()


@contextlib.contextmanager
def holding(*key: str) -> Iterator[Any]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, *key], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process
        if process.poll() is None:
            process.kill()


def test_a_graph_that_another_process_compiles_is_waited_for_and_no_other_is() -> None:
    with holding("softcap", "30.0") as first:
        assert first.stdout.readline() == "holds\n"
        with graph.compiling("softcap", "50.0"):
            pass
        with holding("softcap", "30.0") as second, holding("softcap", "31.0") as third:
            assert third.stdout.readline() == "holds\n"
            assert second.poll() is None
            first.stdin.write("\n")
            first.stdin.flush()
            assert first.wait() == 0
            assert second.stdout.readline() == "holds\n"


def test_the_second_of_two_comes_after_the_first_has_ended() -> None:
    with holding("softcap") as first:
        assert first.stdout.readline() == "holds\n"
        first.kill()
        with graph.compiling("softcap"):
            assert first.wait() != 0


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "PATIENCE", 0.1)
    with holding("softcap") as first:
        assert first.stdout.readline() == "holds\n"
        with graph.compiling("softcap"):
            assert first.poll() is None


def test_a_graph_is_known_once_it_was_evaluated_here(monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[int] = []
    monkeypatch.setattr(graph.fcntl, "lockf", lambda *given: locked.append(given[1]))
    with pytest.raises(ZeroDivisionError), graph.compiling("softcap"):
        raise ZeroDivisionError
    for _ in range(2):
        with graph.compiling("softcap"):
            pass
    exclusive, unlocked = graph.fcntl.LOCK_EX | graph.fcntl.LOCK_NB, graph.fcntl.LOCK_UN
    assert locked == [exclusive, unlocked, exclusive, unlocked]


def test_nobody_waits_where_there_can_be_no_lock(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("kept")
    (tmp_path / f"mlx-assay-graphs-{graph.os.getuid()}").symlink_to(target)
    entered = []
    with graph.compiling("softcap"):
        entered.append(True)
    assert entered == [True]
    assert target.read_text() == "kept"
    with pytest.raises(OSError, match="mlx-assay-graphs"):
        graph._locks(str(tmp_path), 0)


def test_both_models_have_one_graph_for_a_dtype_a_cap_and_a_number_of_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []

    @contextlib.contextmanager
    def compiling(*key: str) -> Iterator[None]:
        keys.append(key)
        yield

    monkeypatch.setattr(mlx_lm_softcap, "compiling", compiling)
    monkeypatch.setattr(mlx_lm_softcap, "_function", lambda model: lambda cap, x: x)
    row = np.ones(3, np.float32)
    for form in (mlx_lm_softcap.gemma4, mlx_lm_softcap.gemma3n):
        form(row, 30)
    for x, cap in ((row, 30.5), (row.astype(np.float16), 30), (row.reshape(1, 3), 30)):
        mlx_lm_softcap.gemma4(x, cap)
    assert len(keys) == 5
    assert len(set(keys)) == 4
    assert keys[0] == keys[1]


def test_a_softcap_has_a_graph_for_each_cap_and_dtype_and_nothing_else_has_one() -> None:
    kinds = (("reuse/many-caps?count=24", "float16", 24), ("reuse/alternating-caps", "float32", 3))
    having = {name for name, contract in contracts().items() if contract.graph}
    assert having == {"compiled_logit_softcap", "logit_softcap"}
    for operation in having:
        for kind, dtype, count in kinds:
            case = next(c for c in all_cases("quick", 0) if c.id.startswith(f"{operation}/{dtype}/{kind}"))
            found = contracts()[operation].patience(kind_of(case).subcases(case))
            assert found == count * GRAPH_SECONDS
    case = Case.make("logit_softcap", "float32", "error/cap-array", {"container": "numpy", "shape": "row", "seed": 0})
    assert contracts()["logit_softcap"].patience(kind_of(case).subcases(case)) == GRAPH_SECONDS


def test_a_case_may_take_its_patience_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_double.py").write_text("import time\ndef double(x):\n    time.sleep(1.5)\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    row = [Tensor(np.ones(3, np.float32))]
    with Implementation("slow_double", "host", operations=["double"]) as implementation:
        assert implementation.operations == ("double",)
        implementation.limit = 0.5
        run = implementation.begin("double", [row], rounds=(0,), patience=60)
        assert len(run.complete()) == 1
        implementation.finish(run)
        with pytest.raises(Death, match="No answer within the limit"):
            implementation.begin("double", [row], rounds=(0,)).complete()
