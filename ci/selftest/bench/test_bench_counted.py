"""The counted call: one of a queue, as all others are, whose output is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlx_assay.conformance.bench.catalogue import selected
from mlx_assay.conformance.bench.comparison import compared
from mlx_assay.conformance.bench.comparison import told as words
from mlx_assay.conformance.bench.counts import form, told, uncounted
from mlx_assay.conformance.bench.measurement import Measurement, Plan
from mlx_assay.conformance.bench.process import Measuring
from mlx_assay.conformance.bench.report import Demand, Form
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.impl.executors.counting import M1_MAX, total
from mlx_assay.impl.executors.counting.counts import Arithmetic, Counts, Traffic

KNOWN_BY_THE_STACK = """
from bench.tricks.counted_apart import queued
from mlx_assay.impl import normalized_argmax as right

def normalized_argmax(logits):
    return right(logits if queued() else logits[..., :64])
"""


def counted(target: str | None, seed: int) -> tuple[Measurement, list[Counts]]:
    """A measurement on the host, and the launches that it tells."""
    (asked,) = selected(["normalized_argmax/bfloat16?rows=4&vocab=32768"], "host", "rows=2,vocab=4096")
    with Measuring(target, "host", 60.0) as measuring:
        environment = Implementation(None, "host").environment
        plan = Plan(rounds=2, calls=4, checks=0)
        measurement = Measurement(asked, measuring, environment, plan, (), 0.0, ("none",), (), seed)
        (rotation,) = measurement.rotations()
    assert rotation.checked == 1, "the counted call is held against the oracle too"
    assert rotation.compared == rotation.timed == 8
    return measurement, measurement.launches


def test_it_is_a_call_of_a_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "known_by_the_stack.py").write_text(KNOWN_BY_THE_STACK)
    monkeypatch.syspath_prepend(str(tmp_path))
    measurement, launches = counted("known_by_the_stack", 3)
    assert measurement.alarms == []
    assert total(launches).traffic.footprint >= 2 * 4096 * 2
    _, own = counted(None, 3)
    assert len(own) == len(launches) == 1, "those of one call alone"
    assert own[0] == launches[0], "two sides are counted on the same content"


def test_counts_of_less_than_must_move_are_told_and_not_compared() -> None:
    whole = Counts("k", (64, 1, 1), (64, 1, 1), 64, 1, 2, 0, 0, 0, {"device": Traffic(footprint=1000)})
    small = Counts("k", (1, 1, 1), (1, 1, 1), 1, 1, 1, 0, 0, 0, {"device": Traffic(footprint=999)})
    one, other, none = form("one", [whole], 1000), form("other", [small], 1000), form("none", [], 1000)
    assert uncounted(one, 1000) == ""
    why = "99.9% of the bytes that must move: the rest is done where nothing is counted, or not at all"
    assert uncounted(other, 1000) == why
    (line,) = [line for line in told([one, other], 1000) if "that must move" in line]
    assert line.endswith(f"  other: {why}")
    assert "one: " not in line
    assert uncounted(none, 1000).startswith("it launches no kernel")
    assert list(told([none], 1000))[-1].endswith("MLX's own operations are not counted")


def test_a_comparison_says_whose_units_by_what_and_whether_the_device_is_full() -> None:
    traffic = {"device": Traffic(footprint=1000, footprint_sectors=40000)}
    few = Counts(
        "k", (64, 1, 1), (64, 1, 1), 64, 16, 2, 0, 0, 0, traffic, arithmetic={"integer": Arithmetic(issued=64000)}
    )
    full = Counts("k", (64, 1, 1), (64, 1, 1), 64, 132, 2, 0, 0, 0, traffic)
    found = compared([few], [full], ("few", "full"))
    assert (found.device, found.cores, found.less, found.by) == ("h200", 132, "second", "integer")
    assert found.first == Demand("few", 6000.0, 1, 4000.0, "integer", 16)
    assert (round(found.second.units), found.second.limit, found.second.threadgroups) == (4598, "device memory", 132)
    lines = list(words(found))
    assert lines[0] == "full does less on h200, by integer, modelled alone: units are its cycles, no time"
    assert lines[1] == "few 6,000 units, 4,000 of them for 1 launch whatever is done and 2,000 for its limit, integer"
    assert lines[2].startswith("full 4,598 units, 4,000 of them for 1 launch")
    assert lines[2].endswith("598 for its limit, device memory")
    assert lines[3].startswith("few has 16 threadgroups for 132 cores")
    assert len(lines) == 4
    other = compared([few], [full], ("few", "full"), M1_MAX)
    assert (other.device, other.less, other.first.launching) == ("m1-max", "neither", 0)
    assert list(words(other))[1] == "few 4,147 units in 1 launch, for its limit, device memory"


def test_rows_stand_where_their_own_form_has_them_and_nothing_is_0() -> None:
    one = Form(name="one", launches=1, measures={"issued": 9, "of them float": 4, "bytes": 5})
    other = Form(name="other", launches=1, measures={"issued": 9, "of them branch": 3, "of them float": 1, "bytes": 5})
    lines = [line.split() for line in told([one, other], 1000)][1:]
    assert [line[:-2] for line in lines] == [["issued"], ["of", "them", "branch"], ["of", "them", "float"], ["bytes"]]
    assert lines[1][-2:] == ["0", "3"]
    share = Form(name="share", launches=1, measures={"active lanes": 0.5})
    assert next(line for line in told([one, share], 1000) if "lanes" in line).split()[-2:] == ["-", "50.0%"]
