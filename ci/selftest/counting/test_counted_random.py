"""Random requests against the same models written anew, over NumPy's sets."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from counting.launching import count, floats

GROUPS = 24
Places = np.ndarray[Any, np.dtype[np.int64]]


def places(seed: int, size: int) -> Places:
    """int64 [GROUPS, 32]: elements that lanes ask for; some groups spread, some together, some in a row."""
    draw = np.random.default_rng(seed)
    spread = draw.integers(0, size, (GROUPS, 32))
    spread[::3] = draw.integers(0, 9, (len(spread[::3]), 32)) * 31
    spread[1::6] = draw.integers(0, size - 32, (len(spread[1::6]), 1)) + np.arange(32)
    return spread


def blocks(bytes_: np.ndarray[Any, Any], width: int, size: int) -> int:
    """How many blocks of `size` bytes the lanes' accesses touch, group by group."""
    return sum(len({b // size for at in group for b in range(at, at + width)}) for group in bytes_.tolist())


def words(at: list[int], width: int) -> int:
    """The most different words of one bank."""
    found = {b // 4 for begin in at for b in range(begin, begin + width)}
    return max(sum(w % 32 == bank for w in found) for bank in range(32))


@pytest.mark.parametrize("seed", range(3))
def test_arrays(seed: int) -> None:
    at = places(seed, 2000)
    threads = GROUPS * 32
    found = count(
        "const uint k = y[i];\nout[i] = x[k];", floats(2000), mx.array(at.reshape(-1), mx.uint32),
        grid=threads, threadgroup=64, output=((threads,), mx.float32),
    )  # fmt: skip
    (site,) = (s for s in found.sites if s.text == "out[i] = x[k];" and s.kind == "read")
    t = site.traffic
    assert (t.requests, t.lanes, t.bytes) == (GROUPS, threads, 4 * threads)
    assert (t.useful, t.sectors, t.lines) == tuple(blocks(4 * at, 4, size) for size in (1, 32, 128))
    assert found.reads["device"].footprint == 4 * len(set(at.reshape(-1).tolist())) + 4 * threads


@pytest.mark.parametrize(("type_", "width"), [("uchar", 1), ("half", 2), ("float", 4), ("float2", 8), ("float4", 16)])
def test_banks(type_: str, width: int) -> None:
    size = 2000 // width
    at = places(width, size)
    threads = GROUPS * 32
    fill = f"for (uint k = i & 31; k < {size}; k += 32) s[k] = {type_}({'float' if width > 4 else type_}(k & 63));\n"
    read = "float(s[y[i]])" if width <= 4 else f"dot(s[y[i]], {type_}(1.0f))"
    source = f"threadgroup {type_} s[{size}];\n{fill}threadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = {read};"
    index = mx.array(at.reshape(-1), mx.uint32)
    found = count(source, floats(8), index, grid=threads, threadgroup=32, output=((threads,), mx.float32))
    t = found.reads["threadgroup"]
    lanes = 32 if width <= 4 else 128 // width
    turns = [(width * at[g, k : k + lanes]).tolist() for g in range(GROUPS) for k in range(0, 32, lanes)]
    cycles = [words(turn, width) for turn in turns]
    assert (t.requests, t.lanes) == (GROUPS, threads)
    assert (t.cycles, t.conflicts) == (sum(cycles), sum(cycles) - len(cycles))
    assert t.useful == blocks(width * at, width, 1)


def test_atomics() -> None:
    at = places(7, 48)
    threads = GROUPS * 32
    found = count(
        "atomic_fetch_add_explicit(&out[x[i] & 1023], 1, memory_order_relaxed);",
        mx.array(at.reshape(-1), mx.uint32),
        grid=threads, threadgroup=96, output=((1024,), mx.uint32),
    )  # fmt: skip
    (atomic,) = found.atomics.values()
    assert (atomic.requests, atomic.lanes) == (GROUPS, threads)
    assert atomic.sectors == blocks(4 * (at & 1023), 4, 32)
    assert atomic.serial == sum(int(np.unique(group, return_counts=True)[1].max()) for group in at)
