"""Every oracle passes its self-test, and a broken one does not: faults are planted in a module and must be named."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.oracles import (
    mlx_lm_softcap,
    numpy_reference,
    precise_softcap,
    registry,
    stock_mlx,
    torch_reference,
    xgrammar_inplace,
    xgrammar_mlx,
)
from mlx_assay.oracles.fault import OracleFault, require, require_bits

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
Array = np.ndarray


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_sound_oracle_passes(name: str) -> None:
    oracle = registry.load(name)
    assert name.replace("_", "-") == oracle.NAME
    assert oracle.version()
    assert registry.availability(name) is None
    oracle.self_test()


def last_of_ties(logits: Array, lse: Array, *_: Any) -> Array:
    scores = np.asarray(logits - lse).astype(np.float32)
    return np.asarray(scores.shape[-1] - 1 - np.argmax(scores[..., ::-1], axis=-1), np.uint32)


def raw_argmax(logits: Array, *_: Any) -> Array:
    return np.asarray(np.argmax(logits.astype(np.float32), axis=-1), np.uint32)


def wide_scores(logits: Array, lse: Array) -> Array:
    return np.asarray(logits.astype(np.float32) - lse.astype(np.float32))


def truncated_scores(logits: Array, lse: Array) -> Array:
    wide = wide_scores(logits, lse)
    return wide.view(np.uint32).__and__(np.uint32(0xFFFF0000)).view(np.float32).astype(lse.dtype)


def nan_skipped(values: Array, rule: str) -> Array:
    return np.asarray(np.nanargmax(np.where(np.isnan(values.astype("f4")), -np.inf, values.astype("f4")), -1), "u4")


def in_place(logits: Array, bits: Array) -> Array:
    return np.where(numpy_reference.allowed(bits, logits.shape[-1]), logits, logits.dtype.type(-np.inf))


def by_multiplication(logits: Array, bits: Array) -> Array:
    return np.asarray(logits * numpy_reference.allowed(bits, logits.shape[-1]).astype(logits.dtype))


def big_endian(bits: Array, vocabulary: int) -> Array:
    flags = np.unpackbits(bits.reshape(-1).astype(">i4").view(np.uint8), bitorder="big").astype(np.bool_)[:vocabulary]
    return np.pad(flags, (0, vocabulary - len(flags)))


def short_mask_passes(bits: Array, vocabulary: int) -> Array:
    flags = np.unpackbits(bits.reshape(-1).astype("<i4").view(np.uint8), bitorder="little").astype(np.bool_)
    return np.pad(flags[:vocabulary], (0, max(0, vocabulary - len(flags))), constant_values=True)


def rounded_once(x: Array, cap: float) -> Array:
    wide = x.astype(np.float64)
    return np.asarray(np.tanh(wide / cap) * cap).astype(x.dtype)


def exponential_ratio(x: Array, cap: float) -> Array:
    wide = np.exp(2 * (x.astype(np.float32) / np.float32(cap)))
    return np.asarray((wide - 1) / (wide + 1) * np.float32(cap)).astype(x.dtype)


def capped_twice(x: Array, cap: float) -> Array:
    return numpy_reference.logit_softcap(numpy_reference.logit_softcap(x, cap), cap)


def one_ulp_up(x: Array) -> Array:
    bits: np.dtype[Any] = np.dtype(f"u{x.itemsize}")
    bent = np.tanh(x.astype(np.float64)).astype(x.dtype)
    return np.asarray(
        np.where(np.abs(bent.astype(np.float32)) % 1 > 0, bent.view(bits) + bits.type(1), bent.view(bits))
    ).view(x.dtype)


def truncated(values: Array, dtype: np.dtype[Any]) -> Array:
    near = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000 if dtype == BFLOAT16 else 0xFFFFFFFE)
    return near.view(np.float32).astype(dtype)


def unstable(logits: Array) -> Array:
    return np.log(np.exp(logits.astype(np.float32)).sum(-1, keepdims=True)).astype(logits.dtype)


def compiled(broken: Callable[..., Array]) -> Callable[[str], Callable[..., Any]]:
    """mlx-lm's form with a fault, as the module looks it up."""
    return lambda model: lambda cap, x: stock_mlx.to_mlx(broken(stock_mlx.to_numpy(x), cap))


def added(broken: Callable[..., Array]) -> Callable[[], Callable[..., Any]]:
    """XGrammar's MLX function with a fault."""
    return lambda: (
        lambda words, logits, _: stock_mlx.to_mlx(broken(stock_mlx.to_numpy(logits), stock_mlx.to_numpy(words)))
    )


def written(change: Callable[[Any, Any], Any]) -> Callable[[], Callable[..., Any]]:
    """XGrammar's in-place function called with changed arguments."""
    sound = xgrammar_inplace._function()
    return lambda: lambda rows, words, vocabulary: sound(rows, change(rows, words), vocabulary)


SOUND_MASK = stock_mlx.apply_token_bitmask


def flipped_sign(logits: Array, bits: Array) -> Array:
    return SOUND_MASK(logits, bits & np.int32(2**31 - 1))


def saturating(logits: np.ndarray) -> np.ndarray:
    """As if the sum of exponentials stopped at 256."""
    finite = honest_logsumexp(logits)
    return np.minimum(finite, logits.max(-1, keepdims=True) + finite.dtype.type(math.log(256)))


honest_logsumexp = stock_mlx.logsumexp
FAULTS: list[tuple[Any, str, Any]] = [
    (stock_mlx, "logsumexp", unstable),
    (stock_mlx, "normalized_argmax", raw_argmax),
    (stock_mlx, "argmax_given", last_of_ties),
    (stock_mlx, "apply_token_bitmask", in_place),
    (stock_mlx, "apply_token_bitmask", by_multiplication),
    (stock_mlx, "apply_token_bitmask", flipped_sign),
    (stock_mlx, "logit_softcap", rounded_once),
    (stock_mlx, "logit_softcap", exponential_ratio),
    (stock_mlx, "logit_softcap", capped_twice),
    (numpy_reference, "scores", wide_scores),
    (numpy_reference, "scores", truncated_scores),
    (numpy_reference, "winners", nan_skipped),
    (numpy_reference, "argmax_given", last_of_ties),
    (numpy_reference, "argmax_given", raw_argmax),
    (numpy_reference, "allowed", big_endian),
    (numpy_reference, "allowed", short_mask_passes),
    (numpy_reference, "apply_token_bitmask", in_place),
    (numpy_reference, "apply_token_bitmask", by_multiplication),
    (numpy_reference, "logit_softcap", rounded_once),
    (numpy_reference, "logit_softcap", exponential_ratio),
    (torch_reference, "argmax_given", last_of_ties),
    (torch_reference, "argmax_given", raw_argmax),
    (torch_reference, "apply_token_bitmask", in_place),
    (torch_reference, "apply_token_bitmask", flipped_sign),
    (torch_reference, "logit_softcap", rounded_once),
    (torch_reference, "logit_softcap", exponential_ratio),
    (xgrammar_mlx, "_function", added(in_place)),
    (xgrammar_mlx, "_function", added(flipped_sign)),
    (xgrammar_mlx, "_function", added(by_multiplication)),
    (xgrammar_inplace, "_function", lambda: lambda *_: None),
    (xgrammar_inplace, "_function", written(lambda rows, words: ~words)),
    (xgrammar_inplace, "_function", written(lambda rows, words: words.roll(1, -1))),
    (xgrammar_inplace, "_function", written(lambda rows, words: words & (2**31 - 1))),
    (xgrammar_inplace, "apply_token_bitmask", xgrammar_inplace.apply_token_bitmask_inplace),
    (mlx_lm_softcap, "_function", compiled(rounded_once)),
    (mlx_lm_softcap, "_function", compiled(exponential_ratio)),
    (mlx_lm_softcap, "gemma2", capped_twice),
    (precise_softcap, "tanh", one_ulp_up),
    (precise_softcap, "tanh", lambda x: np.tanh(x.astype(np.float32)).astype(np.float16).astype(x.dtype)),
    (precise_softcap, "quotient", lambda x, cap: np.asarray(x.astype(np.float64) / cap)),
    (precise_softcap, "round_once", truncated),
    (precise_softcap, "logit_softcap", rounded_once),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("module", "function", "fault"),
    [
        pytest.param(*entry, id=f"{entry[0].NAME}-{entry[1]}-{getattr(entry[2], '__name__', 'fault')}-{index}")
        for index, entry in enumerate(FAULTS)
    ],
)
def test_a_planted_fault_is_named(module: Any, function: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, function, fault)
    with pytest.raises(OracleFault, match=f"Expected .* oracle {module.NAME} .*but got|Expected .*: it is not"):
        module.self_test()


def test_a_back_end_that_sums_halves_in_halves_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock_mlx, "logsumexp", saturating)
    with pytest.raises(OracleFault, match="for 70000 zeros"):
        stock_mlx.self_test()


def test_requirements_see_every_bit() -> None:
    zeros = np.zeros(3, np.float16)
    require_bits("x", "equal", zeros, zeros.copy())
    require_bits("x", "any NaN", np.array([0x7E01, 0xFC01], np.uint16).view("f2"), np.full(2, np.nan, np.float16))
    for other in (-zeros, zeros[:2], zeros.astype(np.float32), np.array([0, 0, np.nan], np.float16)):
        with pytest.raises(OracleFault):
            require_bits("x", "unequal", zeros, other)
    with pytest.raises(OracleFault, match="Expected 1 from oracle x for one but got True"):
        require("x", "one", True, 1)


def test_an_unknown_oracle_lists_the_known() -> None:
    with pytest.raises(KeyError, match=r"stock_mlx.*but got 'stock'"):
        registry.load("stock")


@pytest.mark.parametrize(
    ("name", "library"),
    [("torch_reference", "torch"), ("precise_softcap", "mpmath"), ("mlx_lm_softcap", "mlx_lm")],
)
def test_a_missing_library_is_named_with_its_mend(name: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    getattr(getattr(registry.load(name), "_function", None), "cache_clear", lambda: None)()
    for loaded in [module for module in sys.modules if module.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)
    reason = registry.availability(name)
    assert reason is not None
    assert library in reason
    assert "pip install" in reason


LIGHT = """
import sys
from mlx_assay.oracles import mlx_lm_softcap, stock_mlx, xgrammar_mlx
for oracle in (mlx_lm_softcap, stock_mlx, xgrammar_mlx):
    oracle.self_test()
heavy = {"torch", "transformers", "xgrammar", "mlx_lm"} & set(sys.modules)
assert not heavy, heavy
from mlx_assay.oracles import xgrammar_inplace
xgrammar_inplace.self_test()
assert "transformers" not in sys.modules
import mlx_lm.models.gemma4_text
import xgrammar
assert mlx_lm.models.gemma4_text.logit_softcap is not mlx_lm_softcap._function("gemma4_text")
assert str(xgrammar.Grammar.from_ebnf('root ::= "a"'))
xgrammar_inplace.self_test()
"""


def test_one_function_is_loaded_without_its_package() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
