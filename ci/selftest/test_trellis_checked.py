"""The trellis kernels under the checker: nothing is found in them, and what is broken in their text is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl import executors, trellis
from mlx_assay.impl.executors.checker import Finding, Kind, check
from mlx_assay.impl.kernels.trellis import decoding, down_codebook, scatter
from mlx_assay.impl.trellis import Geometry

Call = Callable[[], Any]


@pytest.fixture(autouse=True)
def _host() -> Iterator[None]:
    with executors.use("host"):
        yield


def operands(k: int, rows: int, cols: int) -> tuple[mx.array, mx.array, mx.array, Geometry]:
    g = Geometry(k, 12, 256, 0, rows, cols, rows, cols, 2 if k == 3 else None)
    draw = np.random.default_rng(k)
    x, scales = draw.standard_normal((1, rows)), draw.standard_normal(rows)
    words = draw.integers(0, 2**32, g.code_shape, np.uint32)
    return mx.array(x.astype(np.float16)), mx.array(words), mx.array(scales.astype(np.float16)), g


def findings(call: Call) -> list[Finding]:
    return check(call)[1]


def test_rows_are_clean() -> None:
    """Fewer than 8 rows and more than 128, blocks that fill no pair of column groups, and empty splits."""
    two, three, four = operands(2, 3, 256), operands(3, 130, 1536), operands(4, 131, 768)
    assert findings(lambda: trellis.down_codebook_row(*two)) == []
    assert findings(lambda: trellis.down_codebook_row(*four)) == []
    assert findings(lambda: trellis.down_k3_interleaved_codebook_row(*three)) == []
    assert findings(lambda: trellis.factored_row(*four)) == []
    for kernel in trellis.KERNELS:
        for arrays in (two, three, four):
            assert findings(lambda kernel=kernel, arrays=arrays: trellis.scatter_row(*arrays, kernel=kernel)) == []


def test_decoding_is_clean() -> None:
    _, codes, scales, g = operands(3, 18, 512)
    for form in ("refined", "lut-threadgroup", "lut-device"):
        assert findings(lambda form=form: trellis.decode(codes, g, 0, scales, form)) == []
    small = Geometry(2, 11, 16, 1, 1, 16, 16, 1)
    assert findings(lambda: trellis.decode(mx.array([[0x12345678]], mx.uint32), small)) == []
    assert findings(lambda: trellis.code_values(mx.arange(-510, 511, dtype=mx.int32), "precise")) == []
    assert findings(lambda: trellis.column_sum(mx.ones((128, 67)))) == []


def test_the_byte_offset_window_is_misaligned() -> None:
    x, codes, scales, g = operands(2, 3, 256)
    found = findings(lambda: trellis.down_codebook_row(x, codes, scales, g, window="byte-offset"))
    assert {f.kind for f in found} == {Kind.MISALIGNED}
    assert all("(bytes + offset)" in f.place.text for f in found if f.place)
    assert {f.kind for f in findings(trellis.probe_misaligned_window)} == {Kind.MISALIGNED}


BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
LANES = "simdgroup_barrier(mem_flags::mem_threadgroup);\n  "
NOTHING = "threadgroup_barrier(mem_flags::mem_none);\n"
LEAVE = "if (count == 0) return;\n"
BROKEN = {
    "the codebook is read before it is filled": (Kind.RACE, "down_codebook", BARRIER, ""),
    "partials overwrite codes that others still read": (
        Kind.RACE,
        "down_codebook",
        f"{BARRIER}const uint top",
        "const uint top",
    ),
    "partials are summed before they are written": (
        Kind.RACE,
        "down_codebook",
        f"{BARRIER}const uint columns",
        "const uint columns",
    ),
    "a barrier that orders no memory": (
        Kind.BARRIER_FLAGS,
        "down_codebook",
        f"{BARRIER}const uint top",
        f"{NOTHING}const uint top",
    ),
    "lanes without a block leave before barriers": (
        Kind.EXIT_BEFORE_BARRIER,
        "down_codebook",
        "float sums",
        f"{LEAVE}float sums",
    ),
    "factors are read before the lane of their row has written them": (
        Kind.SIMDGROUP_RACE,
        "down_codebook",
        f"{LANES}const uint held",
        "const uint held",
    ),
    "factors of rows past the last are loaded": (Kind.OUT_OF_BOUNDS, "down_codebook", "if (r + lane < count)", ""),
    "the last block's words do not wrap": (Kind.OUT_OF_BOUNDS, "down_codebook", "(word + 1) % WORDS", "word + 1"),
    "columns past the last are written": (Kind.OUT_OF_BOUNDS, "down_codebook", "if (column < columns)", ""),
    "a lane that has left is shuffled from": (
        Kind.INACTIVE_LANE,
        "scatter",
        "const uint next = word + 1 == WORDS ? lane + 1 - WORDS : lane + 1;",
        "const uint next = lane + 1;\nif (!active) return;\n",
    ),
    "aligned words are shifted by 32": (Kind.SHIFT, "window", "if (shift + l > 32u)", ""),
}
KERNELS = {
    "down_codebook": (down_codebook, "_kernel", trellis.down_k3_interleaved_codebook_row),
    "scatter": (scatter, "_kernel", lambda *arrays: trellis.scatter_row(*arrays, kernel="plain")),
    "window": (decoding, "_decode_kernel", lambda x, codes, scales, g: trellis.decode(codes, g)),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_text_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    kind, part, old, new = BROKEN[fault]
    module, kernel, call = KERNELS[part]
    sound = module.metal_text

    def broken(name: str) -> str:
        text = sound(name)
        if name == f"trellis/{part}":
            assert old in text
            text = text.replace(old, new, 1)
        return text

    monkeypatch.setattr(module, "metal_text", broken)
    getattr(module, kernel).cache_clear()
    try:
        assert kind in {f.kind for f in findings(lambda: call(*operands(3, 3, 512)))}
    finally:
        getattr(module, kernel).cache_clear()
