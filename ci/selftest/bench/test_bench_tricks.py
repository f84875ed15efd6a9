"""Each known trick of kernel benchmarks: it wins in a loop as it is often written, and is caught by name here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mlx_assay.conformance.bench.catalogue import selected
from mlx_assay.conformance.bench.measurement import Measurement, Plan
from mlx_assay.conformance.bench.message import Alarm
from mlx_assay.conformance.bench.process import Measuring, Tricked
from mlx_assay.conformance.process.implementation import Implementation

SELFTESTS = Path(__file__).parents[1]
ARGMAX, SOFTCAP = "normalized_argmax", "compiled_logit_softcap"
TRICKS = {
    "lazy_object": (ARGMAX, "deferred"),
    "filled_later": (ARGMAX, "deferred"),
    "batched": (ARGMAX, "deferred"),
    "replayed_by_id": (ARGMAX, "replayed"),
    "replayed_by_shape": (ARGMAX, "replayed"),
    "previous_output": (ARGMAX, "output-reused"),
    "writes_into_input": (SOFTCAP, "input-returned"),
    "capped_once": (SOFTCAP, "input-changed"),
    "side_stream": (ARGMAX, "side-stream"),
    "hidden_stream": (ARGMAX, "side-stream"),
    "patched_timer": (ARGMAX, "patched"),
    "patched_eval": (ARGMAX, "patched"),
    "patched_harness": (ARGMAX, "clock"),
    "thread_beside": (ARGMAX, "threads"),
    "collector_hook": (ARGMAX, "hooks"),
    "first_calls_alone": (ARGMAX, "unlike-itself"),
    "large_in_part": (ARGMAX, "unlike-itself"),
    "caller_looked_at": (ARGMAX, "unlike-itself"),
    "counted_apart": (ARGMAX, "unlike-itself"),
    "unwritten": (ARGMAX, "unwritten"),
}
SHAPE = "rows=8,vocab=65536"
"""Work enough for a clock that is off, or a stream that is behind, to show on a fast machine."""
FASTER = 3
"""How many times as fast as the honest form a trick must look where nothing is protected."""


def alarms(target: str | None, operation: str) -> list[Alarm]:
    """What is noticed of an implementation on the host."""
    (asked,) = selected([f"{operation}/float32"], "host", SHAPE)
    environment = Implementation(None, "host").environment
    with Measuring(target, "host", 60.0) as measuring:
        plan = Plan(rounds=2, calls=3, checks=2)
        measurement = Measurement(asked, measuring, environment, plan, (), 0.0, ("none",))
        try:
            measurement.rotations()
        except Tricked as tricked:
            return [tricked.alarm]
        return measurement.alarms


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SELFTESTS))


def test_every_trick_is_in_the_table() -> None:
    planted = {path.stem for path in (SELFTESTS / "bench" / "tricks").glob("*.py")} - {"occasion"}
    assert planted == set(TRICKS)


@pytest.mark.parametrize("trick", TRICKS)
def test_it_wins_where_nothing_is_protected(trick: str) -> None:
    code = f"import bench.unprotected as loop; loop.main({trick!r}, {TRICKS[trick][0]!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=SELFTESTS, capture_output=True, text=True, check=True)
    honest, planted = map(float, done.stdout.split())
    assert planted * FASTER < honest


@pytest.mark.parametrize("trick", TRICKS)
def test_it_is_caught_by_name(trick: str) -> None:
    operation, name = TRICKS[trick]
    found = alarms(f"bench.tricks.{trick}", operation)
    assert [alarm.trick for alarm in found[:1]] == [name], found


@pytest.mark.parametrize(("target", "operation"), [("bad.stock", ARGMAX), ("bad.stock", SOFTCAP), (None, ARGMAX)])
def test_an_honest_one_is_not(target: str | None, operation: str) -> None:
    assert alarms(target, operation) == []
