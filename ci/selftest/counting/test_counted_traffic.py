"""Reads and writes of arrays, counted by hand: requests, lanes, sectors of 32 bytes, lines of 128, footprints."""

from __future__ import annotations

import mlx.core as mx
import pytest
from counting.launching import count, floats

from mlx_assay.impl.executors.counting import Traffic


def test_neighbours_are_coalesced() -> None:
    found = count("out[i] = x[i];", floats(64), grid=64, threadgroup=64)
    # Two simdgroups, each 32 lanes of 4 bytes: 128 bytes, 4 sectors, 1 line.
    each = Traffic(2, 64, 256, 256, 8, 2, 256, 8)
    assert found.reads == {"device": each}
    assert found.writes == {"device": each}
    assert found.traffic == each + each
    assert (each.moved, each.coalesced, each.active) == (256, 1.0, 1.0)


def test_a_thread_of_two_bytes_moves_half_a_line() -> None:
    found = count("out[i] = x[i];", floats(64).astype(mx.float16), output=((64,), mx.float16))
    assert found.reads["device"] == Traffic(1, 32, 64, 64, 2, 1, 64, 2)


@pytest.mark.parametrize(
    ("step", "sectors", "lines"),
    # 32 lanes of 4 bytes, 4 * step apart: they span 124 * step + 4 bytes.
    [(2, 8, 2), (8, 32, 8), (16, 32, 16), (32, 32, 32), (64, 32, 32)],
)
def test_strides_move_what_nobody_asked_for(step: int, sectors: int, lines: int) -> None:
    found = count(f"out[i] = x[{step} * i];", floats(32 * step))
    assert found.reads["device"] == Traffic(1, 32, 128, 128, sectors, lines, 128, sectors)
    assert found.reads["device"].coalesced == 128 / (32 * sectors)


def test_one_address_for_all_is_one_sector() -> None:
    found = count("out[i] = x[40];", floats(64))
    assert found.reads["device"] == Traffic(1, 32, 128, 4, 1, 1, 4, 1)


def test_a_shifted_request_touches_one_sector_and_one_line_more() -> None:
    # Bytes 4 to 131.
    found = count("out[i] = x[i + 1];", floats(64))
    assert found.reads["device"] == Traffic(1, 32, 128, 128, 5, 2, 128, 5)


def test_an_element_that_lies_askew_reaches_into_the_next_sector() -> None:
    # Bytes 30 to 33 and 126 to 129: two sectors each, of which the last lies in the second line.
    found = count("out[i] = i < 2 ? *(const device float*)((const device uchar*)x + 30 + 96 * i) : 0;", floats(64))
    assert found.reads["device"] == Traffic(1, 2, 8, 8, 4, 2, 8, 4)


@pytest.mark.parametrize("width", [2, 4])
def test_a_vector_is_one_request_of_its_width(width: int) -> None:
    source = f"const float{width} v = ((const device float{width}*)x)[i];\n((device float{width}*)out)[i] = v + 1.0f;"
    found = count(source, floats(32 * width), output=((32 * width,), mx.float32))
    size = 128 * width
    assert (
        found.reads["device"] == found.writes["device"] == Traffic(1, 32, size, size, 4 * width, width, size, 4 * width)
    )
    assert {site.width for site in found.sites} == {4 * width}


def test_elements_one_after_the_other_are_requests_of_their_own() -> None:
    found = count("out[i] = (x[4 * i] + x[4 * i + 1]) + (x[4 * i + 2] + x[4 * i + 3]);", floats(128))
    # Each of four requests touches every sector of 512 bytes for 4 bytes of 16; together they touch all.
    assert found.reads["device"] == Traffic(4, 128, 512, 512, 64, 16, 512, 16)


def test_a_footprint_counts_a_byte_once() -> None:
    source = "float s = 0;\nfor (uint k = 0; k < 10; k++) s += x[s > 1e9f ? 63 - i : i];\nout[i] = s;"
    found = count(source, floats(64))
    assert (found.reads["device"].requests, found.reads["device"].footprint) == (10, 128)


def test_a_small_input_lies_in_constant_space() -> None:
    found = count("out[i] = x[0] + y[i];", floats(4), floats(64))
    assert found.reads == {
        "device": Traffic(1, 32, 128, 128, 4, 1, 128, 4),
        "constant": Traffic(1, 32, 128, 4, 1, 1, 4, 1),
    }


def test_a_table_of_the_program_lies_in_constant_space() -> None:
    table = ", ".join(str(n * n + 1) for n in range(64))
    found = count("out[i] = table[(i * 5) & 63];", header=f"constant float table[64] = {{{table}}};\n")
    # 32 lanes, 20 bytes apart, modulo 256: every sector of 8 is met.
    assert found.reads == {"constant": Traffic(1, 32, 128, 128, 8, 2, 128, 8)}


def test_a_view_begins_where_its_first_element_lies() -> None:
    # Columns are contiguous where rows are counted, so that the kernel gets every second element of a row.
    whole = floats(128).reshape(2, 64)
    found = count("out[i] = x[i];", whole[1])
    assert found.reads["device"].sectors == 4


def test_private_memory_is_what_no_register_can_be() -> None:
    found = count("float t[8];\nfor (uint k = 0; k < 8; k++) t[k] = x[i + k];\nout[i] = t[uint(x[i]) & 7];", floats(64))
    assert found.private_bytes == 32
    assert (found.writes["private"].lanes, found.writes["private"].bytes) == (8 * 32, 8 * 32 * 4)
    assert (found.reads["private"].lanes, found.reads["private"].bytes) == (32, 32 * 4)


def test_reads_beyond_every_array_are_told_apart() -> None:
    found = count("if (i == 31) out[i] = x[64];\nelse out[i] = 1;", floats(64)).reads
    assert {space: t.lanes for space, t in found.items()} == {"elsewhere": 1}


def test_what_may_be_the_threads_own_is_told_by_its_address() -> None:
    source = "float t[4] = {x[i], x[i + 1], x[i + 2], x[i + 3]};\nthread float* p = t;\nout[i] = p[uint(x[i]) & 3];"
    found = count(source, floats(64))
    assert found.reads["private"].lanes == 32
    assert "elsewhere" not in found.reads


def test_sites_name_their_line() -> None:
    found = count("const float v = x[i];\nout[i] = v;", floats(64))
    told = {(s.file, s.line, s.text, s.kind, s.space, s.width) for s in found.sites}
    assert told == {
        ("source", 2, "const float v = x[i];", "read", "device", 4),
        ("source", 3, "out[i] = v;", "write", "device", 4),
    }
