"""What a launch plan costs beside its kernel, and what a case costs under the checker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import mlx.core as mx
from figure import Figure

from mlx_assay.conformance.adapters import plan
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.fixtures.case import Case
from mlx_assay.impl import executors

SOURCE = "const uint i = thread_position_in_grid.x; out[i] = x[i] + T(1);"
SIZE = 4096
CALLS = 20
BATCHES = 30
CASES = (
    "argmax_given/bfloat16/ties/tiles?vocab=1025&seed=0",
    "apply_token_bitmask/bfloat16/bits/container?container=mx&view=contiguous&vocab=200&seed=0",
)


def measure() -> list[Figure]:
    """The fastest of some batches, since what else runs only ever adds."""
    return [_plan(), *(figure for case in CASES for figure in _checked(Case.parse(case)))]


def _plan() -> Figure:
    launch = {
        "name": "add",
        "source": SOURCE,
        "inputs": [{"is": "argument", "name": "x", "argument": "x"}],
        "outputs": [{"name": "out", "dtype": "bfloat16", "shape": [SIZE]}],
        "template": [{"is": "dtype", "name": "T", "value": "bfloat16"}],
        "grid": [SIZE, 1, 1],
        "threadgroup": [128, 1, 1],
    }
    document = json.dumps({"launches": [launch], "result": {"launch": 0, "output": "out"}}).encode()
    x = mx.zeros((SIZE,), mx.bfloat16)
    kernel = executors.metal_kernel(name="add", input_names=["x"], output_names=["out"], source=SOURCE)

    def alone() -> None:
        kernel(
            inputs=[x],
            template=[("T", mx.bfloat16)],
            grid=(SIZE, 1, 1),
            threadgroup=(128, 1, 1),
            output_shapes=[(SIZE,)],
            output_dtypes=[mx.bfloat16],
        )

    with executors.use("host"):
        planned = _fastest(lambda: plan.run(document, {"x": x}), CALLS, time.process_time)
        cost = planned - _fastest(alone, CALLS, time.process_time)
    return Figure("a launch plan of one launch, beside its kernel", cost, "µs", "<=", 1000)


def _checked(case: Case) -> list[Figure]:
    """A whole case, oracles included, with and without the checker."""
    spent = []
    for checked in (False, True):
        with Implementation(None, "host", 300.0) as implementation:
            implementation.checked = checked
            assert judge(case, implementation).conforms
            spent.append(_fastest(lambda: judge(case, implementation), 1) / 1000)
    return [
        Figure(f"{case.path}: a case", spent[0], "ms"),
        Figure(f"{case.path}: a case under the checker", spent[1], "ms"),
    ]


def _fastest(act: Callable[[], object], calls: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Microseconds a call."""
    act()
    found = []
    for _ in range(BATCHES if calls > 1 else 5):
        began = clock()
        for _ in range(calls):
            act()
        found.append(1_000_000 * (clock() - began) / calls)
    return min(found)
