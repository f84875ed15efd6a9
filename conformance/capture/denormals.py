"""Questions about denormal numbers: as operands, as results, and in conversions."""

from __future__ import annotations

from mlx_assay.conformance.capture.question import Kind, Question, Words, bf16, f16, f32

KEPT, FLUSHED = "kept", "flushed"
_FOLLOWS = {KEPT: KEPT, FLUSHED: FLUSHED}
_F32 = "float v = as_type<float>(a[0]), w = as_type<float>(a[1]);"
_F16 = "half v = as_type<half>(ushort(a[0])), w = as_type<half>(ushort(a[1]));"
_BF16 = _F16.replace("half", "bfloat16_t")
_TINY = 2.0**-130


def _question(
    name: str, about: str, kind: Kind, operands: Words, source: str, kept: Words, flushed: Words, follows: bool
) -> Question:
    return Question(
        f"denormals.{name}",
        about,
        kind,
        operands,
        len(kept),
        source,
        {KEPT: kept, FLUSHED: flushed},
        _FOLLOWS if follows else KEPT,
        "f32_denormals" if follows else "",
    )


QUESTIONS = (
    _question(
        "f32.operand",
        "2^-130 * 2^100 and -2^-130 * 2^100",
        "f32",
        f32(_TINY, 2.0**100),
        f"{_F32} r[0] = as_type<uint>(v * w); r[1] = as_type<uint>(-v * w);",
        f32(2.0**-30, -(2.0**-30)),
        f32(0.0, -0.0),
        True,
    ),
    _question(
        "f32.result",
        "2^-126 * 2^-4 and -2^-126 * 2^-4",
        "f32",
        f32(2.0**-126, 2.0**-4),
        f"{_F32} r[0] = as_type<uint>(v * w); r[1] = as_type<uint>(-v * w);",
        f32(_TINY, -_TINY),
        f32(0.0, -0.0),
        True,
    ),
    _question(
        "f32.sum",
        "1.5 * 2^-126 - 2^-126",
        "f32",
        f32(1.5 * 2.0**-126, 2.0**-126),
        f"{_F32} r[0] = as_type<uint>(v - w);",
        f32(2.0**-127),
        f32(0.0),
        True,
    ),
    _question(
        "f32.fma",
        "fma(2^-130, 2^100, 0)",
        "f32",
        f32(_TINY, 2.0**100),
        f"{_F32} r[0] = as_type<uint>(fma(v, w, 0.0f));",
        f32(2.0**-30),
        f32(0.0),
        True,
    ),
    _question(
        "f32.compare",
        "whether 2^-130 is above zero",
        "u32",
        f32(_TINY, 0.0),
        f"{_F32} r[0] = v > w ? 1u : 0u;",
        (1,),
        (0,),
        True,
    ),
    _question(
        "f16.operand",
        "2^-24 * 2^10 of halves",
        "f16",
        f16(2.0**-24, 2.0**10),
        f"{_F16} half t = v * w; r[0] = as_type<ushort>(t);",
        f16(2.0**-14),
        f16(0.0),
        False,
    ),
    _question(
        "f16.result",
        "2^-14 * 2^-4 of halves",
        "f16",
        f16(2.0**-14, 2.0**-4),
        f"{_F16} half t = v * w; r[0] = as_type<ushort>(t);",
        f16(2.0**-18),
        f16(0.0),
        False,
    ),
    _question(
        "f16-to-f32",
        "the half 2^-20 as a float",
        "f32",
        f16(2.0**-20, 0.0),
        f"{_F16} r[0] = as_type<uint>(float(v) + float(w));",
        f32(2.0**-20),
        f32(0.0),
        False,
    ),
    _question(
        "f32-to-f16",
        "the float 2^-20 as a half",
        "f16",
        f32(2.0**-20, 0.0),
        f"{_F32} r[0] = as_type<ushort>(half(v));",
        f16(2.0**-20),
        f16(0.0),
        False,
    ),
    _question(
        "bf16.operand",
        "2^-130 * 2^100 of bfloats",
        "bf16",
        bf16(_TINY, 2.0**100),
        f"{_BF16} bfloat16_t t = v * w; r[0] = as_type<ushort>(t);",
        bf16(2.0**-30),
        bf16(0.0),
        True,
    ),
    _question(
        "bf16.result",
        "2^-126 * 2^-4 of bfloats",
        "bf16",
        bf16(2.0**-126, 2.0**-4),
        f"{_BF16} bfloat16_t t = v * w; r[0] = as_type<ushort>(t);",
        bf16(_TINY),
        bf16(0.0),
        True,
    ),
    _question(
        "bf16-to-f32",
        "the bfloat 2^-130 as a float",
        "f32",
        bf16(_TINY, 0.0),
        f"{_BF16} r[0] = as_type<uint>(float(v));",
        f32(_TINY),
        f32(0.0),
        False,
    ),
    _question(
        "f32-to-bf16",
        "the float 2^-130 as a bfloat",
        "bf16",
        f32(_TINY, 0.0),
        f"{_F32} r[0] = as_type<ushort>(bfloat16_t(v));",
        bf16(_TINY),
        bf16(0.0),
        False,
    ),
)
