"""Atomics by kind and address space, counted by hand."""

from __future__ import annotations

import mlx.core as mx
import pytest
from counting.launching import count

from mlx_assay.impl.executors.counting import Atomics

RELAXED = "memory_order_relaxed"
KINDS = ("add", "sub", "max", "min", "and", "or", "xor")


@pytest.mark.parametrize("kind", KINDS)
def test_each_lane_its_own_word(kind: str) -> None:
    found = count(f"atomic_fetch_{kind}_explicit(&out[i], i, {RELAXED});", output=((64,), mx.uint32))
    assert found.atomics == {f"device fetch_{kind}": Atomics(1, 32, 4, 1)}
    assert (found.reads, found.writes) == ({}, {}) or found.traffic.requests == 0


def test_all_lanes_one_word() -> None:
    found = count(f"atomic_fetch_add_explicit(&out[0], i, {RELAXED});", output=((64,), mx.uint32))
    assert found.atomics == {"device fetch_add": Atomics(1, 32, 1, 32)}


def test_a_histogram() -> None:
    # Words 0 to 3, of which each has 8 lanes.
    found = count(f"atomic_fetch_add_explicit(&out[i & 3], 1, {RELAXED});", output=((64,), mx.uint32))
    assert found.atomics == {"device fetch_add": Atomics(1, 32, 1, 8)}


def test_loads_stores_and_exchanges() -> None:
    source = (
        f"const uint v = atomic_load_explicit(&out[i], {RELAXED});\natomic_store_explicit(&out[i], v + 1, {RELAXED});\n"
        f"uint e = atomic_exchange_explicit(&out[i], 7u, {RELAXED});\n"
        f"atomic_compare_exchange_weak_explicit(&out[i], &e, 9u, {RELAXED}, {RELAXED});"
    )
    found = count(source, output=((64,), mx.uint32))
    kinds = ("compare_exchange", "exchange", "load", "store")
    assert found.atomics == {f"device {kind}": Atomics(1, 32, 4, 1) for kind in kinds}


def test_threadgroup_memory() -> None:
    source = (
        "threadgroup atomic_uint s[2];\nif (i < 2) atomic_store_explicit(&s[i], 0u, memory_order_relaxed);\n"
        "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        f"atomic_fetch_add_explicit(&s[i & 1], i, {RELAXED});\n"
        "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        f"if (i == 0) atomic_store_explicit(&out[0], atomic_load_explicit(&s[1], {RELAXED}), {RELAXED});"
    )
    found = count(source, output=((64,), mx.uint32))
    assert found.atomics == {
        "device store": Atomics(1, 1, 1, 1),
        "threadgroup fetch_add": Atomics(1, 32, 0, 16),
        "threadgroup load": Atomics(1, 1, 0, 1),
        "threadgroup store": Atomics(1, 2, 0, 1),
    }
