"""Threadgroup memory under the model of 32 banks of 4 bytes, counted by hand."""

from __future__ import annotations

import mlx.core as mx
import pytest
from counting.launching import count, floats

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"


def read(index: str, type_: str = "float", size: int = 2048) -> tuple[int, int, int]:
    """Requests, cycles and conflicts of one read of a threadgroup array by one simdgroup."""
    source = (
        f"threadgroup {type_} s[{size}];\nfor (uint k = i; k < {size}; k += 32) s[k] = {type_}(x[k & 63]);\n"
        f"{BARRIER}out[i] = float(s[{index}]);"
    )
    found = count(source, floats(64)).reads["threadgroup"]
    return found.requests, found.cycles, found.conflicts


@pytest.mark.parametrize(
    ("index", "cycles"),
    [
        ("i", 1),
        ("31 - i", 1),
        ("5", 1),  # a broadcast
        ("i / 2", 1),  # two lanes a word
        ("2 * i", 2),
        ("3 * i", 1),  # odd strides meet every bank
        ("4 * i", 4),
        ("8 * i", 8),
        ("16 * i", 16),
        ("32 * i", 32),
        ("33 * i", 1),  # the usual padding
        ("32 * (i & 1)", 2),  # two words of one bank, 16 lanes each
    ],
)
def test_strides(index: str, cycles: int) -> None:
    assert read(index) == (1, cycles, cycles - 1)


def test_halves_share_a_word() -> None:
    assert read("i", "half") == (1, 1, 0)
    # 32 lanes of two bytes, 4 bytes apart: a word each.
    assert read("2 * i", "half") == (1, 1, 0)
    assert read("4 * i", "half") == (1, 2, 1)


@pytest.mark.parametrize(("width", "turns"), [(2, 2), (4, 4)])
def test_vectors_take_as_many_turns_as_they_fill_banks(width: int, turns: int) -> None:
    source = (
        f"threadgroup float{width} s[64];\ns[i] = ((const device float{width}*)x)[i];\n{BARRIER}"
        f"((device float{width}*)out)[i] = s[%s];"
    )
    size = ((32 * width,), mx.float32)
    straight = count(source % "31 - i", floats(32 * width), output=size).reads["threadgroup"]
    assert (straight.requests, straight.cycles, straight.conflicts) == (1, turns, 0)
    # Every second vector: the lanes of a turn meet half of the banks, twice each.
    askew = count(source % "2 * i % 64", floats(32 * width), output=size).reads["threadgroup"]
    assert (askew.requests, askew.cycles, askew.conflicts) == (1, 2 * turns, turns)


def test_writes_conflict_as_reads_do() -> None:
    source = f"threadgroup float s[1024];\ns[32 * i] = x[i];\n{BARRIER}out[i] = s[32 * (31 - i)];"
    found = count(source, floats(64))
    assert (found.writes["threadgroup"].cycles, found.writes["threadgroup"].conflicts) == (32, 31)
    assert found.threadgroup_bytes == 4096


def test_inactive_lanes_do_not_conflict() -> None:
    source = f"threadgroup float s[1024];\ns[i] = x[i];\n{BARRIER}if (i < 4) out[i] = s[32 * i & 1023];"
    found = count(source, floats(64)).reads["threadgroup"]
    assert (found.lanes, found.cycles, found.conflicts) == (4, 4, 3)
