"""mlx-lm's kernels, unmodified, on an NVIDIA GPU through cuda_metal(), against operations of MLX on the same GPU."""

from collections.abc import Iterator
from types import ModuleType

import mlx.core as mx
import numpy as np
import pytest
from machine import NEEDS_GPU
from mlx_lm_sites import SITES, Site, on
from test_mlx_lm_kernels import BOUNDS, RACES, ULP

pytestmark = NEEDS_GPU

# What differs on a GPU beside what differs on the host.
ON_GPU = BOUNDS | {
    # Weights of a softmax: the kernel's exponentials are libdevice's, the reference's are MLX's own kernels'. The mixed
    # values are below 2.
    "attn_res": 2 * 4 * ULP,
}


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    with on("cuda_metal") as loaded:
        yield loaded


def arrays(outputs: list[mx.array]) -> list[np.ndarray]:
    mx.eval(outputs)
    return [np.array(out.astype(mx.float32), np.float64) for out in outputs]


@pytest.mark.parametrize("site", [site for site in SITES if site.name not in RACES], ids=lambda site: site.name)
def test_site(site: Site, modules: dict[str, ModuleType]) -> None:
    got, want = site.call(modules[site.module]), site.reference(modules[site.module])
    assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in want]
    distances = [float(np.abs(g - w).max()) for g, w in zip(arrays(got), arrays(want), strict=True)]
    assert len(distances) > 0
    bound = ON_GPU.get(site.name, 0.0)
    assert all(distance <= bound for distance in distances), f"{distances} beyond {bound}"
