"""Addresses under the checker that lie between the spans of arrays: they belong to none, whichever is near."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.checker import Kind, check

STEPS = {
    # Spans of unused numbers: of threadgroup arrays behind the only one, of device arrays behind both, and before all.
    "s[5u << 22]": "",
    "s[126u << 22]": "",
    "x[1ul << 37]": "",
    "x[-(1l << 37)]": "",
    # Within its own span an array is known from its address, far outside of it too.
    "x[1l << 30]": "x",
    "x[-(1l << 30)]": "x",
    "s[1u << 20]": "s",
    "s[-(1 << 20)]": "s",
    "y[1l << 30]": "y",
    # Four gigabytes on, the lower half of the address is the array's own.
    "s[1ul << 30]": "",
}


def test_an_address_is_of_the_array_in_whose_span_it_lies() -> None:
    body = "uint i = thread_index_in_threadgroup;\nthreadgroup float s[32];\ns[i] = 0; y[i] = 0; float k = 0;\n"
    body += "".join(f"if (i == {n}) k = {step};\n" for n, step in enumerate(STEPS)) + "if (k == 12345) y[i] = 1;"
    kernel = metal_kernel("spans", ["x"], ["y"], body)

    def call() -> list[mx.array]:
        return kernel(
            inputs=[mx.zeros(64)],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(32,)],
            output_dtypes=[mx.float32],
        )

    with use("host"):
        findings = check(call, schedules=["in-order"])[1]
    assert {one.kind for one in findings} == {Kind.OUT_OF_BOUNDS}
    told = {one.place.line - 4: one.array for one in findings if one.place is not None}
    assert told == dict(enumerate(STEPS.values()))


HEADER = "struct Big { uint v[64]; };\nstruct Four { float v[4]; };\n"
THREAD = "uint i = thread_index_in_threadgroup;\n"


def checked(body: str, sizes: dict[str, int]) -> tuple[list[list[float]], list[tuple[Any, ...]]]:
    """The outputs of 32 threads with x of 64 floats, and what is found: kind, array and index."""
    kernel = metal_kernel("k", ["x"], list(sizes), THREAD + body, header=HEADER)

    def call() -> list[mx.array]:
        return kernel(
            inputs=[mx.arange(64).astype(mx.float32)],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(size,) for size in sizes.values()],
            output_dtypes=[mx.float32] * len(sizes),
        )

    with use("host"):
        outputs, findings = check(call, schedules=["in-order"], poisons=[0x7FC0DEAD])
    return [out.tolist() for out in outputs], [(one.kind, one.array, one.index) for one in findings]


def test_an_input_keeps_what_it_holds() -> None:
    # The threads run one after the other: each sees what those before it have left.
    body = (
        "if (i == 0) ((device float*)x)[5] = 99;\n"
        "if (i == 1) *(device Big*)x = *(const device Big*)ulong(4096);\n"
        "y[i] = x[i] + x[i + 32];"
    )
    (y,), found = checked(body, {"y": 32})
    assert y == [2.0 * n + 32 for n in range(32)]
    assert set(found) == {(Kind.WRITE_TO_INPUT, "x", 5), (Kind.WRITE_TO_INPUT, "x", 0), (Kind.OUT_OF_BOUNDS, "", None)}


def test_a_write_that_goes_beyond_an_input_is_outside_of_it() -> None:
    (_,), found = checked("y[i] = 1; if (i == 3) *(device Four*)(x + 62) = *(const device Four*)x;", {"y": 32})
    assert found == [(Kind.OUT_OF_BOUNDS, "x", 62)]


def test_a_read_that_goes_beyond_an_output_writes_nothing() -> None:
    body = "if (i < 30) y[i] = 1; if (i == 3) { Four f = *(const device Four*)(y + 30); if (f.v[3] == 5) y[0] = 2; }"
    (_,), found = checked(body, {"y": 32})
    assert (Kind.OUT_OF_BOUNDS, "y", 30) in found
    assert (Kind.UNWRITTEN, "y", 30) in found


def test_what_is_known_of_an_array_ends_with_it() -> None:
    # 16 KiB: what says of each byte whether it was written fills its pages, and what is behind it is of something else.
    body = (
        "if (i == 0) *(device Four*)(y + 4093) = *(const device Four*)x;\n"
        "for (uint k = i == 31 ? 0 : 31 - i; k < 4093; k += 32) y[k] = 1;\n"
    )
    (y,), found = checked(body, {"y": 4096})
    assert y[:4093] == [1.0] * 4093
    assert found == [(Kind.OUT_OF_BOUNDS, "y", 4093)]
