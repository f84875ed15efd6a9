"""Which of two forms does less, by hand-made counts and by kernels of which one plainly does more."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import pytest
from counting.launching import count, floats
from msgspec.structs import replace

from mlx_assay.impl.executors.counting import (
    DEVICES,
    H200,
    Arithmetic,
    Counts,
    Operations,
    Traffic,
    bound,
    compare,
)

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"


def launch(**told: Any) -> Counts:
    """A launch of 32 threadgroups for each of the H200's cores that does nothing but what is told."""
    sizes = (256 * 4224, 1, 1), (256, 1, 1), 256 * 4224, 4224, 8 * 4224
    return Counts("made", *sizes, 0, 0, 0, **told)


def read(sectors: int, lines: int = 0, footprint: int = 0) -> dict[str, Traffic]:
    traffic = Traffic(requests=lines, lanes=32 * lines, sectors=sectors, lines=lines, footprint_sectors=footprint)
    return {"device": traffic}


@pytest.mark.parametrize(
    ("told", "limit", "cycles"),
    [
        # 2**20 sectors of 32 bytes, at 4.24e12 / 1.98e9 bytes a cycle.
        ({"reads": read(2**20, 2**10, 2**20)}, "device memory", 2**25 * 1.98e9 / 4.24e12),
        # Sectors that are asked for again come from the cache, 64 bytes a core.
        ({"reads": read(2**20, 2**10, 2**10)}, "cache", 2**25 / (64 * 132)),
        ({"reads": read(2**10, 2**20)}, "requests", 2**20 / 132),
        ({"reads": {"threadgroup": Traffic(requests=2**15, cycles=2**20)}}, "requests", 2**20 / 132),
        ({"simd": {"shuffle": Operations(2**20, 2**25)}}, "requests", 2**20 / 132),
        ({"simd": {"sum": Operations(2**20, 2**25)}}, "requests", 5 * 2**20 / 132),
        ({"simd": {"quad_max": Operations(2**20, 2**25)}}, "requests", 2 * 2**20 / 132),
        ({"simd": {"matrix_multiply_accumulate": Operations(2**20, 2**25)}}, "float", 16 * 2**20 / 528),
        ({"arithmetic": {"division": Arithmetic(2**25, 2**20)}}, "issue", 8 * 2**20 / 528),
        ({"arithmetic": {"float": Arithmetic(2**25, 2**20)}}, "issue", 2**20 / 528),
        ({"arithmetic": {"integer": Arithmetic(2**25, 2**20)}}, "integer", 2**20 / 264),
        ({"arithmetic": {"comparison": Arithmetic(2**25, 2**20)}}, "integer", 2**20 / 264),
        ({"arithmetic": {"product": Arithmetic(2**25, 2**20)}}, "product", 2**20 / 264),
        ({"arithmetic": {"long": Arithmetic(2**25, 2**20)}}, "integer", 2**21 / 264),
        ({"arithmetic": {"byte_sum": Arithmetic(2**25, 2**20)}}, "integer", 2**20 / 264),
        ({"arithmetic": {"conversion": Arithmetic(2**25, 2**20)}}, "conversion", 2**20 / 264),
        ({"arithmetic": {"transcendental": Arithmetic(2**25, 2**20)}}, "transcendental", 2**20 / 66),
    ],
)
def test_each_resource_limits_who_asks_most_of_it(told: dict[str, Any], limit: str, cycles: float) -> None:
    found = bound(launch(**told))
    assert found.limit == limit
    assert found.cycles[limit] == pytest.approx(cycles)
    assert found.units == pytest.approx(H200.launch + cycles)


def test_fewer_threadgroups_than_cores_leave_cores_idle() -> None:
    few = Counts("made", (256, 1, 1), (256, 1, 1), 256, 1, 8, 0, 0, 0, reads=read(64, 2**10))
    assert bound(few).cycles["requests"] == 2**10


def test_the_order_and_the_measure() -> None:
    coalesced, strided = launch(reads=read(2**15, 2**13, 2**15)), launch(reads=read(2**18, 2**18, 2**15))
    found = compare([coalesced], [strided])
    assert (found.less, found.by) == ("first", "requests")
    assert found.units[0] < found.units[1]
    assert compare([strided], [coalesced]).less == "second"


def test_forms_that_are_near_have_no_order() -> None:
    one, other = launch(reads=read(0, 2**22)), launch(reads=read(0, 2**22 + 2**12))
    assert (compare([one], [other]).less, compare([one], [other]).by) == ("neither", "")
    assert compare([], []).less == "neither"


def test_launches_decide_where_the_work_is_small() -> None:
    small = launch(reads=read(64, 16, 64))
    found = compare([small, small, small], [small])
    assert (found.less, found.by) == ("second", "launch")


def test_device_classes_say_where_their_rates_come_from() -> None:
    assert all(device.source and name == device.name for name, device in DEVICES.items())


def test_kernels_of_which_one_does_more() -> None:
    x = floats(2**16)
    size = {"grid": 2**16, "threadgroup": 256, "output": ((2**16,), mx.float32)}
    straight = count("out[i] = x[i];", x, **size)
    spread = count("out[(i * 33) & 65535] = x[(i * 33) & 65535];", x, **size)
    assert spread.traffic.footprint == straight.traffic.footprint
    assert compare([straight], [spread]).less == "first"
    turns = f"for (uint k = 0; k < 64; k++) {{\ns[33 * (i & 31)] = x[i];\n{BARRIER}}}\n"
    padded = f"threadgroup float s[33 * 32];\n{turns}out[i] = s[i & 31];"
    banked = padded.replace("33", "32")
    found = compare([count(banked, x, **size)], [count(padded, x, **size)])
    assert (found.less, found.by) == ("second", "requests")


@pytest.mark.parametrize(
    ("threadgroups", "working"), [(1, 1), (132, 132), (133, 66.5), (160, 80), (224, 112), (264, 132)]
)
def test_a_launch_ends_with_the_core_that_has_most_threadgroups(threadgroups: int, working: float) -> None:
    sizes = (256 * threadgroups, 1, 1), (256, 1, 1), 256 * threadgroups, threadgroups, 8 * threadgroups
    made = Counts("made", *sizes, 0, 0, 0, arithmetic={"float": Arithmetic(2**25, 2**20)})
    assert bound(made).cycles["float"] == pytest.approx(2**20 / (4 * working))


def test_a_sum_of_bytes_is_one_instruction_where_a_device_has_one() -> None:
    made = launch(arithmetic={"byte_sum": Arithmetic(2**25, 2**20)})
    for device in DEVICES.values():
        each = bound(replace(made, threadgroups=device.cores), device).cycles
        assert each["integer"] == pytest.approx(device.byte_sum * 2**20 / (device.integer * device.cores))
        assert each["issue"] == pytest.approx(device.byte_sum * 2**20 / (device.issued * device.cores))
    assert {name: device.byte_sum for name, device in DEVICES.items()} == {"h200": 1, "m1-max": 7}
