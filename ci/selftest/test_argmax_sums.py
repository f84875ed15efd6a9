"""The logsumexp of the argmax kernel's one read has the bits of MLX's Metal kernel, as far as a CPU can tell.

No operation uses it on Metal: no device has been asked (docs/speed.md).
"""

from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.fixtures.draw import Draw
from mlx_assay.impl.executors import fidelity, metal_kernel, use
from mlx_assay.impl.executors.stock import StockLibrary, dispatch
from mlx_assay.impl.kernels import normalized_argmax as module
from mlx_assay.impl.kernels.text import metal_text

KERNEL = metal_kernel(
    "argmax_lse",
    ["logits", "vocab"],
    ["out"],
    metal_text("argmax/scan")
    + metal_text("argmax/summed")
    + "if (reader == 0) out[row] = as_type<uint>(float(shift));",
    metal_text("argmax/shared") + metal_text("argmax/sums_metal"),
)


@pytest.mark.parametrize("order", ["ascending-butterfly", "descending-butterfly", "sequential"])
@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16, mx.float32], ids=str)
def test_it_has_the_bits_of_the_metal_kernel(dtype: Any, order: str) -> None:
    library = StockLibrary()
    for vocab in (4097, 5003, 8200):
        for scale in (0.01, 1.0, 30.0):
            values = Draw(vocab).normal(np.dtype(np.float32), (3, vocab), scale)
            values[1, ::2] = -np.inf
            values[2, vocab // 2] = np.inf if scale > 1 else 0
            logits = mx.array(values).astype(dtype)
            given = np.array(logits.astype(mx.float32)).astype(_numpy(dtype))
            with use("host"), fidelity.switched(simd_sum=order):
                got = module._launched(KERNEL, module.MLX_READERS, logits).view(mx.float32)
                want = dispatch.logsumexp(library, given)
            assert np.array(got).tobytes() == want.astype(np.float32).tobytes(), (vocab, scale)


def _numpy(dtype: Any) -> Any:
    return {mx.bfloat16: ml_dtypes.bfloat16, mx.float16: np.float16, mx.float32: np.float32}[dtype]
