"""Contraction and denormals at both doors to MLX's own rms norm: the same bits, and each switch moves them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from mlx_assay.impl.executors import fidelity
from mlx_assay.impl.executors.stock import dispatch


def test_rms_norm(texts: Any, bitcode: Any) -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((40, 4000)).astype(np.float32), rng.standard_normal(4000).astype(np.float32)
    weight[:100] *= 2.0**-125
    found = {}
    for contraction, denormals in product(fidelity.SWITCHES["contraction"], fidelity.SWITCHES["f32_denormals"]):
        with fidelity.switched(contraction=contraction, f32_denormals=denormals):
            compiled = dispatch.rms_norm(bitcode, x, weight, 1e-5).view(np.uint32)
            text = dispatch.rms_norm(texts, x, weight, 1e-5).view(np.uint32)
        assert np.array_equal(compiled, text), (contraction, denormals)
        found[contraction, denormals] = compiled
    apart = np.count_nonzero(found["on", "kept"] != found["off", "kept"])
    assert 1_000 < apart < 40_000, "some of 160,000"
    moved = found["on", "flushed"] != found["on", "kept"]
    assert np.count_nonzero(moved) > 1_000
    assert not moved[:, 100:].any(), "only where a weight makes the result denormal"
