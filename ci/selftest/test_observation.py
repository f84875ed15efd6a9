"""One observer sees every launch on the host executor, in every thread, and decides what the caller gets."""

from __future__ import annotations

import threading
from typing import Any

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import metal_kernel, poison, use
from mlx_assay.impl.executors.observation import Call, Launch, Observer, listening, observed, recording
from mlx_assay.impl.executors.signature import Definition

DOUBLE = metal_kernel("double", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] * 2;")


def doubled(values: list[int]) -> list[int]:
    with use("host"):
        (y,) = DOUBLE(
            inputs=[mx.array(values)],
            grid=(len(values), 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(len(values),)],
            output_dtypes=[mx.int32],
        )
    found: list[int] = y.tolist()
    return found


def test_launches_of_every_thread_are_seen_and_run_as_often_as_asked() -> None:
    seen: list[str] = []

    def observer(definition: Definition, launch: Launch) -> list[Any]:
        seen.append(definition.name)
        first, second = launch.run(), launch.run()
        assert first[0].tolist() == second[0].tolist()
        return [first[0] + second[0]]

    with observed(observer):
        answers = [doubled([1, 2, 3])]
        thread = threading.Thread(target=lambda: answers.append(doubled([4])))
        thread.start()
        thread.join()
    assert answers == [[4, 8, 12], [16]]
    assert seen == ["double", "double"]
    assert doubled([1]) == [2]


def test_a_launch_that_is_skipped_leaves_its_outputs_alone() -> None:
    with observed(lambda definition, launch: launch.skip()), poison(0x01020304):
        assert doubled([1, 2]) == [0x01020304] * 2


def test_the_innermost_observer_has_the_word_also_after_an_exception() -> None:
    def answering(value: int) -> Observer:
        return lambda definition, launch: [mx.array([value])]

    with observed(answering(7)):
        with observed(answering(8)):
            assert doubled([1]) == [8]
        with pytest.raises(ZeroDivisionError), observed(answering(8)):
            raise ZeroDivisionError
        assert doubled([1]) == [7]
    assert doubled([1]) == [2]


def test_a_recorder_hears_of_a_launch_before_and_after_it() -> None:
    heard: list[tuple[str, Any]] = []

    def recorder(definition: Definition, call: Call, outputs: list[Any] | None) -> None:
        heard.append((definition.name, outputs and outputs[0].tolist()))
        assert (call.inputs[0].tolist(), call.grid) == ([1, 2], (2, 1, 1))

    def failing(definition: Definition, launch: Launch) -> list[Any]:
        raise ZeroDivisionError

    with recording(recorder):
        doubled([1, 2])
        with pytest.raises(ZeroDivisionError), observed(failing):
            doubled([1, 2])
    doubled([1, 2])
    assert heard == [("double", None), ("double", [2, 4]), ("double", None)]


def test_definitions_are_told_where_they_are_made() -> None:
    heard: list[str] = []
    with listening(lambda definition: heard.append(definition.name)):
        metal_kernel("one", ["x"], ["y"], "y[0] = x[0];")
        with listening(lambda definition: heard.append(f"inner {definition.name}")):
            metal_kernel("two", ["x"], ["y"], "y[0] = x[0];")
        metal_kernel("three", ["x"], ["y"], "y[0] = x[0];")
    metal_kernel("four", ["x"], ["y"], "y[0] = x[0];")
    assert heard == ["one", "inner two", "three"]
