"""Every place where the installed mlx-lm makes a Metal kernel: how to launch it small, and the same sum without Metal.

`call` and `reference` take the site's module, loaded inside `host_metal()`, and give the outputs of one launch and of
operations of MLX alone.
"""

import contextlib
import functools
import importlib
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import mlx.core as mx
import mlx.nn as nn

Outputs = list[Any]


@dataclass(frozen=True)
class Site:
    """`kernels` are the names that its launch gives to Metal."""

    name: str
    module: str
    kernels: tuple[str, ...]
    call: Callable[[ModuleType], Outputs]
    reference: Callable[[ModuleType], Outputs]


def _random(seed: int, *shape: int, dtype: Any = mx.float32, scale: float = 1.0) -> Any:
    """Small multiples of 1/64, which every dtype holds."""
    drawn = mx.random.randint(-64, 65, shape, key=mx.random.key(seed))
    return (drawn.astype(mx.float32) / 64 * scale).astype(dtype)


def _listed(outputs: Any) -> Outputs:
    return [out for out in (outputs if isinstance(outputs, (list, tuple)) else [outputs]) if out is not None]


def _rms(x: Any, eps: float) -> Any:
    x = x.astype(mx.float32)
    return x * mx.rsqrt((x * x).mean(-1, keepdims=True) + eps)


# Head norms: 3 tokens, 4 query heads, 2 key heads of 40 elements.
_HEADS: dict[str, Any] = {"n_heads": 4, "n_kv_heads": 2, "head_dim": 40, "eps": 1e-5, "query_scale": 0.5}


def _qkvg() -> Any:
    return _random(1, 1, 3, 2 * 6 * 40, dtype=mx.bfloat16)


def _normed_heads() -> tuple[Any, Any]:
    parts = _qkvg().reshape(1, 3, 12, 40)
    q = _rms(parts[:, :, :4], 1e-5).astype(mx.bfloat16)
    return (q.astype(mx.float32) * 0.5).astype(mx.bfloat16), _rms(parts[:, :, 4:6], 1e-5).astype(mx.bfloat16)


def _rotated(module: ModuleType) -> Outputs:
    return [
        mx.fast.rope(x.swapaxes(1, 2), 40, traditional=True, base=10000.0, scale=1.0, offset=5).swapaxes(1, 2)
        for x in _normed_heads()
    ]


_ROUTING = {"top_k": 4, "multiplier": 1.5, "score_eps": 1e-6, "route_scale": 2.0}


def _router() -> tuple[Any, Any]:
    # Distinct logits, so that no two experts tie.
    logits = mx.random.permutation(mx.arange(5 * 40), key=mx.random.key(2)).reshape(5, 40)
    return logits.astype(mx.float32) / 50 - 2, _random(3, 40, scale=0.1)


def _routed(module: ModuleType) -> Outputs:
    logits, bias = _router()
    scores = mx.sigmoid(logits * 1.5)
    chosen = mx.argsort(-(scores + bias), axis=-1)[:, :4]
    weights = mx.take_along_axis(scores, chosen, axis=-1)
    return [chosen.astype(mx.uint32), weights / (weights.sum(-1, keepdims=True) + 1e-6) * 2.0]


def _stream() -> dict[str, Any]:
    norm = nn.RMSNorm(600, eps=1e-5)
    norm.weight = _random(4, 600) + 1
    return {
        "branch": _random(5, 3, 600, dtype=mx.bfloat16),
        "stream": _random(6, 3, 600),
        "alpha": _random(7, 600),
        "beta": _random(8, 600),
        "post_weight": _random(9, 600, dtype=mx.bfloat16),
        "post_eps": 1e-6,
        "next_norm": norm,
    }


def _added(module: ModuleType) -> Outputs:
    s = _stream()
    branch = (s["post_weight"] * s["branch"]).astype(mx.bfloat16)
    return [s["alpha"] * s["stream"] + s["beta"] * _rms(branch, 1e-6).astype(mx.bfloat16).astype(mx.float32)]


def _added_and_normed(module: ModuleType) -> Outputs:
    (stream,) = _added(module)
    return [stream, (_rms(stream, 1e-5) * _stream()["next_norm"].weight).astype(mx.bfloat16)]


def _experts() -> tuple[Any, Any, Any]:
    return _random(10, 3, 2, 520, dtype=mx.bfloat16), _random(11, 3, 2), _random(12, 520)


def _combined(module: ModuleType) -> Outputs:
    experts, weights, norm = _experts()
    scaled = experts.astype(mx.float32) * norm
    scaled = scaled * mx.rsqrt((scaled * scaled).mean(-1, keepdims=True) + 1e-5)
    out = mx.zeros((3, 520))
    for k in range(2):
        step = out + scaled[:, k] * weights[:, k, None].astype(mx.bfloat16).astype(mx.float32)
        out = step.astype(mx.bfloat16).astype(mx.float32)
    return [out.astype(mx.bfloat16)]


def _gated_norm() -> tuple[Any, Any]:
    # Neither is contiguous: the kernel reads real strides.
    x = _random(13, 2, 3, 4, 48, dtype=mx.float16).swapaxes(1, 2)[..., :40]
    return x, _random(14, 2, 3, 2 * 160, dtype=mx.float16)[..., ::2]


def _gated(module: ModuleType) -> Outputs:
    x, gate = _gated_norm()
    flat = _rms(x, 1e-5).swapaxes(1, 2).reshape(2, 3, 160)
    return [(flat * mx.sigmoid(gate.astype(mx.float32))).astype(mx.float16)]


def _wkv() -> list[Any]:
    arrays = [_random(20 + i, 1, 3, 2, 64, scale=0.5) for i in range(6)]
    return [*arrays, _random(26, 1, 2, 64, 64)]


def _wkv_steps(module: ModuleType) -> Outputs:
    *arrays, state = _wkv()
    ys = []
    for t in range(3):
        y, state = module._wkv7_step_ops(*(x[:, t] for x in arrays), state)
        ys.append(y.squeeze(-1))
    return [mx.stack(ys, axis=1), state]


def _residuals(module: ModuleType) -> tuple[Any, Any, Any]:
    blocks = module.ResidualBlocks(1e-5)
    for seed in (30, 31):
        blocks.append(_random(seed, 1, 3, 700, dtype=mx.float16))
    return blocks, _random(32, 1, 3, 700, dtype=mx.float16), _random(33, 700, scale=0.25)


def _mixed(module: ModuleType) -> Outputs:
    blocks, partial, weight = _residuals(module)
    return [module._attn_res_combine(blocks.raw, blocks.inv_rms, partial, weight, 1e-5)]


def _delta(dk: int, vector: bool = False) -> list[Any]:
    q, k = (_random(40 + i, 1, 3, 2, dk, scale=0.25) for i in range(2))
    v = _random(42, 1, 3, 4, 8)
    g = mx.abs(_random(43, *((1, 3, 4, dk) if vector else (1, 3, 4)))) / 2 + 0.25
    beta = mx.abs(_random(44, 1, 3, 4))
    return [q, k, v, g, beta, _random(45, 1, 4, 8, dk)]


_PADDING = ((False, True, True),)


def _delta_call(module: ModuleType, function: str, dk: int, vector: bool, masked: bool) -> Outputs:
    mask = mx.array(_PADDING) if masked else None
    return _listed(getattr(module, function)(*_delta(dk, vector), mask))


def _delta_reference(module: ModuleType, dk: int, vector: bool, masked: bool) -> Outputs:
    mask = mx.array(_PADDING) if masked else None
    y, state = module.gated_delta_ops(*_delta(dk, vector), mask)
    # The kernel answers 0 where a token is masked, and the operations whatever the state gives.
    return [y if mask is None else mx.where(mask[..., None, None], y, 0), state]


def _delta_site(kernel: str, function: str, dk: int, vector: bool = False, masked: bool = False) -> Site:
    return Site(
        kernel,
        "mlx_lm.models.gated_delta",
        (kernel,),
        functools.partial(_delta_call, function=function, dk=dk, vector=vector, masked=masked),
        functools.partial(_delta_reference, dk=dk, vector=vector, masked=masked),
    )


def _ssm() -> list[Any]:
    return [
        _random(50, 2, 1, 4, 16),
        _random(51, 4),
        _random(52, 2, 1, 2, 64),
        _random(53, 2, 1, 2, 64),
        _random(54, 4),
        _random(55, 2, 1, 4),
        _random(56, 4),
        _random(57, 2, 4, 16, 64),
        (0.001, 100.0),
    ]


def _ssm_reference(module: ModuleType) -> Outputs:
    x, a_log, b, c, d, dt, dt_bias, state, limit = _ssm()
    dt = module.compute_dt(dt, dt_bias, limit)[:, 0]
    b, c = (mx.repeat(m[:, 0], 2, axis=1) for m in (b, c))
    decay = mx.exp(-mx.exp(a_log) * dt)
    state = decay[..., None, None] * state + (x[:, 0] * dt[..., None])[..., None] * b[:, :, None]
    out = (state * c[:, :, None]).sum(-1) + x[:, 0] * d[:, None]
    return [out[:, None], state]


def _sinkhorn() -> tuple[Any, Any]:
    return mx.abs(_random(60, 2, 3, 4, 4)) + 0.125, mx.array([1e-6])


def _balanced(module: ModuleType) -> Outputs:
    comb, eps = _sinkhorn()
    comb = comb / (mx.sum(comb, axis=-2, keepdims=True) + eps)
    for _ in range(3):
        comb = comb / (mx.sum(comb, axis=-1, keepdims=True) + eps)
        comb = comb / (mx.sum(comb, axis=-2, keepdims=True) + eps)
    return [comb]


def _bitlinear(module: ModuleType) -> tuple[Any, Any]:
    layer = module.BitLinear(132, 16, bias=False)
    layer.weight = mx.random.randint(0, 256, (4, 132), key=mx.random.key(70)).astype(mx.uint8)
    layer.weight_scale = mx.array([0.5])
    return layer, _random(71, 3, 132)


def _unpacked(module: ModuleType) -> Outputs:
    layer, x = _bitlinear(module)
    rows = [((layer.weight >> (2 * i)) & 3).astype(mx.float32) - 1 for i in range(4)]
    return [(x @ mx.concatenate(rows).T) * 0.5]


# A whole block of 4,096 elements and a rest, two rows.
_VOCABULARY = 4096 + 70


def _logits() -> tuple[Any, Any, Any]:
    return _random(80, 2, _VOCABULARY, scale=4), _random(81, 2, _VOCABULARY, scale=4), _random(82, 2)


def _loss(module: ModuleType, name: str) -> Outputs:
    q, p, cotangent = _logits()
    kernels = {"kl": "_kl_div_loss", "js": "_js_div_loss"}
    function = getattr(module, kernels[name])
    first = (lambda q, p: function(q, p)[0]) if name == "js" else function
    outputs, gradients = mx.vjp(first, [q, p], [cotangent])
    return [*outputs, gradients[0]]


def _divergence(name: str) -> Callable[[Any, Any], Any]:
    def kl(q: Any, p: Any) -> Any:
        return (mx.exp(p) * (p - q)).sum(-1)

    def loss(q: Any, p: Any) -> Any:
        q, p = (x - mx.logsumexp(x, axis=-1, keepdims=True) for x in (q, p))
        if name == "kl":
            return kl(q, p)
        middle = mx.logaddexp(q, p) - math.log(2)
        return 0.5 * (kl(middle, p) + kl(middle, q))

    return loss


def _loss_reference(module: ModuleType, name: str) -> Outputs:
    q, p, cotangent = _logits()
    outputs, gradients = mx.vjp(lambda q: _divergence(name)(q, p), [q], [cotangent])
    return [*outputs, gradients[0]]


def _norm_add(module: ModuleType, next_norm: bool) -> Outputs:
    told = _stream()
    return _listed(module.norm_add_norm(**told | ({} if next_norm else {"next_norm": None})))


def _attn_res(module: ModuleType) -> Outputs:
    return _listed(module._attn_res_mix(*_residuals(module), 1e-5))


def _bitlinear_call(module: ModuleType) -> Outputs:
    layer, x = _bitlinear(module)
    return [layer(x)]


def _pre_norm(module: ModuleType) -> Outputs:
    s = _stream()
    return [module.pre_norm(s["stream"], s["next_norm"], dtype=mx.bfloat16)]


def _pre_normed(module: ModuleType) -> Outputs:
    s = _stream()
    return [(_rms(s["stream"], 1e-5) * s["next_norm"].weight).astype(mx.bfloat16)]


_KERNELS, _MODELS = "mlx_lm.kernels.", "mlx_lm.models."

SITES = (
    Site(
        "qk_norm",
        _KERNELS + "qk_norm",
        ("qk_norm",),
        lambda m: m.qk_norm(_qkvg(), **_HEADS),
        lambda m: [*_normed_heads()],
    ),
    Site(
        "qk_norm_rope",
        _KERNELS + "qk_norm_rope",
        ("qk_norm_rope",),
        lambda m: m.qk_norm_rope(_qkvg(), **_HEADS, rope_base=10000.0, offset=5),
        _rotated,
    ),
    Site(
        "expert_routing",
        _KERNELS + "expert_routing",
        ("expert_routing",),
        lambda m: m.expert_routing(*_router(), **_ROUTING),
        _routed,
    ),
    Site(
        "norm_add_norm",
        _KERNELS + "norm_add_norm",
        ("norm_add_norm",),
        lambda m: _norm_add(m, True),
        _added_and_normed,
    ),
    Site("norm_add", _KERNELS + "norm_add_norm", ("norm_add",), lambda m: _norm_add(m, False), _added),
    Site("pre_norm", _KERNELS + "norm_add_norm", ("norm_add_norm_pre_norm",), _pre_norm, _pre_normed),
    Site(
        "post_expert_norm_combine",
        _KERNELS + "post_expert_norm_combine",
        ("post_expert_norm_combine",),
        lambda m: [m.post_expert_norm_combine(*_experts()[:2], norm_weight=_experts()[2], eps=1e-5)],
        _combined,
    ),
    Site(
        "rms_norm_sigmoid_gate",
        _KERNELS + "rms_norm_sigmoid_gate",
        ("rms_norm_sigmoid_gate",),
        lambda m: [m.rms_norm_sigmoid_gate(*_gated_norm(), eps=1e-5)],
        _gated,
    ),
    Site("wkv7", _MODELS + "rwkv7", ("wkv7_kernel",), lambda m: m.wkv7_kernel(*_wkv()), _wkv_steps),
    Site("attn_res", _MODELS + "kimi_k3", ("attnres_mix",), _attn_res, _mixed),
    _delta_site("gated_delta_step", "gated_delta_kernel", 64),
    _delta_site("gated_delta_step_mask", "gated_delta_kernel", 64, masked=True),
    _delta_site("gated_delta_step_vec", "gated_delta_kernel", 64, vector=True),
    _delta_site("gated_delta_step_vec_mask", "gated_delta_kernel", 64, vector=True, masked=True),
    _delta_site("gated_delta_step_xtree", "gated_delta_kernel_xtree", 128),
    _delta_site("gated_delta_step_packed_btree", "gated_delta_kernel", 128),
    Site("ssm", _MODELS + "ssm", ("ssm_kernel",), lambda m: m.ssm_update_kernel(*_ssm()), _ssm_reference),
    Site(
        "sinkhorn",
        _MODELS + "deepseek_v41",
        ("deepseek_v41_sinkhorn",),
        lambda m: [m._sinkhorn(_sinkhorn()[0], iters=4, eps=_sinkhorn()[1])],
        _balanced,
    ),
    Site("bitlinear", _MODELS + "bitlinear_layers", ("bitlinear_matmul",), _bitlinear_call, _unpacked),
    Site(
        "kl_loss",
        "mlx_lm.tuner.losses",
        ("kl_forward", "kl_backward"),
        lambda m: _loss(m, "kl"),
        lambda m: _loss_reference(m, "kl"),
    ),
    Site(
        "js_loss",
        "mlx_lm.tuner.losses",
        ("js_forward", "js_backward"),
        lambda m: _loss(m, "js"),
        lambda m: _loss_reference(m, "js"),
    ),
)


def made_in() -> dict[str, int]:
    """How many calls of `metal_kernel` every file of the installed mlx-lm holds, by module."""
    import mlx_lm

    root = Path(mlx_lm.__path__[0])
    found = {}
    for path in sorted(root.rglob("*.py")):
        calls = len(re.findall(r"\bmetal_kernel\(", path.read_text()))
        if calls:
            found[".".join(("mlx_lm", *path.relative_to(root).with_suffix("").parts))] = calls
    return found


@contextlib.contextmanager
def on(metal: str) -> Iterator[dict[str, ModuleType]]:
    """The sites' modules by name, with their Metal path taken by "host_metal" or "cuda_metal"; as before afterwards."""
    from mlx_assay import impl
    from mlx_assay.impl.executors import RememberedNoMetal

    names = sorted({site.module for site in SITES})
    loaded = [importlib.import_module(name) for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RememberedNoMetal)
        try:
            with getattr(impl, metal)():
                yield {module.__name__: importlib.reload(module) for module in loaded}
        finally:
            for module in loaded:
                importlib.reload(module)
