"""Operators of mutation on small texts: each finds every place, and changes exactly that."""

from __future__ import annotations

import pytest

from mlx_assay.conformance.mutation.catalogue import METAL, PYTHON, names
from mlx_assay.conformance.mutation.launchers import Module
from mlx_assay.conformance.mutation.operator import Operator
from mlx_assay.conformance.mutation.tokens import Code

METAL_TEXTS: dict[str, tuple[str, list[str]]] = {
    "comparison-strictness": (
        "for (uint i = 0; i < n; ++i) if (a[i] >= b) f<T>(i); // i < n",
        [
            "for (uint i = 0; i <= n; ++i) if (a[i] >= b) f<T>(i); // i < n",
            "for (uint i = 0; i < n; ++i) if (a[i] > b) f<T>(i); // i < n",
        ],
    ),
    "comparison-reversed": (
        "for (uint i = 0; i < n; ++i) x = i == k ? a < b : c;",
        [
            "for (uint i = 0; i < n; ++i) x = i != k ? a < b : c;",
            "for (uint i = 0; i < n; ++i) x = i == k ? a > b : c;",
        ],
    ),
    "condition-joined": ("ok = a && b || c;", ["ok = a || b || c;", "ok = a && b && c;"]),
    "condition-negated": ("if (i < n) x = 1; if (found) y = 2;", ["if (i < n) x = 1; if (!(found)) y = 2;"]),
    "condition-part-dropped": ("if (i < n && free) f();", ["if ( free) f();", "if (i < n ) f();"]),
    "condition-constant": ("if (i >= n) return;", ["if (true) return;"]),
    "arms-swapped": ("x = first ? f(a, b) : c + d;", ["x = first ? c + d : f(a, b);"]),
    "nan-rule-dropped": (
        "if (isnan(float(x))) y = isfinite(x);",
        ["if (false) y = isfinite(x);", "if (isnan(float(x))) y = true;"],
    ),
    "extreme-swapped": ("m = min(m, x);", ["m = max(m, x);", "m = (m);", "m = (x);"]),
    "arithmetic-swapped": (
        "x = -a * b + c; y -= 1;",
        ["x = -a + b + c; y -= 1;", "x = -a * b - c; y -= 1;", "x = -a * b + c; y += 1;"],
    ),
    "bits-swapped": (
        "x = a >> 5 & b; const device uint* p = q;",
        ["x = a << 5 & b; const device uint* p = q;", "x = a >> 5 | b; const device uint* p = q;"],
    ),
    "integer-off-by-one": (
        "x = a[2] + 3u + 0xff; // 7\n#pragma unroll 4\n",
        [
            "x = a[3] + 3u + 0xff; // 7\n#pragma unroll 4\n",
            "x = a[1] + 3u + 0xff; // 7\n#pragma unroll 4\n",
            "x = a[2] + 4u + 0xff; // 7\n#pragma unroll 4\n",
            "x = a[2] + 3u + 0x100; // 7\n#pragma unroll 4\n",
            "x = a[2] + 3u + 0xfe; // 7\n#pragma unroll 4\n",
        ],
    ),
    "constant-last-place": ("x = 147.5f;", ["x = 147.50001525878906f;", "x = 147.49998474121094f;"]),
    "initial-value": (
        "float m = -INFINITY; const float c = 0.0f; float t = 0.0f; uint id = NONE;",
        [
            "float m = 0.0f; const float c = 0.0f; float t = 0.0f; uint id = NONE;",
            "float m = INFINITY; const float c = 0.0f; float t = 0.0f; uint id = NONE;",
            "float m = -INFINITY; const float c = 0.0f; float t = 1.0f; uint id = NONE;",
            "float m = -INFINITY; const float c = 0.0f; float t = -0.0f; uint id = NONE;",
            "float m = -INFINITY; const float c = 0.0f; float t = 0.0f; uint id = 0;",
        ],
    ),
    "sign-of-zero": ("x = on ? 0.0f : -0.0f;", ["x = on ? -0.0f : -0.0f;"]),
    "sign-dropped": ("x = -y - z; if (!done) f();", ["x = y - z; if (!done) f();", "x = -y - z; if (done) f();"]),
    "wrap-dropped": (
        "x = (a + 1) % n * b; y = c & 7u;",
        ["x = (a + 1) * b; y = c & 7u;", "x = (a + 1) % n * b; y = c;"],
    ),
    "shift": (
        "x = a >> (i & 31); y = a << 8u;",
        [
            "x = a >> ((i & 31) + 1u); y = a << 8u;",
            "x = a >> (31u - (i & 31)); y = a << 8u;",
            "x = a >> (i & 31); y = a << (31u - 8u);",
        ],
    ),
    "unsigned-made-signed": ("x = (a + b) >> 8;", ["x = int((a + b)) >> 8;"]),
    "order-reversed": (
        "for (uint s = 0; s < N; ++s) t = a[s] + t;",
        ["for (int s = int(N) - 1; s >= int(0); --s) t = a[s] + t;"],
    ),
    "index-off-by-one": (
        "float a[4]; a[i] = b[2 * i];",
        [
            "float a[4]; a[(i) + 1] = b[2 * i];",
            "float a[4]; a[(i) - 1] = b[2 * i];",
            "float a[4]; a[i] = b[(2 * i) + 1];",
            "float a[4]; a[i] = b[(2 * i) - 1];",
        ],
    ),
    "slot-fixed": ("threadgroup float s[N]; s[g] = x; y = s[0];", ["threadgroup float s[N]; s[0] = x; y = s[0];"]),
    "order-of-words": ("x = words[i] + sums[i];", ["x = words[(i) ^ 1u] + sums[i];"]),
    "stride-off": (
        "const uint at = row * cols + i; x = y * scale;",
        ["const uint at = row * (cols + 1) + i; x = y * scale;"],
    ),
    "place-mistaken": (
        "const uint i = thread_position_in_threadgroup.x;",
        ["const uint i = thread_position_in_grid.x;"],
    ),
    "axis-mistaken": (
        "const uint i = thread_position_in_grid.x + v.x;",
        ["const uint i = thread_position_in_grid.y + v.x;"],
    ),
    "barrier-dropped": ("f(); threadgroup_barrier(mem_flags::mem_threadgroup); g();", ["f(); ; g();"]),
    "barrier-weakened": (
        "threadgroup_barrier(mem_flags::mem_threadgroup);",
        [
            "threadgroup_barrier(mem_flags::mem_none);",
            "threadgroup_barrier(mem_flags::mem_device);",
        ],
    ),
    "collective-swapped": ("t = simd_min(t + 1);", ["t = simd_max(t + 1);", "t = (t + 1);"]),
    "lane-distance": (
        "t = simd_shuffle_xor(t, 8);",
        [
            "t = simd_shuffle_xor(t, ushort((8 / 2) % 32));",
            "t = simd_shuffle_xor(t, ushort((8 * 2) % 32));",
            "t = simd_shuffle_xor(t, ushort((8 + 1) % 32));",
            "t = simd_shuffle_xor(t, ushort((8 - 1) % 32));",
            "t = (t);",
        ],
    ),
    "rounding-dropped": (
        "template <typename T> f(T(a - b), float(c));",
        ["template <typename T> f((a - b), float(c));"],
    ),
    "rounding-added": ("x = float(a[i]) * 2;", ["x = float(half(a[i])) * 2;"]),
    "rounding-truncated": (
        "out[i] = T(total);",
        ["out[i] = T(as_type<float>(as_type<uint>(float(total)) & 0xffff0000u));"],
    ),
    "half-variable": (
        "float t = 0.0f; f(float x); const float y = x;",
        ["half t = 0.0f; f(float x); const float y = x;", "float t = 0.0f; f(float x); const half y = x;"],
    ),
    "fma-split": ("t = metal::fma(a, b * c, t);", ["t = (as_type<float>(as_type<uint>(float((a) * (b * c)))) + (t));"]),
    "fma-regrouped": (
        "t = metal::fma(a * b, c, t); u = fma(a, b, u);",
        [
            "t = metal::fma(a, b * (c), t); u = fma(a, b, u);",
            "t = metal::fma(a * b, c, t); u = metal::fma(a, b, -(u));",
        ],
    ),
    "loop-length": (
        "for (uint i = t; i < min(n, m); i += 4) f(i);",
        ["for (uint i = t; i < min(n, m) - 1; i += 4) f(i);"],
    ),
    "loop-step": (
        "for (;;) g(); for (uint i = 0; i < n; ++i) f(i); for (; j < n; j += k) f(j);",
        [
            "for (;;) g(); for (uint i = 0; i < n; i += 2) f(i); for (; j < n; j += k) f(j);",
            "for (;;) g(); for (uint i = 0; i < n; ++i) f(i); for (; j < n; j += k + 1) f(j);",
        ],
    ),
    "return-dropped": ("if (i >= n) return; return x;", ["if (i >= n) ; return x;"]),
    "early-value-dropped": ("if (a > b) return c; return d;", [" return d;"]),
    "statement-dropped": (
        "float x = 1; for (uint i = 0; i < n; i += 2) x = a[i] + x; x += 1;",
        [
            "float x = 1; for (uint i = 0; i < n; i += 2) ; x += 1;",
            "float x = 1; for (uint i = 0; i < n; i += 2) x = a[i] + x; ;",
        ],
    ),
}

PYTHON_TEXTS: dict[str, tuple[str, list[str]]] = {
    "launcher-comparison": ("ok = 0 < (a) <= b\n", ["ok = 0 <= (a) <= b\n", "ok = 0 < (a) < b\n"]),
    "launcher-arithmetic": ("x = a // (b + 1)\n", ["x = a * (b + 1)\n", "x = a // (b - 1)\n"]),
    "launcher-condition-part-dropped": ("ok = a or b\n", ["ok = False or b\n", "ok = a or False\n"]),
    "launcher-constant": (
        "'2'\nTILE = 1024\nf(grid=(n, 1, 1), keep=True)\n",
        [
            "'2'\nTILE = 1025\nf(grid=(n, 1, 1), keep=True)\n",
            "'2'\nTILE = 1024\nf(grid=(n, 1, 1), keep=False)\n",
        ],
    ),
    "launcher-condition-negated": (
        "if a < b: f()\nx = 1 if found else 2\n",
        ["if a < b: f()\nx = 1 if not (found) else 2\n"],
    ),
    "launcher-refusal-dropped": ("if bad:\n  raise ValueError(f'{x + 1}')\n", ["if bad:\n  pass\n"]),
    "launcher-statement-dropped": ("check(x)\ny = f(x)\n", ["pass\ny = f(x)\n"]),
    "launcher-operation": (
        "y = mx.tanh(x).astype(mx.float16)\n",
        ["y = mx.sin(x).astype(mx.float16)\n", "y = mx.tanh(x).astype(mx.bfloat16)\n"],
    ),
    "launcher-order": (
        "k(grid=(a, b, 1), inputs=[x, y], template=[*more, ('A', n), ('B', m)])\n",
        [
            "k(grid=(b, a, 1), inputs=[x, y], template=[*more, ('A', n), ('B', m)])\n",
            "k(grid=(a, 1, b), inputs=[x, y], template=[*more, ('A', n), ('B', m)])\n",
            "k(grid=(a, b, 1), inputs=[y, x], template=[*more, ('A', n), ('B', m)])\n",
            "k(grid=(a, b, 1), inputs=[x, y], template=[*more, ('A', m), ('B', n)])\n",
        ],
    ),
    "launcher-keyword-dropped": ("y = mx.argmax(x, axis=-1)\n", ["y = mx.argmax(x)\n"]),
}


def metal(operator: Operator[Code], text: str) -> list[str]:
    return [edit.apply(text) for edit in operator.edits(Code(text), text)]


def python(operator: Operator[Module], text: str) -> list[str]:
    return [edit.apply(text) for edit in operator.edits(Module(text), text)]


@pytest.mark.parametrize("operator", METAL, ids=lambda operator: operator.name)
def test_metal(operator: Operator[Code]) -> None:
    text, changed = METAL_TEXTS[operator.name]
    found = metal(operator, text)
    assert sorted(found) == sorted(changed)


@pytest.mark.parametrize("operator", PYTHON, ids=lambda operator: operator.name)
def test_python(operator: Operator[Module]) -> None:
    text, changed = PYTHON_TEXTS[operator.name]
    assert sorted(python(operator, text)) == sorted(changed)


def test_a_step_of_several_parts_leaves_turns_out_of_what_its_condition_asks_for() -> None:
    operator = next(one for one in METAL if one.name == "loop-step")
    steps = {
        "i++": ["i += 2"],
        "i--": ["i -= 2"],
        "--i": ["i -= 2"],
        "i = next(i, 1)": ["i = next(i, 1) + 1"],
        "++i, at += i": ["i += 2, at += i"],
        "at[i]++, i--": ["at[i]++, i -= 2"],
        "f(a, b), g[c, d]++": ["f(a, b) + 1, g[c, d]++", "f(a, b), g[c, d] += 2"],
    }
    found = {step: metal(operator, f"for (int i = 9; i > n; {step}) f(i);") for step in steps}
    assert found == {
        step: sorted(f"for (int i = 9; i > n; {other}) f(i);" for other in others) for step, others in steps.items()
    }


def test_every_operator_has_a_text_and_a_name_of_its_own() -> None:
    assert sorted(names()) == sorted([*METAL_TEXTS, *PYTHON_TEXTS])


@pytest.mark.parametrize("operator", METAL, ids=lambda operator: operator.name)
def test_nothing_is_found_in_comments_and_directives(operator: Operator[Code]) -> None:
    """The same text in a comment, and behind a directive, holds no place."""
    text = METAL_TEXTS[operator.name][0].splitlines()[0]
    quiet = f"// {text}\n/* {text} */\n#define ONE {text}\n"
    assert metal(operator, quiet) == []
