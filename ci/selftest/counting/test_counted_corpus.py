"""Every kernel at hand: counted, it has the bits that it has uncounted, and its counts fit together."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from checker.corpus import Row, rows
from checker.launching import launched

from mlx_assay.impl import apply_token_bitmask, argmax_given, executors, normalized_argmax, trellis
from mlx_assay.impl.executors.counting import Counts, Traffic, counted
from mlx_assay.impl.executors.counting.counts import LANES, SECTOR
from mlx_assay.impl.executors.crew import VARIABLE
from mlx_assay.impl.trellis import Geometry

_spec = importlib.util.spec_from_file_location("mlx_lm_sites", Path(__file__).parents[1] / "mlx_lm_sites.py")
assert _spec is not None
assert _spec.loader is not None
sites = sys.modules.setdefault("mlx_lm_sites", importlib.util.module_from_spec(_spec))
if not hasattr(sites, "SITES"):
    _spec.loader.exec_module(sites)

SOUND = [row for row in rows() if row.name.startswith("sound/")][::3]
Outputs = Sequence[Any]


@pytest.fixture(autouse=True)
def _one_core(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threadgroups that race on purpose do so in one order."""
    monkeypatch.setenv(VARIABLE, "1")
    with executors.use("host"):
        yield


def bits(outputs: Outputs) -> list[bytes]:
    """Of arrays of MLX or NumPy."""
    mx.eval([out for out in outputs if isinstance(out, mx.array)])
    return [bytes(memoryview(out.view(mx.uint8) if isinstance(out, mx.array) else out).cast("B")) for out in outputs]


def held(call: Callable[[], Outputs]) -> list[Counts]:
    """The counts of a call, which has to have the bits that it has uncounted."""
    plain = bits(call())
    with counted() as counts:
        got = bits(call())
    assert got == plain
    assert counts
    for each in counts:
        coherent(each)
    return counts


def coherent(counts: Counts) -> None:
    """What holds of any launch."""
    assert counts.threads == int(np.prod(counts.grid))
    assert counts.threads <= counts.simdgroups * LANES
    for side in (counts.reads, counts.writes):
        for space, t in side.items():
            if space != "private":
                consistent(space, t, not counts.atomics)
    for atomic in counts.atomics.values():
        assert atomic.requests <= atomic.serial <= atomic.lanes <= LANES * atomic.requests
    for operation in counts.simd.values():
        assert operation.requests <= operation.lanes <= LANES * operation.requests
    b = counts.barriers
    assert b.threadgroup <= b.threadgroup_simdgroups <= b.threadgroup_threads <= LANES * b.threadgroup_simdgroups
    for arithmetic in counts.arithmetic.values():
        assert arithmetic.issued <= arithmetic.lanes <= LANES * arithmetic.issued
    assert sum((s.traffic.requests for s in counts.sites), 0) >= sum(t.requests for t in counts.reads.values())


def consistent(space: str, t: Traffic, alone: bool) -> None:
    """What holds of the accesses of a space in one direction; `alone`: no atomics add to its footprint."""
    assert t.requests <= t.lanes <= LANES * t.requests
    assert t.useful <= t.bytes
    if space == "threadgroup":
        assert t.requests <= t.cycles
        assert t.conflicts < t.cycles
        return
    assert t.useful <= t.moved
    assert t.lines <= t.sectors <= 4 * t.lines
    assert not alone or t.footprint <= t.useful
    assert not alone or t.footprint_sectors <= t.sectors
    assert t.footprint <= SECTOR * t.footprint_sectors


def written(counts: Sequence[Counts]) -> int:
    """Bytes of device memory that plain writes have touched."""
    return sum(c.writes["device"].footprint for c in counts if "device" in c.writes)


@pytest.mark.parametrize("row", SOUND, ids=[row.name for row in SOUND])
def test_corpus(row: Row) -> None:
    sizes: list[int] = []

    def call() -> Outputs:
        outputs = launched(row.twin)
        sizes[:] = [out.nbytes for out in outputs]
        return outputs

    counts = held(call)
    whole = not any(c.atomics for c in counts) and row.twin.launch["init_value"] is None and row.want
    assert not whole or written(counts) == sum(sizes)


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    with sites.on("host_metal") as loaded:
        yield loaded


@pytest.mark.parametrize("name", [site.name for site in sites.SITES])
def test_mlx_lm(name: str, modules: dict[str, ModuleType]) -> None:
    site = next(site for site in sites.SITES if site.name == name)
    counts = held(lambda: site.call(modules[site.module]))
    assert {c.kernel for c in counts} == set(site.kernels)


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16], ids=str)
@pytest.mark.parametrize(("rows_", "vocabulary"), [(1, 33), (3, 2053)])
def test_selection(dtype: Any, rows_: int, vocabulary: int) -> None:
    logits = mx.random.normal((rows_, vocabulary), key=mx.random.key(rows_)).astype(dtype)
    lse = mx.logsumexp(logits, axis=-1, keepdims=True)
    for counts in (held(lambda: [normalized_argmax(logits)]), held(lambda: [argmax_given(logits, lse)])):
        # Every logit is read once at least, and an id of 4 bytes a row is written.
        assert sum(c.reads["device"].footprint for c in counts) >= logits.nbytes
        assert written(counts) >= 4 * rows_


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16], ids=str)
def test_mask(dtype: Any) -> None:
    logits = mx.random.normal((3, 515), key=mx.random.key(1)).astype(dtype)
    words = np.arange(17, dtype=np.int32) * 0x01234567
    counts = held(lambda: [apply_token_bitmask(logits, words)])
    assert written(counts) == logits.nbytes
    assert sum(c.reads["device"].footprint for c in counts) >= logits.nbytes + 65


@pytest.mark.parametrize(("k", "rows_", "cols"), [(2, 3, 256), (3, 130, 1536), (4, 131, 768)])
def test_trellis(k: int, rows_: int, cols: int) -> None:
    g = Geometry(k, 12, 256, 0, rows_, cols, rows_, cols, 2 if k == 3 else None)
    draw = np.random.default_rng(k)
    x, scales = (mx.array(draw.standard_normal(shape).astype(np.float16)) for shape in ((1, rows_), (rows_,)))
    codes = mx.array(draw.integers(0, 2**32, g.code_shape, np.uint32))
    row = trellis.down_k3_interleaved_codebook_row if k == 3 else trellis.down_codebook_row
    calls: list[Callable[[], Outputs]] = [
        lambda: [row(x, codes, scales, g)],
        lambda: [trellis.factored_row(x, codes, scales, g)],
        lambda: [trellis.decode(codes, g, 0, scales, "lut-threadgroup")],
    ]
    calls += [
        lambda kernel=kernel: [trellis.scatter_row(x, codes, scales, g, kernel=kernel)] for kernel in trellis.KERNELS
    ]  # type: ignore[misc]
    for call in calls:
        counts = held(call)
        # Every word of the codes is read, once at least.
        assert sum(c.reads["device"].footprint for c in counts) >= codes.nbytes
