"""The logsumexp that the argmax kernel makes of its one read has the bits of mx.logsumexp on this back end.

Where it has not been compared, the kernel is not used: normalized_argmax.SUMS_PROVEN.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from machine import NEEDS_GPU
from material import handed

from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.kind import kind_of, kinds
from mlx_assay.fixtures.tensor import Tensor, viewed
from mlx_assay.impl import normalized_argmax
from mlx_assay.impl.executors import Kernel, metal_kernel, use
from mlx_assay.impl.kernels import normalized_argmax as module
from mlx_assay.impl.kernels.text import metal_text

pytestmark = NEEDS_GPU

DTYPES = (mx.bfloat16, mx.float16, mx.float32)
# What one reader, one simdgroup and a whole threadgroup hold, and their edges; vocabularies in use.
VOCABULARIES = (1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1000, 2049, 4096, 4097, 8192, 8193, 32769, 50257, 151936)
TOLD = "if (reader == 0) out[row] = as_type<uint>(float(shift));"
SCALES = (0.01, 1.0, 30.0, 1e4)


@pytest.fixture(autouse=True)
def _cuda() -> Iterator[None]:
    with use("cuda"):
        yield


@cache
def lse_kernel() -> Kernel:
    """The kernel, which tells the logsumexp instead of searching with it."""
    return metal_kernel(
        "argmax_lse",
        ["logits", "vocab"],
        ["out"],
        metal_text("argmax/scan")
        + metal_text("argmax/summed")
        + "if (reader == 0) out[row] = as_type<uint>(float(shift));",
        metal_text("argmax/shared") + metal_text("argmax/sums"),
    )


def differing(logits: mx.array) -> int:
    """Rows whose logsumexp is another than MLX's; any NaN is a NaN."""
    want = mx.logsumexp(logits, axis=-1).astype(mx.float32)
    got = module._launched(lse_kernel(), module.MLX_READERS, logits).view(mx.float32)
    words = got.view(mx.uint32) != want.view(mx.uint32)
    return int((words & ~(mx.isnan(got) & mx.isnan(want))).sum().item())


def test_it_is_used_here_only_where_it_is_proven() -> None:
    assert module._sums_proven() == ((mx.__version__, int(str(mx.device_info(mx.gpu)["architecture"])[3:])) in
                                     module.SUMS_PROVEN)  # fmt: skip


@pytest.mark.parametrize("vocab", VOCABULARIES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_it_has_the_bits_of_drawn_rows(dtype: Any, vocab: int) -> None:
    draw = Draw(vocab)
    for scale in SCALES:
        values = draw.normal(np.dtype(np.float32), (max(4, min(64, 300_000 // vocab)), vocab), scale)
        assert differing(mx.array(values).astype(dtype)) == 0, scale


@pytest.mark.parametrize("kind", sorted(kind for operation, kind in kinds() if operation == "normalized_argmax"))
def test_it_has_the_bits_of_every_case(kind: str) -> None:
    seen = 0
    for case in kinds()["normalized_argmax", kind].cases("quick"):
        for subcase in kind_of(case).subcases(case):
            given = subcase.arguments["logits"]
            if subcase.raises or not isinstance(given, Tensor):
                continue
            logits = viewed(handed(given), given.steps, mx)
            if logits.dtype not in DTYPES or not logits.size or not logits.ndim:
                continue
            seen += 1
            assert differing(logits) == 0, f"{case.id} {subcase.label}"
            assert mx.array_equal(normalized_argmax(logits), mx.argmax(logits - mx.logsumexp(
                logits, axis=-1, keepdims=True), axis=-1)).item(), f"{case.id} {subcase.label}"  # fmt: skip
    assert seen or "error" in kind or "integer" in kind
