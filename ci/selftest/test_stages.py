"""Stages: where the time of a run goes, each slow part in its own line, and all of them together the whole."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.contract import Arguments, Contract, Reference
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.account import IMPLEMENTATION, STAGES, account
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.reporting.report import decode
from mlx_assay.conformance.reporting.stages import Tally, table
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.kind import Kind
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.impl.executors import stage as stages

SLOW = 0.25
SHARE = 0.05
"""Of a case's wall time, what may be missing of the sum of its stages, or too much."""

SOURCE = f"""
import time
import mlx.core as mx
from mlx_assay.impl.executors import metal_kernel

def double(x):
    return x + x

def slow(x):
    time.sleep({SLOW / 4})
    return x + x

def spins(x):
    end = time.process_time() + {SLOW / 4}
    while time.process_time() < end:
        pass
    return x + x

_copy = metal_kernel("copy", ["x"], ["y"], "y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];")

def launches(x):
    shapes, dtypes = [x.shape], [x.dtype]
    (y,) = _copy(inputs=[x], grid=(x.size, 1, 1), threadgroup=(1, 1, 1), output_shapes=shapes, output_dtypes=dtypes)
    return y
"""
OPERATIONS = ("double", "slow", "spins", "launches")


class Loader:
    """An oracle of the test's own."""

    def __call__(self, name: str) -> Any:
        return SimpleNamespace(NAME=name, version=lambda: "1", self_test=lambda: None)


@pytest.fixture(scope="module")
def implementation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Implementation]:
    folder = tmp_path_factory.mktemp("judged")
    (folder / "own_stages.py").write_text(SOURCE)
    with (
        pytest.MonkeyPatch.context() as patch,
        Implementation("own_stages", "host", 30.0, operations=OPERATIONS) as made,
    ):
        patch.syspath_prepend(folder)
        stopwatch.start("first")
        assert made.operations == tuple(sorted(OPERATIONS))
        yield made
        stopwatch.stop()


@pytest.fixture
def watch() -> Iterator[stopwatch.Stopwatch]:
    yield stopwatch.start("first")
    stopwatch.stop()


def case(
    implementation: Implementation, operation: str = "double", generation: float = 0.0, oracle: float = 0.0
) -> tuple[float, stopwatch.Spent]:
    """The wall seconds of a case of two subcases, and its stages. Parts that are slow sleep."""

    def made(draw: Draw, dtype: str) -> list[Subcase]:
        time.sleep(generation)
        rows = np.arange(6, dtype=np.float32).reshape(2, 3)
        return [Subcase(str(row), {"x": Tensor(row)}) for row in rows]

    def compute(arguments: Arguments) -> np.ndarray:
        time.sleep(oracle / 2)
        doubled: np.ndarray = arguments["x"] + arguments["x"]
        return doubled

    references = (Reference("own_oracle", compute, Verdict.SAME_BITS),)
    contract = Contract(operation, "", ("x",), ("float32",), references, (), ())
    kind = Kind(operation, "own/kind", "Because.", (), ("float32",), made)
    asked = Case.make(operation, "float32", "own/kind", {"seed": 0})
    watch = stopwatch.start("outside")
    watch.take()
    began = time.perf_counter()
    record = judge(asked, implementation, contract=contract, kind=kind, oracles=Loader())
    seconds = time.perf_counter() - began
    assert record.conforms, record.message
    return seconds, watch.take()


@pytest.mark.parametrize(
    ("slow", "name"),
    [
        ({"generation": SLOW}, "inputs"),
        ({"oracle": SLOW}, "oracle own_oracle"),
        ({"operation": "slow"}, f"{IMPLEMENTATION}call"),
    ],
    ids=["generation", "oracle", "implementation"],
)
def test_a_slow_part_shows_in_its_own_line(implementation: Implementation, slow: dict[str, Any], name: str) -> None:
    case(implementation)
    seconds, spent = case(implementation, **slow)
    assert spent[name][2] >= 0.99 * SLOW
    own = {stage: numbers for stage, numbers in spent.items() if not stage.startswith(IMPLEMENTATION)}
    assert sum(cpu for stage, (_, cpu, _) in spent.items()) < SLOW / 2
    longest = max(spent.keys() - {"waiting", f"{IMPLEMENTATION}idle"}, key=lambda stage: spent[stage][2])
    assert longest == name
    assert sum(wall for _, _, wall in own.values()) == pytest.approx(seconds, rel=SHARE, abs=0.02)


def test_both_processes_account_for_the_whole_case(implementation: Implementation) -> None:
    case(implementation, "slow")
    seconds, spent = case(implementation, "slow")
    theirs = [wall for stage, (_, _, wall) in spent.items() if stage.startswith(IMPLEMENTATION)]
    # Idle since its last answer, it counts from a little before the case to its own last answer in it.
    assert sum(theirs) == pytest.approx(seconds, rel=SHARE, abs=0.05)
    assert spent["waiting"][2] > SLOW / 2


def test_a_part_that_computes_costs_processor_seconds(implementation: Implementation) -> None:
    case(implementation)
    _, spent = case(implementation, "spins")
    count, cpu, wall = spent[f"{IMPLEMENTATION}call"]
    assert count == 4
    assert SLOW <= cpu <= wall + 0.1
    assert sum(numbers[1] for stage, numbers in spent.items() if stage != f"{IMPLEMENTATION}call") < SLOW


def test_launches_and_compilation_have_lines_of_their_own(
    implementation: Implementation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLX_ASSAY_CACHE", str(tmp_path))
    with Implementation("own_stages", "host", 60.0, operations=OPERATIONS) as fresh:
        _, first = case(fresh, "launches")
        _, second = case(fresh, "launches")
    compiled, launched, kernel = (f"{IMPLEMENTATION}{stage}" for stage in ("compile", "launch", "kernel"))
    # The compiler's own processes count.
    assert first[compiled][1] > 0.1
    assert second.get(compiled, (0, 0.0, 0.0))[0] == 0
    for spent in (first, second):
        assert spent[launched][0] == spent[kernel][0] == 4
    assert STAGES.count(stages.GRAPHS) == 1


def test_an_inner_stage_interrupts_the_outer(watch: stopwatch.Stopwatch) -> None:
    with stopwatch.stage("outer"):
        time.sleep(0.05)
        with stopwatch.stage("inner"):
            time.sleep(0.1)
        with stopwatch.stage("outer"):
            pass
    spent = watch.take()
    assert (spent["outer"][0], spent["inner"][0]) == (1, 1)
    assert spent["inner"][2] == pytest.approx(0.1, rel=0.3)
    assert spent["outer"][2] == pytest.approx(0.05, rel=0.6)
    assert watch.take().keys() == {"first"}


def test_an_error_ends_its_stage(watch: stopwatch.Stopwatch) -> None:
    with pytest.raises(ValueError, match="no"), stopwatch.stage("outer"):
        raise ValueError("no")
    watch.take()
    time.sleep(0.02)
    assert watch.take()["first"][2] >= 0.02


def test_the_first_stage_holds_what_was_before(watch: stopwatch.Stopwatch) -> None:
    count, cpu, wall = watch.take()["first"]
    assert count == 1
    assert cpu == pytest.approx(time.process_time(), abs=0.1)
    assert (wall > cpu / 4) == (sys.platform == "linux")


def test_processes_that_end_in_a_stage_are_told_of(watch: stopwatch.Stopwatch) -> None:
    spins = f"import time\nwhile time.process_time() < {SLOW}: pass"
    with stopwatch.stage("call", "compiler"), stopwatch.stage("inner", "inner"):
        subprocess.run([sys.executable, "-c", spins], check=True)
    spent = watch.take()
    assert spent["inner"][1] >= SLOW
    assert "compiler" not in spent
    with stopwatch.stage("call", "compiler"):
        subprocess.run([sys.executable, "-c", spins], check=True)
    assert watch.take()["compiler"][:2] == (1, pytest.approx(SLOW, abs=SLOW))


def test_another_thread_counts_for_nothing(watch: stopwatch.Stopwatch) -> None:
    def elsewhere() -> None:
        with stopwatch.stage("elsewhere"):
            seen.append(stopwatch.current())

    seen: list[object] = []
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [None]
    assert "elsewhere" not in watch.take()


def test_nothing_is_counted_where_nobody_asks() -> None:
    stopwatch.stop()
    with stopwatch.stage("alone"):
        assert stopwatch.current() is None
    assert stopwatch.taken("then") == {}
    with stages.stage("alone"):
        account({"call": (1, 1.0, 1.0)})
    assert stopwatch.taken("then") == {}


@pytest.mark.parametrize("numbers", [(-1, 0.0, 0.0), (1, float("nan"), 0.0), (1, 0.0, float("inf")), (1, 1e9, 1.0)])
def test_an_account_that_cannot_be_is_left_out(watch: stopwatch.Stopwatch, numbers: tuple[int, float, float]) -> None:
    account({"call": numbers, "kernel": (2, 1.0, 3.0), "\x1b[2Jown": (1, 1.0, 1.0)})
    spent = watch.take()
    assert spent[f"{IMPLEMENTATION}kernel"] == (2, 1.0, 3.0)
    assert f"{IMPLEMENTATION}call" not in spent
    assert not [stage for stage in spent if "own" in stage]


def test_accounts_of_workers_are_summed() -> None:
    tally = Tally()
    for _ in range(2):
        tally.add("double", {"judge": (3, 1.0, 2.0), "start": (1, 0.5, 0.5), f"{IMPLEMENTATION}kernel": (6, 4.0, 4.0)})
    tally.add("", {"report": (1, 0.25, 0.25)}, "command")
    found = {(one.process, one.stage, one.operation): (one.count, one.cpu, one.wall) for one in tally.stages()}
    assert found == {
        ("judge", "judge", "double"): (6, 2.0, 4.0),
        ("judge", "start", ""): (2, 1.0, 1.0),
        ("implementation", "kernel", "double"): (12, 8.0, 8.0),
        ("command", "report", ""): (1, 0.25, 0.25),
    }
    joined = Tally()
    joined.join(tally.stages())
    joined.join(tally.stages())
    assert {one.cpu for one in joined.stages()} == {0.5, 2.0, 4.0, 16.0}
    lines = [line.split() for line in table(tally.stages(), 12.25, 9.5)]
    assert ["implementation", "kernel", "12", "8.00", "65.3%", "8.00"] in lines
    assert ["not", "counted", "1.00", "8.2%"] in lines
    assert ["all", "12.25", "100.0%", "9.50"] in lines
    assert ["double", "6", "10.00", "implementation's", "kernel", "8.00,", "judge", "2.00"] in lines
    assert table([], 1.0, 1.0) == []


def test_a_run_tells_of_its_stages(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    words = ["run", "trellis_code_values", "apply_token_bitmask/*/mask/suffix", "-n", "2", "--executor", "host"]
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", *words, "--report", str(path), "--stages"]
    before = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = decode(path.read_bytes())
    # From the command's start, what comes before pytest included.
    own = sum(one.wall for one in report.stages if one.process == "command" and one.stage.startswith("start"))
    (judged_in,) = (one.wall for one in report.stages if (one.process, one.stage) == ("command", "pytest"))
    assert judged_in + 0.5 * own < report.seconds < time.monotonic() - before
    started = {one.process: one.count for one in report.stages if one.stage == "start"}
    assert started.keys() == {"command", "judge", "implementation"}
    # One of the command's own, to learn what there is to judge.
    assert started["implementation"] == 3
    judged = {one.operation: one.count for one in report.stages if (one.process, one.stage) == ("judge", "judge")}
    assert judged == Counter(record.operation for record in report.cases)
    assert len(judged) == 2
    everything = float(next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("all ")))
    assert 0.6 * everything <= sum(one.cpu for one in report.stages) <= everything + 0.1
