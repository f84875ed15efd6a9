"""MLX's own Metal kernels under the checker: what is found in them is real, and argued here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.checker import checked
from mlx_assay.impl.executors.checker.finding import Kind
from mlx_assay.impl.executors.stock import product
from mlx_assay.impl.executors.stock.library import StockLibrary

Said = set[tuple[Kind, str]]

ROW = "threadgroup_position_in_grid.x, thread_position_in_threadgroup.x"
LOOPED = f"{ROW}, threads_per_threadgroup.x"
LANES = "thread_index_in_simdgroup, simdgroup_index_in_threadgroup"
TILE = "threadgroup_position_in_grid, threadgroups_per_grid, thread_position_in_threadgroup, threads_per_threadgroup"


@dataclass(frozen=True)
class Stock:
    """A kernel's call with `a`, `out` and its scalars by type; its input, output, threads and rows; what is found."""

    header: str
    call: str
    scalars: tuple[Any, ...]
    input: tuple[int, ...]
    output: tuple[int, ...]
    threads: int
    groups: tuple[int, int] = (1, 1)
    dtype: Any = mx.float32
    found: Said = field(default_factory=set)
    why: str = ""


def int32(*values: int) -> tuple[Any, ...]:
    return tuple(mx.array(v, mx.int32) for v in values)


STOCK = (
    Stock(
        "softmax.h",
        f"softmax_single_row<float>(a, out, s0, {ROW}, {LANES})",
        int32(300),
        (3, 300),
        (3, 300),
        96,
        (3, 1),
    ),
    Stock(
        "softmax.h",
        f"softmax_looped<half, float>(a, out, s0, {LOOPED}, {LANES})",
        int32(5000),
        (2, 5000),
        (2, 5000),
        1024,
        (2, 1),
        mx.float16,
    ),
    Stock(
        "softmax.h",
        f"softmax_looped<half, float>(a, out, s0, {LOOPED}, {LANES})",
        int32(700),
        (2, 700),
        (2, 700),
        64,
        (2, 1),
        mx.float16,
        found={(Kind.UNINITIALISED, "softmax.h"), (Kind.DEPENDS_ON_GARBAGE, "")},
        why="Launched with 64 threads, as MLX never does: its 32 slots need 32 simdgroups.",
    ),
    Stock("logsumexp.h", f"logsumexp<float>(a, out, s0, {ROW}, {LANES})", int32(300), (3, 300), (3,), 96, (3, 1)),
    Stock(
        "logsumexp.h",
        f"logsumexp_looped<bfloat16_t, float>(a, out, s0, {LOOPED}, {LANES})",
        int32(5000),
        (2, 5000),
        (2,),
        1024,
        (2, 1),
        mx.bfloat16,
    ),
    Stock(
        "reduce.h",
        f"all_reduce<float, float, Sum<float>>(a, out, s0, s1, threadgroup_position_in_grid, "
        f"thread_position_in_threadgroup, threads_per_threadgroup, simdgroups_per_threadgroup, {LANES})",
        (mx.array(1000, mx.uint64), mx.array(1000, mx.uint64)),
        (1000,),
        (1,),
        96,
    ),
    Stock(
        "reduce.h",
        f"row_reduce_simple<float, float, Sum<float>>(a, out, s0, s1, {TILE}, thread_index_in_simdgroup, "
        "simdgroups_per_threadgroup, simdgroup_index_in_threadgroup)",
        (mx.array(200, mx.uint64), mx.array(6, mx.int64)),
        (6, 200),
        (6,),
        64,
        (1, 2),
        found={(Kind.SAME_VALUE_WRITE, "reduce_row.h")},
        why="The last tile of 4 rows is moved back inside and writes 2 rows that the first has written: the same sums.",
    ),
    Stock(
        "scan.h",
        f"contiguous_scan<int32_t, int32_t, CumSum<int32_t>, 4, true, false>(a, out, s0, {TILE}, {LANES})",
        (mx.array(700, mx.uint64),),
        (2, 700),
        (2, 700),
        192,
        (1, 2),
        mx.int32,
        found={(Kind.UNINITIALISED, "scan.h")},
        why="All 32 slots of simdgroup_sums are read, and 6 simdgroups have written theirs; an exclusive scan hands "
        "what the others hold to nobody that is there.",
    ),
    Stock(
        "sort.h",
        "block_sort<int32_t, uint32_t, true, 32, 4>(a, out, s0, s1, s2, s3, s4, threadgroup_position_in_grid, "
        "thread_position_in_threadgroup)",
        int32(100, 1, 1, 100, 100),
        (3, 100),
        (3, 100),
        32,
        (1, 3),
        mx.int32,
    ),
)


@pytest.mark.parametrize("stock", STOCK, ids=lambda stock: f"{stock.call.partition('<')[0]}-{stock.threads}")
def test_findings_are_real(stock: Stock) -> None:
    assert bool(stock.found) == bool(stock.why), "a finding without a reason"
    drawn = mx.random.randint(-50, 50, stock.input, key=mx.random.key(1))
    kernel = metal_kernel(
        "stock",
        ["a", *(f"s{i}" for i in range(len(stock.scalars)))],
        ["out"],
        f"{stock.call};",
        "".join(f'#include "mlx/backend/metal/kernels/{header}"\n' for header in ("reduce_utils.h", stock.header)),
    )
    with use("host"), checked() as findings:
        (out,) = kernel(
            inputs=[drawn.astype(stock.dtype), *stock.scalars],
            output_shapes=[stock.output],
            output_dtypes=[mx.uint32 if "uint32_t" in stock.call else stock.dtype],
            grid=(stock.threads * stock.groups[0], stock.groups[1], 1),
            threadgroup=(stock.threads, 1, 1),
        )
        mx.eval(out)
    assert {(f.kind, f.place.file.rpartition("/")[2] if f.place else "") for f in findings} == stock.found


def test_gemv_across_simdgroups() -> None:
    """A fault of MLX's own gemv, for rows at least 16 times as long as there are rows (BN = 8 in matmul.cpp).

    Eight simdgroups leave parts of the sums in tgp_memory and the first reads them: the barrier between has mem_none,
    and stands in the branch that one lane of each simdgroup takes (thrN == 0).
    """
    matrix = np.random.default_rng(1).standard_normal((16, 512)).astype(np.float32)
    with checked() as findings:
        product.matvec(StockLibrary(), matrix, np.ones(512, np.float32))
    header = Path(mx.__file__).parent / "include/mlx/backend/metal/kernels/gemv.h"
    lines = [line.strip() for line in header.read_text().splitlines()]
    said = {(f.kind, f.array, tuple(lines[a.place.line - 1] for a in f.accesses)) for f in findings}
    reads = "result[tm] += tgp_results[sgn * (blockM + TM) + tm];"
    assert (Kind.BARRIER_FLAGS, "tgp_memory", (reads, "tgp_results[tm] = result[tm];")) in said
    assert (Kind.DIVERGENT_BARRIER, "", ("threadgroup_barrier(mem_flags::mem_none);",)) in said
    assert {kind for kind, *_ in said} == {Kind.BARRIER_FLAGS, Kind.DIVERGENT_BARRIER}
