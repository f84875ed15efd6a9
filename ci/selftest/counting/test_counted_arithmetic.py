"""Instructions by class, counted by hand: those of a GPU for what the text says."""

from __future__ import annotations

import mlx.core as mx
import pytest
from counting.launching import count, floats

from mlx_assay.impl.executors.counting import Arithmetic
from mlx_assay.impl.executors.counting.arithmetic import CLASSES, classify
from mlx_assay.impl.executors.counting.registers import registers

ONE = Arithmetic(32, 1)
HALVES = floats(64).astype(mx.float16)


@pytest.mark.parametrize(
    ("expression", "kind", "number"),
    [
        ("x[i] + y[i]", "float", 1),
        ("(x[i] - y[i]) * x[i] * y[i]", "float", 3),
        ("x[i] * y[i] + y[i]", "fma", 1),
        ("fma(x[i], y[i], 1.0f)", "fma", 1),
        ("max(x[i], y[i])", "comparison", 1),
        ("metal::min(x[i], metal::max(y[i], 1.0f))", "comparison", 2),
        ("exp(x[i])", "transcendental", 1),
        ("precise::tanh(x[i])", "transcendental", 1),
        ("sqrt(x[i])", "transcendental", 1),
        ("x[i] / y[i]", "division", 1),
        ("float(half(x[i]))", "conversion", 2),
        ("float(int(x[i]))", "conversion", 2),
        ("float(bfloat(x[i]))", "conversion", 1),
        ("as_type<float>(popcount(as_type<uint>(x[i])) ^ as_type<uint>(y[i]))", "integer", 2),
    ],
)
def test_classes(expression: str, kind: str, number: int) -> None:
    found = count(f"out[i] = {expression};", floats(65), floats(65)).arithmetic
    assert found[kind] == Arithmetic(32 * number, number)
    others = set(found) - {kind, "address", "integer" if kind == "conversion" else kind}
    assert others == set()


def test_halves() -> None:
    found = count("out[i] = (x[i] + y[i]) * x[i];", HALVES, HALVES, output=((64,), mx.float16)).arithmetic
    assert found["half"] == Arithmetic(64, 2)
    fused = count("out[i] = x[i] * y[i] + x[i + 1];", HALVES, HALVES, output=((64,), mx.float16)).arithmetic
    assert fused["fma"] == ONE
    assert "half" not in fused


def test_vectors_count_each_element() -> None:
    source = "const float4 v = ((const device float4*)x)[i];\n((device float4*)out)[i] = v * v + v;"
    found = count(source, floats(128), output=((128,), mx.float32)).arithmetic
    assert found["fma"] == Arithmetic(128, 4)


def test_integers_of_64_bits_are_apart() -> None:
    source = "const ulong v = ((const device ulong*)x)[i];\n((device ulong*)out)[i] = (v * v) ^ (v + 7);"
    found = count(source, floats(64), output=((64,), mx.float32)).arithmetic
    assert found["long"] == Arithmetic(96, 3)


SUM = "const uint p = (w & 0x00ff00ffu) + ((w >> 8) & 0x00ff00ffu);\nout[i] = as_type<float>({});"


@pytest.mark.parametrize(
    ("last", "sums", "integers"),
    [
        ("(p & 0xffffu) + (p >> 16)", 1, 0),
        ("(p >> 16) + (p & 0xffffu)", 1, 0),
        ("((p & 0xffffu) + (p >> 16)) | 0x4b000000u", 1, 0),
        # The lowest ten bits are the sum's own: to join others there is a step.
        ("((p & 0xffffu) + (p >> 16)) | 0x4b000001u", 1, 1),
        ("(p & 0xffu) + (p >> 16)", 0, 6),
        ("(p & 0xffffu) + (p >> 15)", 0, 6),
    ],
)
def test_the_sum_of_four_bytes_is_one(last: str, sums: int, integers: int) -> None:
    source = f"const uint w = as_type<uint>(x[i]);\n{SUM.format(last)}"
    found = count(source, floats(64)).arithmetic
    assert found.get("byte_sum") == (ONE if sums else None)
    assert found.get("integer", Arithmetic()).issued >= integers
    assert ("integer" in found) == (integers > 0)


def test_a_quotient_by_a_constant_is_no_division() -> None:
    assert "division" not in count("out[i] = float(uint(x[i]) / 10);", floats(64)).arithmetic
    assert count("out[i] = float(uint(x[i]) / uint(y[i]));", floats(64), floats(64)).arithmetic["division"] == ONE


def test_a_loop_counts_each_turn() -> None:
    source = "float s = x[i];\nfor (uint k = 0; k < uint(y[0]); k++) s = s * s + y[k];\nout[i] = s;"
    found = count(source, floats(64), floats(64) + 11).arithmetic
    assert found["fma"] == Arithmetic(11 * 32, 11)


def test_a_branch_is_issued_by_whoever_takes_it() -> None:
    # Lanes 0 to 3 alone compute, in both simdgroups.
    source = "if ((i & 31) < 4) out[i] = exp(x[i]);"
    found = count(source, floats(64), grid=64, threadgroup=64).arithmetic
    assert found["transcendental"] == Arithmetic(8, 2)


def test_lanes_that_take_turns_issue_each_their_own() -> None:
    source = "for (uint k = 0; k < 32; k++)\n  if (k == (i * 7) % 32) out[k] = exp(x[k + 1]);"
    assert count(source, floats(64)).arithmetic["transcendental"] == Arithmetic(32, 32)


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        ("  %3 = add nuw nsw i32 %1, 4, !dbg !9", ("integer", 1)),
        ("  %3 = mul i32 %1, %2", ("product", 1)),
        ("  %3 = mul i64 %1, %2", ("long", 1)),
        ("  %3 = icmp samesign ult i64 %1, 4", ("long", 1)),
        ("  %3 = fcmp uno float %1, 0.000000e+00", ("comparison", 1)),
        ("  %3 = fmul contract <4 x half> %1, %2", ("half", 4)),
        (
            "  %3 = tail call <2 x float> @llvm.fmuladd.v2f32(<2 x float> %0, <2 x float> %1, <2 x float> %2)",
            ("fma", 2),
        ),
        ("  %3 = tail call i32 @llvm.umin.i32(i32 %1, i32 %2), !dbg !4", ("integer", 1)),
        ("  %3 = call float @tanhf(float %1)", ("transcendental", 1)),
        ("  %3 = udiv i32 %1, 10, !dbg !3", ("integer", 3)),
        ("  %3 = urem i64 %1, %2, !dbg !3", ("division", 1)),
        ("  %3 = fpext <2 x half> %1 to <2 x float>", ("conversion", 2)),
        ("  %3 = select i1 %1, <4 x float> %0, <4 x float> %2", ("select", 4)),
        ("  %3 = getelementptr inbounds float, ptr %1, i64 %2, !dbg !8", ("address", 1)),
        ("  %3 = getelementptr inbounds nuw i8, ptr %1, i64 16", None),
        ("  br i1 %3, label %4, label %5", ("branch", 1)),
        ("  br label %4", None),
        ("  %3 = phi float [ 0.0, %1 ], [ %2, %0 ]", None),
        ("  %3 = bitcast i32 %1 to float", None),
        ("  call void @llvm.lifetime.start.p0(ptr %1)", None),
        ("  %3 = call ptr @assay_arena()", None),
    ],
)
def test_instructions(line: str, counted: tuple[str, int] | None) -> None:
    assert classify(line) == counted
    assert counted is None or counted[0] in CLASSES


@pytest.mark.parametrize(
    ("expression", "counts"),
    [
        # A product and a sum are one instruction, whichever way round.
        ("v * 37 + w", {"product": 1}),
        ("w - v * 37", {"product": 1}),
        # Two steps of logic are one, three are two.
        ("(v & 0x00ff00ff) | w", {"integer": 1}),
        ("((v & w) ^ 5) | (w >> 3)", {"integer": 3}),
        # A shift to the left and the sum of it.
        ("(v << 3) + w", {"integer": 1}),
        # What is used twice has to be there.
        ("(v * 37 + w) ^ (v * 37)", {"product": 1, "integer": 2}),
    ],
)
def test_what_one_instruction_does_together(expression: str, counts: dict[str, int]) -> None:
    read = "const uint v = ((const device uint*)x)[i], w = ((const device uint*)y)[i];\n"
    found = count(f"{read}((device uint*)out)[i] = {expression};", floats(64), floats(64)).arithmetic
    assert {kind: a.issued for kind, a in found.items() if kind != "address"} == counts


def test_registers_are_the_most_values_at_once() -> None:
    # Two pointers of 2 words, then a, b and c at once, then their sum.
    body = """\
entry:
  %a = load float, ptr %p, align 4
  %b = load float, ptr %q, align 4
  %v = load <4 x float>, ptr %p, align 4
  %c = extractelement <4 x float> %v, i64 1
  %s = fadd float %a, %b
  %t = fadd float %s, %c
  store float %t, ptr @out, align 4
  ret void"""
    assert registers(body.split("\n")) == 6


def test_registers_of_a_loop_hold_what_it_needs_again() -> None:
    body = """\
entry:
  %k = load <2 x float>, ptr @in, align 4
  br label %loop
loop:
  %n = phi i32 [ 0, %entry ], [ %m, %loop ]
  %m = add i32 %n, 1
  %e = icmp eq i32 %m, 9
  br i1 %e, label %end, label %loop
end:
  store <2 x float> %k, ptr @out, align 4
  ret void"""
    assert registers(body.split("\n")) == 3
