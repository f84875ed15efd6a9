"""Every function of the language by its table, and no function without an entry."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import mpmath
import numpy as np
import pytest
from machine import EXECUTOR

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.vocabulary import functions

_spec = importlib.util.spec_from_file_location("language_table", Path(__file__).with_name("language_table.py"))
assert _spec is not None
assert _spec.loader is not None
table: Any = importlib.util.module_from_spec(_spec)
sys.modules["language_table"] = table
_spec.loader.exec_module(table)

# Tested where threads meet: by kernels of their own, here or in the tests of threads.
ELSEWHERE = {
    *(f"atomic_{name}_explicit" for name in ("load", "store", "exchange", "compare_exchange_weak", "max", "min")),
    *(f"atomic_fetch_{name}_explicit" for name in ("add", "sub", "max", "min", "and", "or", "xor")),
    *("atomic_thread_fence", "simdgroup_barrier", "threadgroup_barrier"),
    *("simdgroup_load", "simdgroup_multiply", "simdgroup_multiply_accumulate", "simdgroup_store"),
}


def evaluated(expressions: Sequence[str], names: str = "") -> np.ndarray[Any, Any]:
    """The value of each expression as a float; one kernel, a thread an expression."""
    cases = "\n".join(f"case {i}: out[i] = float({e}); break;" for i, e in enumerate(expressions))
    source = f"uint i = thread_position_in_grid.x; int n = 0; float f = 0; half h = 0;\nswitch (i) {{\n{cases}\n}}"
    kernel = metal_kernel("table", [], ["out"], source, names)
    count = len(expressions)
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=[],
            output_shapes=[(count,)],
            output_dtypes=[mx.float32],
            grid=(count, 1, 1),
            threadgroup=(min(count, 64), 1, 1),
        )
    return np.array(out)


def test_expressions() -> None:
    got = evaluated(list(table.EXPRESSIONS))
    want = np.array(list(table.EXPRESSIONS.values()), np.float32)
    wrong = {e: (float(g), float(w)) for e, g, w in zip(table.EXPRESSIONS, got, want, strict=True) if g != w}
    assert wrong == {}


def _calls(space: str, kind: str) -> list[tuple[str, str, float]]:
    """A function's name, a call of it in a space with arguments of a kind, and the exact value."""
    found = []
    for name, (exact, samples) in table.FLOAT.items():
        for sample in samples:
            with mpmath.workprec(200):
                value = float(
                    exact(*map(mpmath.mpf, sample))
                    if name not in {"fmod", "copysign", "rint", "round", "trunc"}
                    else exact(*sample)
                )
            arguments = ", ".join(f"{kind}({x})" for x in sample)
            call = f"{space}::{name}({arguments})"
            found.append((name, f"{call}[1]" if kind[-1].isdigit() else call, value))
    return found


def _ulp(value: float, dtype: Any) -> float:
    return float(np.spacing(np.abs(np.array(value, dtype)), dtype=dtype))


@pytest.mark.parametrize("kind", ["float", "float4", "half", "half2"])
@pytest.mark.parametrize("space", ["metal", "metal::precise", "metal::fast"])
def test_float_functions(space: str, kind: str) -> None:
    if space != "metal" and kind.startswith("half"):
        _half_is_widened(space, kind)
        return
    calls = _calls(space, kind)
    got = evaluated([call for _, call, _ in calls])
    dtype = np.float16 if kind.startswith("half") else np.float32
    wrong = {}
    for (name, call, value), result in zip(calls, got, strict=True):
        if name in table.EXACT or (name == "divide" and space != "metal::fast"):
            bound = 0.5 * _ulp(value, dtype) if name != "divide" or space != "metal::fast" else table.FAST_RELATIVE
        elif space == "metal::fast":
            bound = max(abs(value), 2.0**-4) * table.FAST_RELATIVE
        elif dtype == np.float16:
            # Taken in f32 and rounded; mix and smoothstep round each step.
            bound = (2 if name in {"mix", "smoothstep"} else 0.51) * _ulp(value, dtype)
        else:
            bound = table.PRECISE_ULP * _ulp(value, dtype)
        if not abs(float(result) - value) <= bound:
            wrong[call] = (float(result), value)
    assert wrong == {}


def _half_is_widened(space: str, kind: str) -> None:
    """The spaces precise and fast know float alone: of a half they give a float, and a vector of halves is an error."""
    if kind == "half":
        assert evaluated([f"sizeof({space}::exp(half(1)))", f"sizeof({space}::pow(half(1), half(2)))"]).tolist() == [
            4,
            4,
        ]
    else:
        with pytest.raises(RuntimeError, match=f"does not compile on the {EXECUTOR} executor"):
            evaluated([f"{space}::exp(half2(1)).x"])


def lanes(expressions: Sequence[str], x: Sequence[int]) -> np.ndarray[Any, Any]:
    """One row an expression: its values over the 32 lanes."""
    body = "\n".join(f"out[{k * 32} + i] = uint({e});" for k, e in enumerate(expressions))
    kernel = metal_kernel("lanes", ["x"], ["out"], f"uint i = thread_index_in_simdgroup; uint v = x[i];\n{body}")
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=[mx.array(np.array(x, np.uint32))],
            output_shapes=[(len(expressions), 32)],
            output_dtypes=[mx.uint32],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
        )
    return np.array(out)


def test_lanes() -> None:
    x = [int(v) for v in np.random.default_rng(3).integers(1, 50, 32)]
    got = lanes(list(table.LANES), x)
    wrong = {e: (g.tolist(), of(x)) for (e, of), g in zip(table.LANES.items(), got, strict=True) if g.tolist() != of(x)}
    assert wrong == {}


def _named(space: str) -> set[str]:
    """Functions that the tables call in a space."""
    expressions = [*table.EXPRESSIONS, *table.LANES]
    found = set(table.FLOAT)
    if space == "metal":
        return found | {n for e in expressions for n in re.findall(r"(?<![\w:])(\w+)(?=\()", e)}
    return found | {n for e in expressions for n in re.findall(rf"\b{space.rpartition('::')[2]}::(\w+)\(", e)}


@pytest.mark.parametrize("space", ["metal", "metal::precise", "metal::fast"])
def test_every_function_has_an_entry(space: str) -> None:
    missing = functions()[space] - _named(space) - ELSEWHERE
    assert missing == set()
    assert functions()["metal"] >= ELSEWHERE


def test_the_page_is_current() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, root / "ci" / "language.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"docs/language.md is not current: python ci/language.py\n{done.stderr}"
    page = (root / "docs" / "language.md").read_text()
    assert all(f"`{name}`" in page for name in functions()["metal"])
