"""Questions about products and sums: contraction, fused steps, and how results are rounded to the half types."""

from __future__ import annotations

from mlx_assay.conformance.capture.question import Question, bf16, f16, f32

FUSED, ROUNDED = "fused", "rounded"
_CONTRACTION = {"on": FUSED, "off": ROUNDED}
_FLOATS = "float p = as_type<float>(a[0]), q = as_type<float>(a[1]), s = as_type<float>(a[2]);"
_HALVES = "half p = as_type<half>(ushort(a[0])), q = as_type<half>(ushort(a[1])), s = as_type<half>(ushort(a[2]));"
_BFLOATS = _HALVES.replace("half", "bfloat16_t")

# (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: a product that is rounded loses the last term.
_F32 = f32(1 + 2.0**-12, 1 + 2.0**-12, -(1 + 2.0**-11))
_F32_ANSWERS = {FUSED: f32(2.0**-24), ROUNDED: f32(0.0)}
_F16 = f16(1 + 2.0**-6, 1 + 2.0**-6, -(1 + 2.0**-5))
_BF16 = bf16(1 + 2.0**-4, 1 + 2.0**-4, -(1 + 2.0**-3))

# The exact value is 1 + 2^-10 + 2^-11 - 2^-31: just below a midpoint of halves, on which float32 would round it.
_ONCE = f16((1 + 2.0**-10) * 2.0**-5, (1 - 2.0**-10) * 2.0**-6, 1 + 2.0**-10)
_ROUNDING = {"rounded once": f16(1 + 2.0**-10), "rounded twice": f16(1 + 2.0**-9)}

_INFINITY, _NAN = 0x7F80, 0x7FC0
# Midpoints of bfloats below an even and below an odd one, their neighbours, the largest, and a NaN of the lowest bit.
_MIDPOINTS = (0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0xBF818000, 0x7F7FFFFF, 0x7F800001)
_HALF_MIDPOINTS = f32(
    1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 - 2.0**-23, 1 + 2.0**-11 + 2.0**-23, 65520.0, 65519.0
)


def _narrowed(count: int, type_: str) -> str:
    return " ".join(f"r[{i}] = as_type<ushort>({type_}(as_type<float>(a[{i}])));" for i in range(count))


QUESTIONS = (
    Question(
        "contraction.f32",
        "a * b + c of floats in one expression",
        "f32",
        _F32,
        1,
        f"{_FLOATS} r[0] = as_type<uint>(p * q + s);",
        _F32_ANSWERS,
        _CONTRACTION,
        "contraction",
    ),
    Question(
        "contraction.f32.statements",
        "a * b of floats given a name, then + c",
        "f32",
        _F32,
        1,
        f"{_FLOATS} float t = p * q; r[0] = as_type<uint>(t + s);",
        _F32_ANSWERS,
        ROUNDED,
    ),
    Question(
        "contraction.f32.pragma-off",
        "a * b + c of floats under #pragma METAL fp contract(off)",
        "f32",
        _F32,
        1,
        f"{{\n#pragma METAL fp contract(off)\n{_FLOATS} r[0] = as_type<uint>(p * q + s);\n}}",
        _F32_ANSWERS,
        ROUNDED,
        group="own",
    ),
    Question(
        "contraction.f16",
        "a * b + c of halves in one expression",
        "f16",
        _F16,
        1,
        f"{_HALVES} half t = p * q + s; r[0] = as_type<ushort>(t);",
        {FUSED: f16(2.0**-12), ROUNDED: f16(0.0)},
        _CONTRACTION,
        "contraction",
    ),
    Question(
        "contraction.bf16",
        "a * b + c of bfloats in one expression",
        "bf16",
        _BF16,
        1,
        f"{_BFLOATS} bfloat16_t t = p * q + s; r[0] = as_type<ushort>(t);",
        {FUSED: bf16(2.0**-8), ROUNDED: bf16(0.0)},
        _CONTRACTION,
        "contraction",
    ),
    Question(
        "fma.f32",
        "fma of floats",
        "f32",
        _F32,
        1,
        f"{_FLOATS} r[0] = as_type<uint>(fma(p, q, s));",
        _F32_ANSWERS,
        FUSED,
    ),
    Question(
        "fma.f16",
        "fma of halves beside a midpoint",
        "f16",
        _ONCE,
        1,
        f"{_HALVES} r[0] = as_type<ushort>(fma(p, q, s));",
        _ROUNDING,
        "rounded once",
    ),
    Question(
        "rounding.f32-to-bf16",
        "floats on and beside midpoints of bfloats, the largest float, and a NaN whose high half is infinity's",
        "bf16",
        _MIDPOINTS,
        len(_MIDPOINTS),
        _narrowed(len(_MIDPOINTS), "bfloat16_t"),
        {
            "nearest even": (0x3F80, 0x3F82, 0x3F80, 0x3F81, 0xBF82, _INFINITY, _NAN),
            "nearest, ties away": (0x3F81, 0x3F82, 0x3F80, 0x3F81, 0xBF82, _INFINITY, _NAN),
            "toward zero": (0x3F80, 0x3F81, 0x3F80, 0x3F80, 0xBF81, 0x7F7F, _NAN),
            "cut off, a NaN becomes infinity": (0x3F80, 0x3F81, 0x3F80, 0x3F80, 0xBF81, 0x7F7F, _INFINITY),
        },
        "nearest even",
    ),
    Question(
        "rounding.f32-to-f16",
        "floats on and beside midpoints of halves, and the midpoint between the largest half and infinity",
        "f16",
        _HALF_MIDPOINTS,
        len(_HALF_MIDPOINTS),
        _narrowed(len(_HALF_MIDPOINTS), "half"),
        {
            "nearest even": (0x3C00, 0x3C02, 0x3C00, 0x3C01, 0x7C00, 0x7BFF),
            "nearest, ties away": (0x3C01, 0x3C02, 0x3C00, 0x3C01, 0x7C00, 0x7BFF),
            "toward zero": (0x3C00, 0x3C01, 0x3C00, 0x3C00, 0x7BFF, 0x7BFF),
        },
        "nearest even",
    ),
    Question(
        "rounding.bf16-sum",
        "1 + 2^-8 and (1 + 2^-7) + 2^-8 of bfloats: sums on midpoints",
        "bf16",
        bf16(1.0, 1 + 2.0**-7, 2.0**-8),
        2,
        f"{_BFLOATS} bfloat16_t t = p + s, u = q + s; r[0] = as_type<ushort>(t); r[1] = as_type<ushort>(u);",
        {
            "nearest even": bf16(1.0, 1 + 2.0**-6),
            "nearest, ties away": bf16(1 + 2.0**-7, 1 + 2.0**-6),
            "toward zero": bf16(1.0, 1 + 2.0**-7),
        },
        "nearest even",
    ),
)
