"""Every kernel of the installed mlx-lm, unmodified on the host executor, against operations of MLX alone."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors.choice import schedule

_spec = importlib.util.spec_from_file_location("mlx_lm_sites", Path(__file__).with_name("mlx_lm_sites.py"))
assert _spec is not None
assert _spec.loader is not None
sites = sys.modules.setdefault("mlx_lm_sites", importlib.util.module_from_spec(_spec))
if not hasattr(sites, "SITES"):
    _spec.loader.exec_module(sites)

ULP = 2.0**-24

# What an output may be away from its reference; a site that is not here has the reference's bits: it rounds where the
# operations round, or to a 16-bit type that leaves no room for another order of adding.
# A sum of n products in another order, or fused, moves by n * 2**-24 of the sum of their magnitudes at most.
BOUNDS: dict[str, float] = {
    # The kernel turns a pair before it is rounded to bfloat, MLX's rope after: two roundings of pairs below 2.9.
    "qk_norm_rope": 2 * 2.9 * 2.0**-8,
    # exp of MLX and of the C library differ by some units in the last place of sigmoids below 1, doubled.
    "expert_routing": 16 * ULP,
    # States below 1.3, three steps of 64 products of them with factors below 1/2.
    "wkv7": 64 * ULP * 3 * 64 * 0.5 * 1.3,
    # States below 1, keys and queries below 1/4: two sums of 64 (128) products a step, three steps.
    "gated_delta_step": 64 * ULP * 6 * 64 * 0.25,
    "gated_delta_step_mask": 64 * ULP * 6 * 64 * 0.25,
    "gated_delta_step_vec": 64 * ULP * 6 * 64 * 0.25,
    "gated_delta_step_vec_mask": 64 * ULP * 6 * 64 * 0.25,
    "gated_delta_step_xtree": 128 * ULP * 6 * 128 * 0.25,
    "gated_delta_step_packed_btree": 128 * ULP * 6 * 128 * 0.25,
    # 64 products of states below 2 with factors of at most 1, and exponentials of arguments near 1.
    "ssm": 64 * ULP * 64 * 2,
}

# The loss kernels write shared memory again before everybody has read it (no barrier but mem_none): whoever runs the
# simdgroups one after the other reads another one's partial sum. Round-robin hides it.
RACES = ("kl_loss", "js_loss")


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    with sites.on("host_metal") as loaded:
        yield loaded


def _arrays(outputs: list[Any]) -> list[np.ndarray[Any, Any]]:
    mx.eval(outputs)
    return [np.array(out.astype(mx.float32), np.float64) for out in outputs]


def _distances(site: Any, module: ModuleType) -> list[float]:
    """Of each output the largest distance from its reference, NaN where either is one; dtypes and shapes are equal."""
    got, want = site.call(module), site.reference(module)
    assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in want]
    return [float(np.abs(g - w).max()) for g, w in zip(_arrays(got), _arrays(want), strict=True)]


def _site(name: str) -> Any:
    return next(site for site in sites.SITES if site.name == name)


@pytest.mark.parametrize("order", ["in-order", "reverse", "round-robin", "pct:7"])
@pytest.mark.parametrize("name", [site.name for site in sites.SITES if site.name not in RACES])
def test_site(name: str, order: str, modules: dict[str, ModuleType]) -> None:
    site = _site(name)
    with schedule(order):
        distances = _distances(site, modules[site.module])
    bound = BOUNDS.get(name, 0.0)
    assert len(distances) > 0
    assert all(distance <= bound for distance in distances), f"{distances} beyond {bound}"


@pytest.mark.parametrize("name", RACES)
def test_a_site_with_a_race(name: str, modules: dict[str, ModuleType]) -> None:
    site = _site(name)
    scale = [float(np.abs(w).max()) for w in _arrays(site.reference(modules[site.module]))]
    # 4,166 terms are summed, for a logsumexp and for the loss, in float32.
    bound = [2 * 4166 * ULP * max(s, 1e-4) for s in scale]
    with schedule("round-robin"):
        hidden = _distances(site, modules[site.module])
    assert all(h <= b for h, b in zip(hidden, bound, strict=True)), f"{hidden} beyond {bound}"
    with schedule("in-order"):
        seen = _distances(site, modules[site.module])
    assert all(s > 10 * b for s, b in zip(seen, bound, strict=True)), "mlx-lm has mended its race: hold it to the bound"


def test_every_site_is_here() -> None:
    assert set(sites.made_in()) == {site.module for site in sites.SITES}
    assert len({kernel for site in sites.SITES for kernel in site.kernels}) >= sum(sites.made_in().values())
    assert {*BOUNDS, *RACES} <= {site.name for site in sites.SITES}
