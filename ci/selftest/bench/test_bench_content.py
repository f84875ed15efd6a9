"""The content: windows of what was drawn, none of which two calls see."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pytest

from mlx_assay.conformance.bench.benchmark import Asked
from mlx_assay.conformance.bench.catalogue import selected
from mlx_assay.conformance.bench.content import STEP, Content
from mlx_assay.conformance.contract import EXECUTOR, contracts
from mlx_assay.conformance.process import arena
from mlx_assay.fixtures.draw import Draw
from mlx_assay.oracles.registry import load

EXECUTOR_TOLD = {"simd_sum": "ascending-butterfly", "f32_denormals": "flushed"}
ASKED = selected((), "host")


def content(asked: Asked, pool: int = 0, windows: int = 100) -> Content:
    return Content(asked, contracts()[asked.operation].parameters, pool, windows)


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.id)
def test_arguments_are_those_of_the_contract(asked: Asked) -> None:
    made = content(asked)
    arguments = made.arguments(made.next())
    assert tuple(arguments) == contracts()[asked.operation].parameters
    tensors = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    assert sum(tensor.nbytes for tensor in tensors) == asked.moved.read
    for tensor in tensors:
        assert tensor.dtype.kind in "iu" or np.isfinite(tensor.astype(np.float32)).all()


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.id)
def test_the_first_oracle_answers_and_a_part_of_its_answer_is_the_answer_of_the_part(asked: Asked) -> None:
    made, contract = content(asked), contracts()[asked.operation]
    made.next()
    arguments = made.arguments(made.next())
    whole = contract.references[0].compute({**arguments, EXECUTOR: EXECUTOR_TOLD})
    assert whole.nbytes == asked.moved.written
    smaller, place = asked.benchmark.part(arguments, Draw(5))
    answer = contract.references[0].compute({**smaller, EXECUTOR: EXECUTOR_TOLD})
    assert 0 < answer.size <= whole.size
    assert answer.tobytes() == np.ascontiguousarray(whole[place]).tobytes()


@pytest.mark.parametrize("asked", ASKED[:3], ids=lambda asked: asked.id)
def test_no_two_windows_are_alike(asked: Asked) -> None:
    for pool in (0, 1 << 22):
        made = content(asked, pool)
        seen = set()
        for _ in range(100):
            arguments = made.arguments(made.next())
            seen.add(tuple(value.tobytes() for value in arguments.values() if isinstance(value, np.ndarray)))
        assert len(seen) == 100


def test_windows_in_one_place_lie_a_step_apart_and_others_do_not_overlap() -> None:
    (asked,) = selected(["normalized_argmax/float32"], "host")
    near, far = content(asked), content(asked, 1 << 24)
    places = [near.next()[0] for _ in range(3)]
    assert [later - earlier for earlier, later in pairwise(places)] == [STEP // 4] * 2
    size = asked.shape["rows"] * asked.shape["vocab"]
    walk = [far.next()[0] for _ in range(16)]
    assert all(abs(later - earlier) > size for earlier, later in pairwise(walk))
    assert far.nbytes == 1 << 24


def test_it_lies_in_the_arena_as_it_was_drawn() -> None:
    (asked,) = selected(["apply_token_bitmask/bfloat16"], "host")
    made, descriptor = content(asked), arena.create()
    try:
        order, end = made.written(descriptor)
        for region, flat in zip(order.regions, made.flat.values(), strict=True):
            assert os.pread(descriptor, flat.nbytes, region.offset) == flat.tobytes()
        assert end >= made.nbytes
    finally:
        os.close(descriptor)


def test_the_largest_logits_alone_give_another_id() -> None:
    (asked,) = selected(["normalized_argmax/float32"], "host")
    made = content(asked)
    logits = made.arguments(made.next())["logits"]
    right = load("stock_mlx").normalized_argmax(logits)
    assert (np.argmax(logits, axis=-1) != right).any()
