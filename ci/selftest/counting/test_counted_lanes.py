"""Who takes part: branches, exits, short simdgroups, loops of different lengths, barriers, operations across lanes."""

from __future__ import annotations

import mlx.core as mx
import pytest
from counting.launching import count, floats

from mlx_assay.impl.executors.counting import Barriers, Operations

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"


def test_sizes_of_a_launch() -> None:
    found = count("out[0] = 1;", grid=(70, 3, 2), threadgroup=(40, 1, 2))
    # An edge threadgroup has 30 x 1 x 2 threads: 3 simdgroups of 80 threads beside 2 of 60.
    assert (found.threads, found.threadgroups, found.simdgroups) == (70 * 3 * 2, 6, 3 * (3 + 2))
    assert (found.grid, found.threadgroup) == ((70, 3, 2), (40, 1, 2))


def test_a_branch_leaves_half_of_the_lanes() -> None:
    found = count("if (i & 1) out[i] = 2; else out[i + 32] = x[i + 7];", floats(64))
    reads, writes = found.reads["device"], found.writes["device"]
    assert (reads.requests, reads.lanes, reads.active) == (1, 16, 0.5)
    # A store in both branches is one in what follows both.
    assert (writes.requests, writes.lanes) in ((1, 32), (2, 32))
    alone = count("if (i & 1) out[i] = x[i];", floats(64)).writes["device"]
    assert (alone.requests, alone.lanes, alone.sectors, alone.useful) == (1, 16, 4, 64)


def test_lanes_that_come_in_turn_make_a_request_each() -> None:
    found = count("for (uint k = 0; k < 32; k++)\n  if (k == (i * 7) % 32) out[k] = x[k + 1];", floats(64))
    assert (found.reads["device"].requests, found.reads["device"].lanes) == (32, 32)
    assert (found.writes["device"].requests, found.writes["device"].active) == (32, 1 / 32)


def test_loops_of_different_lengths() -> None:
    found = count("float s = 0;\nfor (uint k = 0; k <= i; k++) s += x[32 * k + i];\nout[i] = s;", floats(1024))
    # Turn k has the lanes from k on.
    assert (found.reads["device"].requests, found.reads["device"].lanes) == (32, 32 * 33 // 2)


def test_an_early_exit() -> None:
    found = count("if (i >= 40) return;\nout[i] = x[i];", floats(64), grid=64, threadgroup=64)
    assert (found.reads["device"].requests, found.reads["device"].lanes) == (2, 40)
    assert found.active == 40 / 64


def test_a_short_last_simdgroup() -> None:
    found = count("out[i] = x[i];", floats(64), grid=40, threadgroup=40)
    assert (found.simdgroups, found.reads["device"].requests, found.reads["device"].lanes) == (2, 2, 40)


def test_barriers_in_a_loop() -> None:
    turn = f"s[i] = x[i];\n{BARRIER}out[i] = s[95 - i];\n{BARRIER}"
    source = f"threadgroup float s[96];\nfor (uint k = 0; k < 3; k++) {{\n{turn}}}"
    found = count(source, floats(96), grid=96, threadgroup=96, output=((96,), mx.float32))
    assert found.barriers == Barriers(6, 18, 6 * 96)


def test_barriers_of_several_threadgroups_after_an_exit() -> None:
    source = (
        f"threadgroup float s[64];\nif ((i & 63) >= 32) return;\ns[i & 63] = x[i];\n{BARRIER}out[i] = s[31 - (i & 31)];"
    )
    found = count(source, floats(128), grid=128, threadgroup=64, output=((128,), mx.float32))
    assert found.barriers == Barriers(2, 2, 64)


def test_barriers_of_simdgroups() -> None:
    source = (
        "threadgroup float s[64];\ns[i] = x[i];\nsimdgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = s[i ^ 1];"
    )
    found = count(source, floats(64), grid=64, threadgroup=64)
    assert found.barriers == Barriers(simdgroup=2, simdgroup_threads=64)


@pytest.mark.parametrize(
    ("expression", "kinds"),
    [
        ("simd_sum(x[i])", {"sum"}),
        ("simd_max(x[i])", {"max"}),
        ("float(simd_or(uint(i)))", {"or"}),
        ("simd_shuffle_down(x[i], 1)", {"shuffle_down"}),
        ("simd_shuffle_xor(x[i], 1)", {"shuffle_xor"}),
        ("simd_broadcast(x[i], 3)", {"shuffle"}),
        ("simd_broadcast_first(x[i])", {"broadcast_first"}),
        ("simd_shuffle_and_fill_up(x[i], 0.0f, 1)", {"shuffle_and_fill_up"}),
        ("simd_prefix_inclusive_sum(x[i])", {"prefix_sum"}),
        ("quad_sum(x[i])", {"quad_sum"}),
        ("quad_shuffle(x[i], 2)", {"quad_shuffle"}),
        ("float(simd_all(x[i] > 3))", {"ballot"}),
        ("simd_sum(simd_min(x[i]) + i)", {"sum", "min"}),
    ],
)
def test_operations_across_lanes(expression: str, kinds: set[str]) -> None:
    found = count(f"out[i] = {expression};", floats(64), grid=64, threadgroup=64)
    assert found.simd == dict.fromkeys(sorted(kinds), Operations(2, 64))


def test_operations_of_some_lanes() -> None:
    found = count("if (i < 10) out[i] = simd_sum(x[i]);", floats(64))
    assert found.simd == {"sum": Operations(1, 10)}


def test_operations_in_a_loop() -> None:
    found = count(
        "float s = x[i];\nfor (uint k = 0; k < 5; k++) s = simd_shuffle_down(s, 1) + k;\nout[i] = s;", floats(64)
    )
    assert found.simd == {"shuffle_down": Operations(5, 160)}


def test_matrices() -> None:
    source = (
        "simdgroup_float8x8 a, b, c;\nsimdgroup_load(a, x, 8);\nsimdgroup_load(b, y, 8);\n"
        "simdgroup_multiply(c, a, b);\nsimdgroup_store(c, out, 8);"
    )
    found = count(source, floats(64), floats(64), header="#include <metal_simdgroup_matrix>\n")
    assert found.simd == {"matrix_multiply_accumulate": Operations(1, 32)}
    # A matrix of 64 floats is 256 bytes, two neighbours a lane.
    reads, writes = found.reads["device"], found.writes["device"]
    assert (reads.requests, reads.lanes, reads.bytes, reads.sectors, reads.lines) == (2, 64, 512, 16, 4)
    assert (writes.requests, writes.lanes, writes.bytes, writes.sectors, writes.lines) == (1, 32, 256, 8, 2)
