"""The content: windows of what was drawn, none of which two calls see."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.conformance.bench.benchmark import Asked
from mlx_assay.conformance.bench.catalogue import selected
from mlx_assay.conformance.bench.content import NEAR, SMALL_AIM, STEP, Content, spare
from mlx_assay.conformance.bench.stage import Stage
from mlx_assay.conformance.contract import EXECUTOR, contracts
from mlx_assay.conformance.process import arena
from mlx_assay.fixtures.draw import Draw
from mlx_assay.oracles.registry import load

EXECUTOR_TOLD = {"simd_sum": "ascending-butterfly", "f32_denormals": "flushed"}
ASKED = selected((), "host")


def content(asked: Asked, windows: int = 100) -> Content:
    return Content(asked, contracts()[asked.operation].parameters, windows, aim=SMALL_AIM)


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
    made = content(asked)
    seen = set()
    for _ in range(100):
        arguments = made.arguments(made.next())
        seen.add(tuple(value.tobytes() for value in arguments.values() if isinstance(value, np.ndarray)))
    assert len(seen) == 100
    with pytest.raises(ValueError, match="Expected 100 windows at most"):
        made.next()


def test_windows_lie_far_apart_in_an_order_that_no_step_makes() -> None:
    (asked,) = selected(["normalized_argmax/float32"], "host")
    made, vocab = content(asked, 200), asked.shape["vocab"]
    places = [window[0] for window in made.queue(200)]
    assert all(place % (STEP // 4) == 0 for place in places)
    assert len(set(places)) == 200
    steps = [later - earlier for earlier, later in pairwise(places)]
    assert max(Counter(steps).values()) <= 8, "no step is a rule"
    assert all(abs(step) >= asked.shape["rows"] * vocab for step in steps), "and none has anything of the one before"
    assert 0.35 < sum(step > 0 for step in steps) / len(steps) < 0.65
    assert max(places) - min(places) > 0.9 * SMALL_AIM - asked.shape["rows"] * vocab


@pytest.mark.parametrize(("size", "room", "share"), [(1 << 21, 1 << 24, 0.0), (1 << 21, 1 << 23, 1.0)])
def test_windows_in_succession_share_nothing_where_there_is_room(size: int, room: int, share: float) -> None:
    (asked,) = selected(["normalized_argmax/bfloat16?rows=1"], "host", f"vocab={size}")
    made = Content(asked, contracts()[asked.operation].parameters, 60, aim=1 << 20, room=room)
    places = [window[0] for window in made.queue(60)]
    assert len(set(places)) == 60
    assert sum(abs(later - earlier) < size for earlier, later in pairwise(places)) / 59 == share
    assert made.flat["logits"].nbytes <= room


def test_content_takes_a_small_part_of_any_memory() -> None:
    assert spare(1 << 33) == 1 << 27
    assert spare(1 << 50) <= 1 << 30


def test_answers_of_calls_are_drawn_apart() -> None:
    (asked,) = selected(["normalized_argmax/bfloat16?rows=1"], "host")
    made = content(asked, 60)
    rows = (made.arguments(window)["logits"] for window in made.queue(60))
    ids = [int(np.argmax(row.astype(np.float32))) for row in rows]
    halves = sum(found < asked.shape["vocab"] // 2 for found in ids)
    assert 15 <= halves <= 45, "half a row misses half of them"
    assert len({later - earlier for earlier, later in pairwise(ids)}) > 50


def test_arrays_of_one_call_are_not_moved_alike() -> None:
    (asked,) = selected(["apply_token_bitmask/float32"], "host")
    pairs = content(asked, 50).queue(50)
    assert len({logits - bits for logits, bits in pairs}) > 40


def test_those_of_one_place_are_near_within_a_queue_alone() -> None:
    (asked,) = selected(["normalized_argmax/float32"], "host")
    made = Content(asked, contracts()[asked.operation].parameters, 5 * NEAR, near=True, aim=SMALL_AIM)
    first = [window[0] for window in made.queue(8)]
    whole = [window[0] for window in made.queue(NEAR)]
    assert max(whole) - min(whole) == (NEAR - 1) * STEP // 4
    assert whole != sorted(whole)
    assert all(abs(one - other) >= STEP // 4 * NEAR for one in first[:1] for other in (min(whole),))
    with pytest.raises(ValueError, match="Expected 64 windows of one place at most"):
        made.queue(NEAR + 1)


def test_content_does_not_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlx_assay.conformance.bench.content.PART", 1000)
    (asked,) = selected(["normalized_argmax/float32?rows=4"], "host", "rows=64")
    flat = content(asked).flat["logits"]
    parts = {flat[start : start + 1000].tobytes() for start in range(0, flat.size, 1000)}
    assert len(parts) == -(-flat.size // 1000)


def test_it_lies_in_the_arena_as_it_was_drawn() -> None:
    (asked,) = selected(["apply_token_bitmask/bfloat16"], "host")
    made, descriptor = content(asked), arena.create()
    try:
        order, end = made.written(descriptor)
        for region, flat in zip(order.regions, made.flat.values(), strict=True):
            assert os.pread(descriptor, flat.nbytes, region.offset) == flat.tobytes()
        assert end >= sum(flat.nbytes for flat in made.flat.values())
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_neither_the_largest_logits_nor_a_part_of_the_row_give_the_ids(dtype: str) -> None:
    (asked,) = selected(["normalized_argmax/bfloat16?rows=4"], "host", "rows=16,vocab=24000", dtype)[:1]
    made = content(asked)
    logits = made.arguments(made.next())["logits"]
    right = load("stock_mlx").normalized_argmax(logits)
    assert (np.argmax(logits.astype(np.float32), axis=-1) != right).any()
    assert (right > 12000).any()
    assert (right < 12000).any()


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.id)
def test_calls_see_their_windows_and_work_on_them_shows(asked: Asked, near: bool) -> None:
    made = Content(asked, contracts()[asked.operation].parameters, 5, near=near, aim=SMALL_AIM)
    descriptor = arena.create()
    try:
        stage = Stage(descriptor, made.written(descriptor)[0])
    finally:
        os.close(descriptor)
    windows = made.queue(5)
    calls = stage.mlx(windows, near, (1, 3))
    assert stage.untouched()
    for call in (0, 2, 4):
        mx.eval([argument for argument in calls[call] if isinstance(argument, mx.array)])
    assert stage.untouched(), "arrays that nobody watches may be evaluated"
    for arguments, places in zip(calls, windows, strict=True):
        for got, want in zip(arguments, made.arguments(places).values(), strict=True):
            if isinstance(got, mx.array):
                bits = np.array(got.view({2: mx.uint16, 4: mx.uint32}[got.itemsize]))
                assert bits.tobytes() == want.tobytes()
            elif isinstance(got, np.ndarray):
                assert got.tobytes() == want.tobytes()
            else:
                assert got == want
    assert not stage.untouched()
    assert stage.changed(range(5)) == []
    arrays = [argument for argument in calls[3] if isinstance(argument, mx.array)]
    arrays[0][...] = mx.zeros_like(arrays[0])
    assert stage.changed([3]) == [0]
    assert stage.changed([2]) == []
