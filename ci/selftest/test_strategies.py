"""The strategies draw what they promise: special values are there, views show the values, every oddity is reached."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from mlx_assay.conformance import profiles
from mlx_assay.conformance.contract import contracts
from mlx_assay.fixtures import strategies
from mlx_assay.fixtures.encoding import FLOATS, GROUPS, bits_of, is_denormal
from mlx_assay.fixtures.masks import word_count
from mlx_assay.fixtures.strategies import ARGUMENTS
from mlx_assay.fixtures.tensor import DTYPES, Tensor, viewed

FEW = settings(max_examples=40, deadline=None, derandomize=True, database=None)
MANY = settings(FEW, max_examples=4000)
REACHED = settings(MANY, phases=[Phase.generate])
"""Without shrinking, where only the existence of an example is asked for."""

HOLDS: dict[str, Callable[[np.ndarray], Any]] = {
    "zero": lambda values: values == 0,
    "denormal": is_denormal,
    "normal": lambda values: np.isfinite(values) & (values != 0) & ~is_denormal(values),
    "extreme": lambda values: np.abs(values.astype(np.float64)) >= 0.99 * float(largest(values.dtype)),
    "infinity": np.isinf,
    "nan": np.isnan,
}


def largest(dtype: np.dtype[Any]) -> Any:
    return {2: {"bfloat16": 3.3895e38, "float16": 65504.0}, 4: {"float32": 3.4028e38}}[dtype.itemsize][str(dtype)]


def fault_free(values: np.ndarray, holds: Callable[[np.ndarray], Any]) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(np.any(holds(values)))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_special_array_holds_what_it_is_named_for(dtype: str, group: str) -> None:
    @FEW
    @given(strategies.shapes().flatmap(lambda shape: strategies.special_arrays(dtype, shape, group)))
    def check(values: np.ndarray) -> None:
        assert values.dtype == DTYPES[dtype]
        assert fault_free(values, HOLDS[group])

    check()


def test_a_special_array_without_its_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "put", lambda values, place, encoding: None)
    with pytest.raises(RuntimeError, match="Expected an encoding of the group 'nan'"):
        find(strategies.special_arrays("float16", (3,), "nan"), lambda values: True, settings=FEW)


def test_bits_are_put_as_they_are() -> None:
    values = np.zeros((2, 3), np.float32)
    signalling = np.array(0x7F800001, np.uint32).view(np.float32)[()]
    strategies.put(values, 4, signalling)
    assert bits_of(values).tolist() == [[0, 0, 0], [0, 0x7F800001, 0]]


@FEW
@given(strategies.shapes(min_rank=0))
def test_shapes_are_small(shape: tuple[int, ...]) -> None:
    assert len(shape) <= strategies.RANK_LIMIT
    assert 1 <= math.prod(shape) <= strategies.ELEMENT_LIMIT


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_every_rank_is_reached(rank: int) -> None:
    assert len(find(strategies.shapes(min_rank=0), lambda shape: len(shape) == rank, settings=REACHED)) == rank


@pytest.mark.parametrize("size", strategies.BOUNDARIES)
def test_every_boundary_is_reached(size: int) -> None:
    assert find(strategies.shapes(), lambda shape: shape[-1] == size, settings=REACHED)[-1] == size


def mlx_bits(tensor: Tensor) -> np.ndarray:
    unsigned = {2: mx.uint16, 4: mx.uint32}[tensor.base.itemsize]
    return np.array(viewed(mx.array(bits_of(tensor.base)).view(unsigned), tensor.steps, mx))


@pytest.mark.parametrize("dtype", FLOATS)
def test_views_show_the_values_in_both_libraries(dtype: str) -> None:
    seen = set()

    @settings(FEW, max_examples=150)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        values = data.draw(strategies.logits(dtype, min_rank=0))
        tensor = data.draw(strategies.tensors(values))
        assert tensor.array.tobytes() == values.tobytes()
        assert mlx_bits(tensor).tobytes() == values.tobytes()
        seen.add(bool(tensor.steps))

    check()
    assert seen == {False, True}


ODDITIES: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "NaN payload": ("argmax_given", lambda call: (bits_of(call["logits"].array) == 0x7FFF).any()),
    "signalling NaN": ("argmax_given", lambda call: (bits_of(call["logits"].array) == 0x7F81).any()),
    "minus zero": ("logit_softcap", lambda call: (bits_of(call["x"].array) == 0x8000).any()),
    "infinite lse": ("argmax_given", lambda call: fault_free(call["lse"].array, np.isinf)),
    "tie": ("normalized_argmax", lambda call: repeats(call["logits"].array)),
    "negative stride along the vocabulary": ("normalized_argmax", lambda call: strides(call["logits"])[-1] < 0),
    "column-major storage": ("normalized_argmax", lambda call: strides(call["logits"])[0] == 2),
    "no axis": ("compiled_logit_softcap", lambda call: call["x"].array.ndim == 0),
    "NaN as cap": ("logit_softcap", lambda call: isinstance(call["cap"], float) and math.isnan(call["cap"])),
    "cap of zero": ("logit_softcap", lambda call: call["cap"] == 0),
    "integer as cap": ("logit_softcap", lambda call: isinstance(call["cap"], int)),
    "short mask": ("apply_token_bitmask", lambda call: words(call) < word_count(call["logits"].array.shape[-1])),
    "long mask": ("apply_token_bitmask", lambda call: words(call) > word_count(call["logits"].array.shape[-1])),
    "mask of torch": ("apply_token_bitmask", lambda call: call["bits"].kind == "torch"),
    "mask of MLX": ("apply_token_bitmask", lambda call: call["bits"].kind == "mx"),
    "strided mask": ("apply_token_bitmask", lambda call: bool(call["bits"].steps)),
    "sign bit of a word": ("apply_token_bitmask", lambda call: (call["bits"].array < 0).any()),
    "NaN behind a mask": ("apply_token_bitmask", lambda call: fault_free(call["logits"].array, np.isnan)),
}


def repeats(values: np.ndarray) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(values.shape[-1] > 1 and ((values == values.max(axis=-1, keepdims=True)).sum(axis=-1) > 1).any())


def strides(tensor: Tensor) -> tuple[int, ...]:
    return tuple(viewed(tensor.base, tensor.steps, np).strides)


def words(call: dict[str, Any]) -> int:
    return int(call["bits"].array.shape[-1])


@pytest.mark.parametrize("oddity", ODDITIES)
def test_every_oddity_is_reached(oddity: str) -> None:
    operation, holds = ODDITIES[oddity]
    assert holds(find(ARGUMENTS[operation]("bfloat16"), lambda call: bool(holds(call)), settings=REACHED))


@pytest.mark.parametrize("dtype", FLOATS)
def test_no_row_holds_what_back_ends_disagree_about(dtype: str) -> None:
    @settings(FEW, max_examples=200)
    @given(ARGUMENTS["normalized_argmax"](dtype))
    def check(call: dict[str, Any]) -> None:
        values = call["logits"].array.astype(np.float64)
        assert not (np.isnan(values).any(axis=-1) & (values == np.inf).any(axis=-1)).any()

    with np.errstate(invalid="ignore"):
        check()


def test_every_contract_is_explored() -> None:
    assert contracts().keys() == ARGUMENTS.keys()
    for operation, contract in contracts().items():
        call = find(ARGUMENTS[operation]("float32"), lambda call: True, settings=REACHED)
        assert tuple(call) == contract.parameters


def test_a_failure_shrinks_to_its_reason() -> None:
    """One NaN in the smallest row: nothing else is left in the example."""
    strategy = ARGUMENTS["argmax_given"]("bfloat16")
    call = find(strategy, lambda call: fault_free(call["logits"].array, np.isnan), settings=MANY)
    assert call["logits"].array.shape == (1,)
    assert call["logits"].steps == ()


def test_the_gate_is_derandomized_and_small() -> None:
    profiles.register()
    gate, nightly = settings.get_profile(profiles.GATE), settings.get_profile(profiles.NIGHTLY)
    assert (gate.max_examples, gate.derandomize, gate.database) == (25, True, None)
    assert (nightly.max_examples, nightly.derandomize) == (2000, False)
    assert gate.deadline is None


def test_a_profile_that_the_user_chose_is_kept() -> None:
    before = settings.get_current_profile_name()
    profiles.register()
    assert settings.get_current_profile_name() == before
    try:
        settings.load_profile(profiles.DEV)
        assert profiles.chosen().max_examples == 5
        settings.load_profile("default")
        assert profiles.chosen().max_examples == 25
    finally:
        settings.load_profile(before)
