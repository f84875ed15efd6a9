"""The checker finds each kind of fault at its line, and nothing in kernels without one."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.checker import Finding, Kind, check
from mlx_assay.impl.kernels import normalized_argmax
from mlx_assay.impl.kernels.text import metal_text

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
THREAD = "uint i = thread_position_in_threadgroup.x;\n"
SHARED = f"{THREAD}threadgroup float s[64];\ns[i] = x[i];\n"
LUT = "constant float lut[4] = {1, 2, 3, 4};\nfloat f(constant float* l, uint k) {\n  return l[k];\n}\n"

# Kind, array, index, the lines of its accesses; and the kernel, over 64 threads.
FAULTS: dict[str, tuple[Kind, str, int | None, tuple[int, ...], str]] = {
    "no barrier": (Kind.RACE, "s", 32, (3, 4), f"{SHARED}y[i] = s[63 - i];"),
    "mem_none": (
        *(Kind.BARRIER_FLAGS, "s", 0, (5, 3)),
        f"{SHARED}threadgroup_barrier(mem_flags::mem_none);\ny[i] = s[63 - i];",
    ),
    "mem_device": (
        *(Kind.BARRIER_FLAGS, "s", 0, (5, 3)),
        f"{SHARED}threadgroup_barrier(mem_flags::mem_device);\ny[i] = s[63 - i];",
    ),
    "no simdgroup barrier": (Kind.SIMDGROUP_RACE, "s", 1, (3, 4), f"{SHARED}y[i] = s[i ^ 1];"),
    "simdgroup_barrier(mem_none)": (
        *(Kind.BARRIER_FLAGS, "s", 30, (5, 3)),
        f"{SHARED}simdgroup_barrier(mem_flags::mem_none);\ny[i] = s[i ^ 1];",
    ),
    "divergent barrier": (
        *(Kind.DIVERGENT_BARRIER, "", None, (5, 3)),
        f"{THREAD}if (i < 32)\nthreadgroup_barrier(mem_flags::mem_none);\nelse\n"
        "threadgroup_barrier(mem_flags::mem_none);\ny[i] = x[i];",
    ),
    "divergent simd": (
        *(Kind.PARTIAL_SIMD, "", None, (3, 5)),
        f"{THREAD}if (i & 1)\ny[i] = simd_sum(x[i]);\nelse\ny[i] = simd_max(x[i]);",
    ),
    "inactive lane": (
        *(Kind.INACTIVE_LANE, "", None, (4,)),
        f"{THREAD}y[i] = x[i];\nif (i & 1)\ny[i] = simd_shuffle_down(y[i], 1);",
    ),
    "exit": (
        *(Kind.EXIT_BEFORE_BARRIER, "", None, (4,)),
        f"{THREAD}y[i] = x[i];\nif (i > 7) return;\nthreadgroup_barrier(mem_flags::mem_none);",
    ),
    "write to input": (Kind.WRITE_TO_INPUT, "x", 0, (2,), f"{THREAD}((device float*)x)[i] = 1; y[i] = 0;"),
    "write past the end": (Kind.OUT_OF_BOUNDS, "y", 64, (2,), f"{THREAD}y[i + 1] = x[i]; y[0] = 0;"),
    "read before the begin": (Kind.OUT_OF_BOUNDS, "x", -1, (2,), f"{THREAD}y[i] = x[int(i) - 1];"),
    "threadgroup array": (
        *(Kind.OUT_OF_BOUNDS, "s", 32, (3,)),
        f"{THREAD}threadgroup float s[32]; threadgroup float t[64];\ns[i] = 0; t[i] = 0;\ny[i] = t[i];",
    ),
    "array of the thread": (
        *(Kind.OUT_OF_BOUNDS, "s", 4, (2,)),
        f"{THREAD}float s[4]; for (int k = 0; k <= 4; k++) s[k] = x[i];\ny[i] = s[i & 3];",
    ),
    "constant array": (Kind.OUT_OF_BOUNDS, "lut", 4, (2,), f"{THREAD}y[i] = lut[i & 7];"),
    "nowhere": (Kind.OUT_OF_BOUNDS, "", None, (2,), f"{THREAD}y[i] = *(device float*)ulong(4096 * i);"),
    "misaligned": (Kind.MISALIGNED, "x", 1, (2,), f"{THREAD}y[i] = ((device float4*)(x + 1))[i & 3].x;"),
    "unwritten threadgroup array": (
        *(Kind.UNINITIALISED, "s", 63, (3,)),
        f"{THREAD}threadgroup float s[64]; if (i < 32) s[i] = 1; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "y[i] = s[i];",
    ),
    "unwritten output read": (Kind.UNINITIALISED, "y", 0, (2,), f"{THREAD}y[i] += x[i];"),
    "unwritten variable": (
        *(Kind.UNINITIALISED, "a", 0, (4,)),
        f"{THREAD}float a;\nfor (int k = 0; k < 4; k++)\na += x[i];\ny[i] = a;",
    ),
    "unwritten element": (
        *(Kind.UNINITIALISED, "a", 3, (3,)),
        f"{THREAD}float a[4]; for (int k = 0; k < 3; k++) a[k] = x[i];\ny[i] = a[i & 3];",
    ),
    "unwritten lane of a vector": (
        *(Kind.UNINITIALISED, "a", 3, (3,)),
        f"{THREAD}float4 a; a.x = 1; a.yz = float2(2, 3);\ny[i] = a.x + a.y + a.z + a.w;",
    ),
    "shift": (Kind.SHIFT, "", None, (2,), f"{THREAD}y[i] = 1 << i;"),
    "unwritten output": (Kind.UNWRITTEN, "y", 5, (), f"{THREAD}if (i != 5) y[i] = 1;"),
    "threadgroup memory": (Kind.THREADGROUP_MEMORY, "s", None, (), f"{THREAD}threadgroup float s[8193]; y[i] = 1;"),
}
SOUND = {
    "barrier": f"{SHARED}threadgroup_barrier(mem_flags::mem_threadgroup);\ny[i] = s[63 - i];",
    "simdgroup barrier": f"{SHARED}simdgroup_barrier(mem_flags::mem_threadgroup);\ny[i] = s[i ^ 1];",
    "vector, struct, reference": (
        f"{THREAD}float4 a; a.x = x[i]; a.yzw = float3(1, 2, 3); thread float& b = *&y_; b = a.w;\n"
        "float4 c = a; y[i] = c.x + c.w + y_;"
    ).replace(THREAD, f"{THREAD}float y_;\n"),
}


def found(source: str, grid: int = 64, **options: Any) -> list[Finding]:
    kernel = metal_kernel("k", ["x"], ["y"], source, header=LUT)
    asked = {"output_shapes": [(64,)], "output_dtypes": [mx.float32]} | options
    x = mx.arange(64).astype(mx.float32)
    threadgroup = asked.pop("threadgroup", (64, 1, 1))
    with use("host"):
        return check(lambda: kernel(inputs=[x], grid=(grid, 1, 1), threadgroup=threadgroup, **asked))[1]


def lines(finding: Finding) -> tuple[int, ...]:
    return tuple(a.place.line for a in finding.accesses)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found_at_its_line(name: str) -> None:
    kind, array, index, where, source = FAULTS[name]
    assert (kind, array, index, where) in [(f.kind, f.array, f.index, lines(f)) for f in found(source)]


def test_a_line_of_a_header_of_mlx_is_quoted() -> None:
    source = f"{THREAD}y[i] = x[i] + elem_to_loc(i + 1, x_shape, x_strides, x_ndim + 3);"
    places = {f.place for f in found(source) if f.kind is Kind.OUT_OF_BOUNDS and f.array == "x_shape"}
    name = "mlx/backend/metal/kernels/utils.h"
    lines = (Path(mx.__file__).parent / "include" / name).read_text().splitlines()
    assert places
    for place in places:
        assert place is not None
        assert (place.file, place.text) == (name, lines[place.line - 1].strip())
        assert "shape[" in place.text


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_found_in_a_sound_kernel(name: str) -> None:
    assert found(SOUND[name]) == []


def test_threadgroups_race_on_device_memory() -> None:
    (race, *_) = found(f"{THREAD}y[i] = threadgroup_position_in_grid.x;", grid=128)
    assert (race.kind, race.array, lines(race)) == (Kind.THREADGROUP_RACE, "y", (2, 2))
    assert [a.threadgroup for a in race.accesses] == [(1, 0, 0), (0, 0, 0)]


def test_writers_of_the_same_value_are_a_class_of_their_own() -> None:
    assert [f.kind for f in found(f"{THREAD}y[i] = x[i];", grid=128)] == [Kind.SAME_VALUE_WRITE]


def test_more_threads_than_a_threadgroup_can_have_are_a_finding() -> None:
    assert [f.kind for f in found("y[0] = 1;", grid=2048, threadgroup=(2048, 1, 1))] == [Kind.THREADS]


def test_findings_of_concurrent_launches_are_kept_apart() -> None:
    def one(number: int) -> list[tuple[int, ...]]:
        body = "\n" * number + "y[i] = x[i + 1];"
        return [lines(f) for f in found(THREAD + body) if f.kind is Kind.OUT_OF_BOUNDS]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == [[(number + 2,)] for number in range(8)]


@pytest.mark.parametrize("name", ["argmax/given", "argmax/search"])
def test_each_barrier_of_the_argmax_kernels_is_missed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = metal_text(name).split(BARRIER)
    texts = {name: before + after}
    monkeypatch.setattr(normalized_argmax, "metal_text", lambda name: texts.get(name) or metal_text(name))
    monkeypatch.setattr(normalized_argmax, "_kernel", normalized_argmax._kernel.__wrapped__)
    logits = mx.array([[float(i * 37 % 101) for i in range(5000)]])
    with use("host"):
        _, findings = check(lambda: mx.eval(normalized_argmax.normalized_argmax(logits)))
    races = [f for f in findings if f.kind is Kind.RACE and f.space == "threadgroup"]
    assert races
    assert all({a.place.file for a in f.accesses} == {"source"} for f in races)


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16], ids=str)
def test_a_checked_kernel_gives_the_bits_of_an_unchecked_one(dtype: Any) -> None:
    source = """
      uint i = thread_index_in_threadgroup;
      T a = x[i] * T(1.7f) + T(0.3f);
      float4 v = float4(float(a), 1e-39f, float(x[63 - i]), 3);
      v.xz = v.zx * v.xz - v.yw;
      y[i] = T(simd_sum(v.x * 1.1f + v.z)) + T(exp(-float(a) * 0.01f)) + T(dot(v, v));
    """
    kernel = metal_kernel("k", ["x"], ["y"], source)
    x = (mx.arange(64).astype(mx.float32) * 0.37).astype(dtype)

    def call() -> list[int]:
        (y,) = kernel(
            inputs=[x],
            template=[("T", dtype)],
            grid=(64, 1, 1),
            threadgroup=(64, 1, 1),
            output_shapes=[(64,)],
            output_dtypes=[dtype],
        )
        bits: list[int] = y.view(mx.uint8).tolist()
        return bits

    with use("host"):
        expected = call()
        got, findings = check(call)
    assert (got, findings) == (expected, [])


@pytest.mark.parametrize(
    ("told", "source"),
    [
        ("reads v[3], which nobody has written", "float4 v; v.x = v.y = v.z = 1; y[i] = dot(v, v);"),
        ("reads v, which nobody has written", "float v; y[i] = v;"),
        ("reads v, which nobody has written", "bfloat v; y[i] = float(v);"),
        (
            "reads byte 12 of v, which nobody has written",
            "struct { float f; uint n; } v[2]; v[0].f = 1; y[i] = v[1].n;",
        ),
        ("shifts a value of 32 bits by -1", "y[i] = 1u << (int(i) % 1 - 1);"),
    ],
)
def test_findings_name_what_is_meant(told: str, source: str) -> None:
    assert told in [f.message for f in found(THREAD + source)]


DIVERGENCES = {
    "thread (40, 0, 0) has come to the kernel's end without it": f"{THREAD}if (i < 40)\n{BARRIER}\ny[i] = x[i];",
    "wait at different barriers": f"{THREAD}if (i < 32)\n{BARRIER}\nelse\n{BARRIER}\ny[i] = x[i];",
    "threads, (40, 0, 0) among them, have returned": f"{THREAD}if (i >= 40) return;\n{BARRIER}\ny[i] = x[i];",
}


@pytest.mark.parametrize(("told", "source"), DIVERGENCES.items(), ids=DIVERGENCES)
def test_divergence_names_who_is_missing(told: str, source: str) -> None:
    assert any(told in finding.message for finding in found(source)), found(source)
