"""The kernels beyond what cases can see: memory, traces, both NaN rules, copies at the call, and errors."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay import impl
from mlx_assay.conformance.reporting.environment import graph_compiler
from mlx_assay.impl import executors
from mlx_assay.impl.executors import fidelity
from mlx_assay.impl.kernels import normalized_argmax as argmax_module
from mlx_assay.impl.kernels import token_bitmask as bitmask_module
from mlx_assay.impl.kernels.graph import run
from mlx_assay.impl.kernels.normalized_argmax import NanRule

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def _host() -> Iterator[None]:
    with executors.use("host"):
        yield


def rows_of(*values: float, dtype: mx.Dtype = mx.float32) -> mx.array:
    return mx.array([values], dtype=dtype)


def expected_id(logits: list[float], lse: float, rule: NanRule) -> int:
    """The rules spelled out in float32: which NaN wins, then the lowest id of the greatest score."""
    with np.errstate(invalid="ignore"):
        scores = np.float32(logits) - np.float32(lse)
    if rule == NanRule.FIRST and np.isnan(scores).any():
        return int(np.isnan(scores).argmax())
    if rule == NanRule.LEADING and np.isnan(scores[0]):
        return 0
    numbers = np.where(np.isnan(scores), -INF, scores)
    return int(numbers.argmax()) if numbers.max() > -INF else 0


@pytest.mark.parametrize("rule", NanRule)
@pytest.mark.parametrize("lse", [0.5, INF, -INF, NAN])
def test_every_nan_rule(monkeypatch: pytest.MonkeyPatch, rule: NanRule, lse: float) -> None:
    monkeypatch.setattr(argmax_module, "nan_rule", lambda: rule)
    values = [1.0, NAN, INF, -INF, 7.0]
    for logits in [[values[(start + i * step) % 5] for i in range(4)] for start in range(5) for step in (1, 2, 3, 4)]:
        got = impl.argmax_given(rows_of(*logits), rows_of(lse)).item()
        assert got == expected_id(logits, lse, rule), (logits, lse)


def test_nan_rules_across_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = np.zeros((1, 5000), np.float32)
    logits[0, [1500, 4999]] = 9, NAN
    for rule, want in ((NanRule.FIRST, 4999), (NanRule.SKIPPED, 1500), (NanRule.LEADING, 1500)):
        monkeypatch.setattr(argmax_module, "nan_rule", lambda rule=rule: rule)
        assert impl.argmax_given(mx.array(logits), mx.array([[1.0]])).item() == want


@pytest.mark.parametrize(
    ("version", "device", "rule"),
    [
        ("0.32.2", mx.cpu, NanRule.LEADING),
        ("0.32.2", mx.gpu, NanRule.SKIPPED),
        ("0.32.3", mx.cpu, NanRule.FIRST),
        ("0.33.0.dev2026", mx.gpu, NanRule.FIRST),
    ],
)
def test_nan_rule_follows_the_installed_version(
    monkeypatch: pytest.MonkeyPatch, version: str, device: mx.DeviceType, rule: NanRule
) -> None:
    monkeypatch.setattr(argmax_module, "_mlx_version", lambda: version)
    monkeypatch.setattr(argmax_module.mx, "default_device", lambda: mx.Device(device))
    assert argmax_module.nan_rule() is rule


def test_no_array_of_scores() -> None:
    logits = mx.random.normal((8, 262144))
    mx.eval(logits)

    def peak(function) -> int:
        mx.clear_cache()
        mx.reset_peak_memory()
        before = mx.get_active_memory()
        mx.eval(function(logits))
        return mx.get_peak_memory() - before

    stock = peak(lambda x: mx.argmax(x - mx.logsumexp(x, axis=-1, keepdims=True), axis=-1))
    assert stock >= logits.nbytes
    assert peak(impl.normalized_argmax) < logits.nbytes / 16


def test_kernels_do_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(argmax_module, "_kernel", refuse)
    monkeypatch.setattr(bitmask_module, "_kernel", refuse)
    x = mx.zeros((2, 8))
    for call in (
        lambda: impl.normalized_argmax(x),
        lambda: impl.argmax_given(x, mx.zeros((2, 1))),
        lambda: impl.apply_token_bitmask(x, np.zeros(1, np.int32)),
    ):
        with pytest.raises(ZeroDivisionError):
            call()
    assert impl.normalized_argmax(mx.array([[1, 3, 2]])).tolist() == [1]


@pytest.mark.parametrize("shapeless", [False, True])
def test_traces_take_native_operations(shapeless: bool) -> None:
    select = mx.compile(impl.normalized_argmax, shapeless=shapeless)
    bits = np.array([0b1010], np.int32)
    mask = mx.compile(lambda x: impl.apply_token_bitmask(x, bits), shapeless=shapeless)
    for rows in (1, 3):
        x = mx.array(np.tile(np.float32([0, 1, 5, 2]), (rows, 1)))
        assert select(x).tolist() == [2] * rows
        assert mask(x).tolist() == [[-INF, 1, -INF, 2]] * rows


def test_a_graph_is_compiled_for_what_its_kernels_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "current", lambda: "cuda")

    def graph(x: mx.array) -> mx.array:
        return x + fidelity.current().order

    def orders() -> list[int]:
        made = [int(run(graph, mx.array([0]))[0].item())]
        with fidelity.switched(simd_sum="sequential"):
            return [*made, int(run(graph, mx.array([0]))[0].item())]

    assert orders() == orders() == [0, 2]


def test_bits_are_copied_at_the_call() -> None:
    bits = np.array([1], np.int32)
    masked = impl.apply_token_bitmask(mx.ones((1, 4)), bits)
    bits[:] = 0
    assert masked.tolist() == [[1, -INF, -INF, -INF]]


@pytest.mark.parametrize(
    "bits", [[1], None, 1, np.ones(1, np.int64), np.ones(1, np.uint32), np.ones(1, ">i4"), mx.ones(1)]
)
def test_bits_of_another_type_are_refused(bits: object) -> None:
    with pytest.raises(TypeError, match="int32 array of NumPy, torch or MLX"):
        impl.apply_token_bitmask(mx.zeros((1, 4)), bits)


def test_logits_that_cannot_be_masked() -> None:
    bits = np.ones(1, np.int32)
    for logits in (
        mx.zeros((0, 4)),
        mx.zeros((2, 0)),
        mx.array(1.0),
        mx.zeros((1, 4), mx.int32),
        mx.zeros((1, 4), mx.complex64),
    ):
        with pytest.raises(ValueError, match="Expected logits"):
            impl.apply_token_bitmask(logits, bits)
    with pytest.raises(ValueError, match="one mask for every row"):
        impl.apply_token_bitmask(mx.zeros((1, 4)), bits.reshape(1, 1))


def test_more_elements_than_an_index_holds() -> None:
    too_many = mx.broadcast_to(mx.zeros((1, 1), mx.float16), (2**16, 2**15))
    with pytest.raises(ValueError, match=re.escape("2^31 - 1")):
        impl.apply_token_bitmask(too_many, np.ones(1, np.int32))


def test_as_many_elements_as_an_index_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.full(2, -1, np.int32)
    monkeypatch.setattr(bitmask_module, "LARGEST_SIZE", 60)
    assert impl.apply_token_bitmask(mx.ones((2, 30)), bits).tolist() == [[1.0] * 30] * 2
    with pytest.raises(ValueError, match="with 61 elements"):
        impl.apply_token_bitmask(mx.ones((1, 61)), bits)


def test_logits_without_a_vocabulary() -> None:
    for call in (impl.normalized_argmax, lambda x: impl.argmax_given(x, x)):
        with pytest.raises(ValueError, match="0-d"):
            call(mx.array(1.0))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0)])
def test_empty_logits_raise_what_mlx_raises(shape: tuple[int, ...]) -> None:
    def raised(function) -> tuple[type, str]:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is what is compared
            mx.eval(function(mx.zeros(shape)))
        return caught.type, str(caught.value)

    assert raised(impl.normalized_argmax) == raised(lambda x: x - mx.logsumexp(x, axis=-1, keepdims=True))


def test_lse_of_another_shape_or_dtype() -> None:
    for lse in (mx.zeros((2,)), mx.zeros((1, 1)), mx.zeros((2, 1), mx.float16)):
        with pytest.raises(ValueError, match="Expected lse of shape"):
            impl.argmax_given(mx.zeros((2, 4)), lse)


def primitives(array: mx.array) -> list[str]:
    text = io.StringIO()
    mx.export_to_dot(text, array)
    return re.findall(r'label ="(\w+)"', text.getvalue())


@pytest.mark.skipif(not graph_compiler(), reason="NOT RUN: MLX fuses no graph where there is no g++")
def test_softcap_traces() -> None:
    x = mx.ones(8, mx.bfloat16)
    mx.eval(x)
    fused = primitives(impl.compiled_logit_softcap(x, 30.0))
    assert len(fused) == 1
    assert re.fullmatch(r"Compiled(Broadcast)*Divide(Broadcast)*Tanh(Broadcast)*Multiply", fused[0])
    apart = [name for name in primitives(impl.logit_softcap(x, 30.0)) if name != "Broadcast"]
    assert sorted(apart) == ["Divide", "Multiply", "Tanh"]


@pytest.mark.parametrize("softcap", [impl.logit_softcap, impl.compiled_logit_softcap])
def test_caps_that_are_no_numbers(softcap) -> None:
    for cap in (mx.array(30.0), np.float32(30), "30", None, True):
        with pytest.raises(TypeError, match="Expected cap as a Python number"):
            softcap(mx.ones(4), cap)
    with pytest.raises(TypeError, match="Expected x of"):
        softcap(mx.ones(4, mx.int32), 30.0)
