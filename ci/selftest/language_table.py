"""What each function of the language gives: values by mpmath, by Python's integers, or by reasoning."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath

Reals = Sequence[tuple[float, ...]]

_ANY = [(0.75,), (-1.5,), (2.0,), (0.03125,), (-7.25,)]
_UNIT = [(0.75,), (-0.5,), (0.03125,)]
_ABOVE = [(0.75,), (1.5,), (40.0,)]


def _sign(x: Any) -> Any:
    return (x > 0) - (x < 0)


def _fmod(x: float, y: float) -> float:
    return math.fmod(x, y)


# Name -> the function in exact arithmetic, and arguments that every float type holds.
FLOAT: dict[str, tuple[Callable[..., Any], Reals]] = {
    "acos": (mpmath.acos, _UNIT),
    "acosh": (mpmath.acosh, [(1.5,), (40.0,)]),
    "asin": (mpmath.asin, _UNIT),
    "asinh": (mpmath.asinh, [(0.75,), (1.5,), (7.25,)]),
    "atan": (mpmath.atan, _ANY),
    "atanh": (mpmath.atanh, [(0.75,), (-0.5,)]),
    "ceil": (mpmath.ceil, _ANY),
    "cos": (mpmath.cos, _ANY),
    "cosh": (mpmath.cosh, _ANY),
    "cospi": (lambda x: mpmath.cos(mpmath.pi * x), [(0.75,), (-1.25,), (2.0,)]),
    "exp": (mpmath.exp, _ANY),
    "exp10": (lambda x: mpmath.mpf(10) ** x, [(0.75,), (-1.5,), (2.0,)]),
    "exp2": (lambda x: mpmath.mpf(2) ** x, _ANY),
    "fabs": (abs, _ANY),
    "abs": (abs, _ANY),
    "floor": (mpmath.floor, _ANY),
    "fract": (lambda x: x - mpmath.floor(x), [(0.75,), (-1.25,), (2.5,)]),
    "log": (mpmath.log, _ABOVE),
    "log10": (mpmath.log10, _ABOVE),
    "log2": (lambda x: mpmath.log(x, 2), _ABOVE),
    "rint": (lambda x: mpmath.mpf(round(x)), [(0.5,), (1.5,), (-2.5,), (0.75,)]),
    "round": (lambda x: mpmath.mpf(math.copysign(math.floor(abs(x) + 0.5), x)), [(0.5,), (1.5,), (-2.5,), (0.75,)]),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), _ABOVE),
    "saturate": (lambda x: min(max(x, 0), 1), _ANY),
    "sign": (_sign, [(0.75,), (-1.5,), (0.0,)]),
    "sin": (mpmath.sin, _ANY),
    "sinh": (mpmath.sinh, [(0.75,), (-1.5,), (2.0,)]),
    "sinpi": (lambda x: mpmath.sin(mpmath.pi * x), [(0.75,), (-1.25,)]),
    "sqrt": (mpmath.sqrt, _ABOVE),
    "tan": (mpmath.tan, [(0.75,), (-1.5,)]),
    "tanh": (mpmath.tanh, [(0.75,), (-1.5,), (2.0,)]),
    "tanpi": (lambda x: mpmath.tan(mpmath.pi * x), [(0.125,), (-1.25,)]),
    "trunc": (lambda x: mpmath.mpf(math.trunc(x)), _ANY),
    "atan2": (mpmath.atan2, [(1.5, 2.0), (-0.75, -1.5), (1.0, -4.0)]),
    "copysign": (lambda x, y: mpmath.mpf(math.copysign(x, y)), [(1.5, -2.0), (-1.5, 2.0)]),
    "divide": (lambda x, y: x / y, [(1.5, 2.0), (7.0, 3.0)]),
    "fdim": (lambda x, y: max(x - y, 0), [(1.5, 2.0), (2.0, 0.75)]),
    "fmax": (max, [(1.5, 2.0), (-1.0, -4.0)]),
    "fmin": (min, [(1.5, 2.0), (-1.0, -4.0)]),
    "max": (max, [(1.5, 2.0), (-1.0, -4.0)]),
    "min": (min, [(1.5, 2.0), (-1.0, -4.0)]),
    "fmod": (_fmod, [(7.25, 2.0), (-7.25, 2.0), (1.0, 4.0)]),
    "pow": (lambda x, y: mpmath.mpf(x) ** y, [(1.5, 2.0), (4.0, -0.5)]),
    "powr": (lambda x, y: mpmath.mpf(x) ** y, [(1.5, 2.0), (4.0, -0.5)]),
    "step": (lambda edge, x: x >= edge, [(1.0, 0.5), (1.0, 1.0), (1.0, 2.0)]),
    "fma": (lambda x, y, z: x * y + z, [(1.5, 2.0, 0.25), (-3.0, 0.5, 4.0)]),
    "fmax3": (max, [(1.5, 2.0, 0.25)]),
    "fmin3": (min, [(1.5, 2.0, 0.25)]),
    "fmedian3": (lambda *x: sorted(x)[1], [(1.5, 2.0, 0.25), (3.0, 1.0, 2.0)]),
    "max3": (max, [(1.5, 2.0, 0.25)]),
    "min3": (min, [(1.5, 2.0, 0.25)]),
    "median3": (lambda *x: sorted(x)[1], [(1.5, 2.0, 0.25), (3.0, 1.0, 2.0)]),
    "clamp": (lambda x, lo, hi: min(max(x, lo), hi), [(1.5, 2.0, 3.0), (5.0, 2.0, 3.0), (2.5, 2.0, 3.0)]),
    "mix": (lambda x, y, a: x + (y - x) * a, [(1.5, 2.0, 0.25)]),
    "smoothstep": (lambda lo, hi, x: (t := (x - lo) / (hi - lo)) * t * (3 - 2 * t), [(1.0, 2.0, 1.25)]),
}

# Units in the last place that a function may be away from the exact value; those not named are rounded correctly.
PRECISE_ULP = 4
FAST_RELATIVE = 2.0**-14
EXACT = {
    *("abs", "ceil", "clamp", "copysign", "fabs", "fdim", "floor", "fma", "fmax", "fmax3", "fmedian3", "fmin", "fmin3"),
    *(
        "fmod",
        "fract",
        "max",
        "max3",
        "median3",
        "min",
        "min3",
        "rint",
        "round",
        "saturate",
        "sign",
        "sqrt",
        "step",
        "trunc",
    ),
}

# Expression -> its value. `float` is exact here.
EXPRESSIONS: dict[str, float] = {
    # Integers: wrap-around, saturation, bits. -128 - 1 and 127 + 1 leave a byte.
    "abs(-3)": 3,
    "abs(char(-128))": -128,
    "abs(int3(-1, 2, -3)).z": 3,
    "absdiff(-5, 7)": 12,
    "absdiff(INT_MIN, INT_MAX) == UINT_MAX": 1,
    "absdiff(uchar(3), uchar(10))": 7,
    "absdiff(char2(-128, 1), char2(127, 3)).x": 255,
    "addsat(char(100), char(100))": 127,
    "addsat(char(-100), char(-100))": -128,
    "addsat(uchar(200), uchar(100))": 255,
    "addsat(short4(32767), short4(1)).w": 32767,
    "addsat(~0ul, 1ul) == ~0ul": 1,
    "subsat(char(-100), char(100))": -128,
    "subsat(char(100), char(-100))": 127,
    "subsat(uchar(3), uchar(10))": 0,
    "subsat(INT_MIN, 1) == INT_MIN": 1,
    "subsat(1ul, 2ul)": 0,
    "hadd(uchar(255), uchar(254))": 254,
    "hadd(char(-128), char(-127))": -128,
    "rhadd(uchar(255), uchar(254))": 255,
    "rhadd(char(-128), char(-127))": -127,
    "hadd(~0ul, 1ul) == 1ul << 63": 1,
    "mulhi(0x80000000u, 4u)": 2,
    "mulhi(-1, 1)": -1,
    "mulhi(uchar(200), uchar(200))": 156,
    "mulhi(~0ul, ~0ul) == ~0ul - 1": 1,
    "mulhi(long(1) << 62, 8l)": 2,
    "madhi(0x80000000u, 4u, 5u)": 7,
    "madhi(int2(-1), int2(1), int2(3)).y": 2,
    "madsat(char(100), char(100), char(1))": 127,
    "madsat(char(-100), char(100), char(1))": -128,
    "madsat(uchar(15), uchar(16), uchar(10))": 250,
    "madsat(~0ul, 2ul, 0ul) == ~0ul": 1,
    "mul24(0x1000003, 2)": 6,
    "mul24(0xffffff, 3)": -3,
    "mul24(0xffffffu, 2u)": 0x1FFFFFE,
    "mad24(3, 4, 5)": 17,
    "mad24(0x1000003u, 2u, 1u)": 7,
    "mad24(int3(3), int3(4), int3(5)).x": 17,
    "clz(1u)": 31,
    "clz(0u)": 32,
    "clz(ushort(1))": 15,
    "clz(char(-1))": 0,
    "clz(1ul)": 63,
    "clz(uint2(1, 2)).y": 30,
    "ctz(8u)": 3,
    "ctz(uchar(0))": 8,
    "ctz(int2(8, 1)).x": 3,
    "popcount(0xf0fu)": 8,
    "popcount(char(-1))": 8,
    "popcount(uint4(7)).w": 3,
    "reverse_bits(1u) >> 31": 1,
    "reverse_bits(uchar(0x13))": 0xC8,
    "reverse_bits(ushort2(1)).x": 0x8000,
    "rotate(0x80000001u, 1u)": 3,
    "rotate(uchar(0x81), uchar(1))": 3,
    "rotate(uint2(1), uint2(33)).y": 2,
    "extract_bits(0xabcdu, 4, 8)": 0xBC,
    "extract_bits(0xabcd, 8, 8)": -85,
    "extract_bits(0xffu, 0, 0)": 0,
    "extract_bits(uint2(0xf0), 4, 4).y": 15,
    "extract_bits(0xf000000000000000ul, 60, 4)": 15,
    "insert_bits(0xffu, 0u, 4, 4)": 15,
    "insert_bits(0u, 0xffu, 8, 4)": 0xF00,
    "insert_bits(int2(-1), int2(0), 0, 32).x": 0,
    "max(3u, 5u)": 5,
    "min(short(-3), short(5))": -3,
    "max(int2(3, 9), int2(5)).x": 5,
    "max(3, int2(1, 5)).x": 3,
    "max3(1, 7, 3)": 7,
    "min3(1, 7, 3)": 1,
    "median3(1, 7, 3)": 3,
    "clamp(9, 1, 5)": 5,
    "clamp(int2(9, 0), 1, 5).y": 1,
    # Floats beyond one value.
    "ldexp(1.5f, 3)": 12,
    "ldexp(half(1.5h), -1)": 0.75,
    "ldexp(float2(1.5), int2(1, 2)).y": 6,
    "precise::ldexp(1.5f, 3) + fast::ldexp(1.5f, 1)": 15,
    "ilogb(10.0f)": 3,
    "ilogb(half(0.25h))": -2,
    "precise::ilogb(10.0f) + fast::ilogb(2.0f)": 4,
    "(n = 0, frexp(12.0f, n) + n)": 4.75,
    "(n = 0, frexp(half(12.0h), n) + n)": 4.75,
    "(n = 0, frexp(0.0f, n) + n)": 0,
    "(n = 0, precise::frexp(12.0f, n) + fast::frexp(3.0f, n) + n)": 3.5,
    "(f = 0, modf(-2.75f, f) + 16 * f)": -32.75,
    "(f = 0, precise::modf(2.75f, f) + fast::modf(1.5f, f))": 1.25,
    "(h = 0, modf(half(2.75h), h) + h)": 2.75,
    "(f = 0, sincos(0.0f, f) + f)": 1,
    "(f = 0, precise::sincos(0.0f, f) + fast::sincos(0.0f, f) + f)": 1,
    "(h = 0, sincos(half(0), h) + h)": 1,
    "nextafter(1.0f, 2.0f) == 1.0f + 0x1p-23f": 1,
    "nextafter(half(1), half(2)) == half(1) + 0x1p-10h": 1,
    "nextafter(half(0), half(-1)) == -0x1p-24h": 1,
    "precise::nextafter(1.0f, 0.0f) == fast::nextafter(1.0f, 0.0f)": 1,
    "mix(float2(1, 2), float2(3, 4), float2(0.5)).y": 3,
    "step(float2(1), float2(0, 2)).y": 1,
    "smoothstep(half(1), half(2), half(5))": 1,
    # NaN: a number beats it, and the functions of clamping send it to the lower end.
    "saturate(NAN) + sign(NAN) + saturate(half(NAN))": 0,
    "clamp(NAN, 1.0f, 2.0f) + precise::clamp(NAN, 1.0f, 2.0f)": 2,
    "max3(NAN, 1.0f, 2.0f) + min3(1.0f, NAN, 2.0f) + fmax3(1.0f, 2.0f, NAN)": 5,
    "max(half(NAN), half(1)) + min(half(1), half(NAN)) + isnan(max(half(NAN), half(NAN)))": 3,
    "max(float2(NAN, 1), float2(2, NAN)).x + fmin(float2(NAN, 1), float2(2, NAN)).y": 3,
    "isnan(fdim(NAN, 1.0f)) + isnan(copysign(NAN, 1.0f)) + isnan(pow(NAN, 1.0f)) + isnan(fract(NAN))": 4,
    "isnan(exp(NAN)) + isnan(log(-1.0f)) + isnan(sqrt(-1.0f)) + isnan(acos(2.0f)) + isnan(fmod(1.0f, 0.0f))": 5,
    "log(0.0f) == -INFINITY && exp(-INFINITY) == 0 && 1.0f / 0.0f == INFINITY && atan(INFINITY) > 1.57f": 1,
    # Relations.
    "isnan(NAN) + isnan(1.0f) + isnan(half(NAN)) + isnan(bfloat(NAN))": 3,
    "isinf(INFINITY) + isinf(-INFINITY) + isinf(NAN) + isinf(half(INFINITY))": 3,
    "isfinite(1.0f) + isfinite(INFINITY) + isfinite(half(NAN))": 1,
    "isnormal(1.0f) + isnormal(as_type<float>(1u)) + isnormal(half(1)) + isnormal(as_type<half>(ushort(1)))": 2,
    "signbit(-0.0f) + signbit(half(-1)) + signbit(2.0f)": 2,
    "isordered(1.0f, 2.0f) + isordered(NAN, 1.0f)": 1,
    "isunordered(half(1), half(NAN))": 1,
    "isnan(float4(1, NAN, 2, NAN)).w + isordered(float2(1, NAN), float2(1)).y": 1,
    "any(isnan(float4(1, NAN, 2, NAN)))": 1,
    "all(float2(1, 2) < float2(2, 3))": 1,
    "all(bool3(true, true, false))": 0,
    "any(int2(0, 4)) + any(false) + all(true)": 2,
    "select(1.0f, 2.0f, true)": 2,
    "select(float2(1, 2), float2(3, 4), float2(1, 2) > float2(1)).y": 4,
    "select(int2(1, 2), int2(3, 4), bool2(true, false)).x": 3,
    # Geometry.
    "dot(float3(1, 2, 3), float3(4, 5, 6))": 32,
    "dot(half2(1, 2), half2(3, 4))": 11,
    "cross(float3(1, 0, 0), float3(0, 1, 0)).z": 1,
    "length(float2(3, 4)) + precise::length(float2(3, 4)) + fast::length(float2(3, 4))": 15,
    "length_squared(float3(1, 2, 3))": 14,
    "distance(float2(1, 2), float2(4, 6)) + precise::distance(float2(1), float2(1))": 5,
    "fast::distance(float2(1, 2), float2(4, 6))": 5,
    "distance_squared(float2(1, 2), float2(4, 6))": 25,
    "normalize(float2(0, 5)).y + precise::normalize(float2(5, 0)).x + fast::normalize(float2(5, 0)).x": 3,
    "faceforward(float2(0, 1), float2(0, 1), float2(0, 1)).y": -1,
    "reflect(float2(1, -1), float2(0, 1)).y": 1,
    "refract(float2(0, -1), float2(0, 1), 0.5f).y": -1,
    "transpose(float2x3(1, 2, 3, 4, 5, 6))[2][1]": 6,
    "determinant(float2x2(1, 2, 3, 5)) + determinant(float3x3(2.0f)) + determinant(float4x4(2.0f))": 23,
    # Packing: 0.5 of 255 is 127.5, which goes to the even 128; 1 of 127 and of 255.
    "pack_float_to_unorm4x8(float4(0.5, 1, 0, 2)) == 0xff00ff80u": 1,
    "pack_float_to_snorm4x8(float4(1, -1, 0, -2)) == 0x8100817fu": 1,
    "pack_float_to_unorm2x16(float2(1, 0)) + pack_float_to_snorm2x16(float2(1, 0))": 65535 + 32767,
    "pack_half_to_unorm4x8(half4(1, 0, 0, 0)) + pack_half_to_snorm4x8(half4(1, 0, 0, 0))": 255 + 127,
    "pack_half_to_unorm2x16(half2(1, 0)) + pack_half_to_snorm2x16(half2(1, 0))": 65535 + 32767,
    "pack_float_to_unorm10a2(float4(1, 0, 1, 1)) == 0xfff003ffu": 1,
    "pack_float_to_unorm565(float3(1, 0, 1))": 0xF81F,
    "unpack_unorm4x8_to_float(0xff00ff00u).w + unpack_snorm4x8_to_float(0x81u).x": 0,
    "unpack_unorm2x16_to_float(0xffff0000u).y + unpack_snorm2x16_to_float(0x80000000u).y": 0,
    "unpack_unorm4x8_to_half(255u).x + unpack_snorm4x8_to_half(0x80u).x": 0,
    "unpack_unorm2x16_to_half(65535u).x + unpack_snorm2x16_to_half(32767u).x": 2,
    "unpack_unorm10a2_to_float(0xc0000000u).w + unpack_unorm565_to_float(ushort(0xf800)).x": 2,
    "is_uniform(3)": 1,
    # Types, and what they are in memory.
    "sizeof(float3) + alignof(float3)": 32,
    "sizeof(packed_float3) + alignof(packed_float3)": 16,
    "sizeof(packed_half4) + alignof(packed_half4)": 10,
    "sizeof(bool4) + sizeof(bool3) + sizeof(bool2)": 10,
    "sizeof(bfloat3) + alignof(bfloat2)": 12,
    "sizeof(float4x3) + sizeof(half2x2)": 72,
    "sizeof(simdgroup_float8x8)": 8,
    "sizeof(atomic_uint) + sizeof(atomic_ulong)": 12,
    "as_type<int>(-0.0f) == INT_MIN": 1,
    "as_type<ushort2>(0x00020001u).y": 2,
    "as_type<uint>(uchar4(1, 0, 0, 1)) == 0x01000001u": 1,
    "as_type<ulong>(uint2(1, 2)) == (2ul << 32 | 1ul)": 1,
    "as_type<half>(bfloat(1.0f)) == 0x1.ep0h": 1,
    "as_type<float4>(uint4(0x3f800000u)).z": 1,
    # Vectors: constructors, swizzles, comparisons as 1 and 0.
    "float4(float2(5, 6), 7, 8).y": 6,
    "float4(2.5).z": 2.5,
    "float4(int4(1, 2, 3, 4)).w": 4,
    "float4(1, 2, 3, 4).wzyx.x": 4,
    "float4(1, 2, 3, 4).rgba.g": 2,
    "half4(float4(1, 2, 3, 4)).z": 3,
    "bfloat4(1, 2, 3, 4)[2]": 3,
    "(bfloat2(1, 2) + bfloat2(3, 4)).y": 6,
    "(bfloat2(1, 2) * bfloat(3)).y": 6,
    "float2(bfloat2(1, 2)).y": 2,
    "as_type<ushort>(bfloat(1.0f) * bfloat(2.0f)) == 0x4000": 1,
    "bfloat(3) * bfloat(2) + 1": 7,
    "1 - bfloat(3) * bfloat(2)": -5,
    "-(bfloat(3) * bfloat(2)) + bfloat(1)": -5,
    "float(bfloat(3) * 2) + float(max(bfloat(3) * bfloat(2), bfloat(1)))": 12,
    "(bfloat(3) * bfloat(2) > bfloat(5)) + (bfloat(3) * bfloat(2) == 6)": 2,
    "int4(float4(1, 2, 3, 4) > float4(2.5)).w": 1,
    "float2(float2(1, 2) == float2(1)).x": 1,
    "(!bool2(true, false)).y": 1,
    "(bool2(true, false) && bool2(true)).x": 1,
    "int(bool4(int4(0, 5, 0, 1)).y)": 1,
    "(float3(packed_float3(1, 2, 3)) * packed_float3(2)).z": 6,
    "(packed_int4(1, 2, 3, 4) + packed_int4(1)).w": 5,
    "packed_uchar3(1, 2, 300)[2]": 44,
    "(float2x2(1, 2, 3, 4) * float2(1, 2)).x": 7,
    "(float2(1, 2) * float2x2(1, 2, 3, 4)).x": 5,
    "(float2x2(1, 2, 3, 4) * float2x2(2.0f))[1][0]": 6,
    "float2x2(float2(1, 2), float2(3, 4))[1].y": 4,
    "(float3x2(1, 2, 3, 4, 5, 6) == float3x2(1, 2, 3, 4, 5, 6)) + (half2x2(half(1)) != half2x2(half(2)))": 2,
    "complex64_t(1, 2).imag + (complex64_t(1, 2) * complex64_t(3, 4)).real": -3,
    "array<int, 3>{{1, 2, 3}}[2] + array<int, 3>{}.size()": 6,
    "numeric_limits<float>::max() == FLT_MAX": 1,
    "numeric_limits<half>::epsilon() == 0x1p-10h": 1,
    "numeric_limits<int>::lowest() == INT_MIN": 1,
    "is_same_v<float16_t, half> + is_floating_point_v<bfloat> + is_integral_v<float>": 2,
    "sizeof(conditional_t<true, char, int>) + sizeof(make_unsigned_t<short>) + sizeof(remove_const_t<const int>)": 7,
    "Limits<int>::max == INT_MAX": 1,
}


def quads(x: Sequence[int], of: Callable[[Sequence[int]], int]) -> list[int]:
    return [of(x[i // 4 * 4 : i // 4 * 4 + 4]) for i in range(32)]


def _prefix(x: Sequence[int], inclusive: bool, product: bool, width: int = 32) -> list[int]:
    combine = math.prod if product else sum
    return [combine(x[i // width * width : i + inclusive]) % 2**32 for i in range(32)]


def _xor(x: Sequence[int]) -> int:
    out = 0
    for v in x:
        out ^= v
    return out


def _and(x: Sequence[int]) -> int:
    out = 2**32 - 1
    for v in x:
        out &= v
    return out


def _or(x: Sequence[int]) -> int:
    out = 0
    for v in x:
        out |= v
    return out


def _all(one: Callable[[Sequence[int]], int]) -> Callable[[Sequence[int]], list[int]]:
    return lambda x: [one(x) % 2**32] * 32


def _four(one: Callable[[Sequence[int]], int]) -> Callable[[Sequence[int]], list[int]]:
    return lambda x: [v % 2**32 for v in quads(x, one)]


def _from(lane: Callable[[int], int]) -> Callable[[Sequence[int]], list[int]]:
    return lambda x: [x[lane(i)] for i in range(32)]


# Expression over a lane's value v (uint) and its number i -> the 32 lanes' results.
LANES: dict[str, Callable[[Sequence[int]], list[int]]] = {
    "simd_sum(v)": _all(sum),
    "simd_product(v)": _all(math.prod),
    "simd_max(v)": _all(max),
    "simd_min(v)": _all(min),
    "simd_and(v)": _all(_and),
    "simd_or(v)": _all(_or),
    "simd_xor(v)": _all(_xor),
    "simd_sum(uint2(v, 1)).y": _all(len),
    "uint(simd_sum(bfloat(2) * bfloat(3)))": _all(lambda x: 192),
    "uint(simd_shuffle_xor(bfloat(float(i)) * bfloat(2), 1))": lambda x: [2 * (i ^ 1) for i in range(32)],
    "uint(quad_broadcast_first(bfloat(float(i)) * bfloat(2)))": lambda x: [i // 4 * 8 for i in range(32)],
    "simd_sum(v > 0)": _all(lambda x: sum(v > 0 for v in x)),
    "quad_sum(v)": _four(sum),
    "quad_product(v)": _four(math.prod),
    "quad_max(v)": _four(max),
    "quad_min(v)": _four(min),
    "quad_and(v)": _four(_and),
    "quad_or(v)": _four(_or),
    "quad_xor(v)": _four(_xor),
    "simd_prefix_inclusive_sum(v)": lambda x: _prefix(x, True, False),
    "simd_prefix_exclusive_sum(v)": lambda x: _prefix(x, False, False),
    "simd_prefix_inclusive_product(v)": lambda x: _prefix(x, True, True),
    "simd_prefix_exclusive_product(v)": lambda x: _prefix(x, False, True),
    "quad_prefix_inclusive_sum(v)": lambda x: _prefix(x, True, False, 4),
    "quad_prefix_exclusive_sum(v)": lambda x: _prefix(x, False, False, 4),
    "quad_prefix_inclusive_product(v)": lambda x: _prefix(x, True, True, 4),
    "quad_prefix_exclusive_product(v)": lambda x: _prefix(x, False, True, 4),
    "simd_broadcast(v, 5)": _from(lambda i: 5),
    "simd_broadcast_first(v)": _from(lambda i: 0),
    "simd_shuffle(v, (i * 7) % 32)": _from(lambda i: i * 7 % 32),
    "simd_shuffle_down(v, 3)": _from(lambda i: i + 3 if i < 29 else i),
    "simd_shuffle_up(v, 3)": _from(lambda i: i - 3 if i > 2 else i),
    "simd_shuffle_xor(v, 9)": _from(lambda i: i ^ 9),
    "simd_shuffle_rotate_down(v, 3)": _from(lambda i: (i + 3) % 32),
    "simd_shuffle_rotate_up(v, 3)": _from(lambda i: (i - 3) % 32),
    "simd_shuffle_and_fill_down(v, 7u, 3)": lambda x: [*x[3:], 7, 7, 7],
    "simd_shuffle_and_fill_up(v, 7u, 3)": lambda x: [7, 7, 7, *x[:-3]],
    "quad_broadcast(v, 2)": _from(lambda i: i // 4 * 4 + 2),
    "quad_broadcast_first(v)": _from(lambda i: i // 4 * 4),
    "quad_shuffle(v, 3)": _from(lambda i: i // 4 * 4 + 3),
    "quad_shuffle_down(v, 1)": _from(lambda i: i + 1 if i % 4 < 3 else i),
    "quad_shuffle_up(v, 1)": _from(lambda i: i - 1 if i % 4 else i),
    "quad_shuffle_xor(v, 3)": _from(lambda i: i ^ 3),
    "quad_shuffle_rotate_down(v, 1)": _from(lambda i: i // 4 * 4 + (i + 1) % 4),
    "quad_shuffle_rotate_up(v, 1)": _from(lambda i: i // 4 * 4 + (i - 1) % 4),
    "quad_shuffle_and_fill_down(v, 7u, 1)": lambda x: [x[i + 1] if i % 4 < 3 else 7 for i in range(32)],
    "quad_shuffle_and_fill_up(v, 7u, 1)": lambda x: [x[i - 1] if i % 4 else 7 for i in range(32)],
    "simd_all(v < 1000000u)": _all(lambda x: all(v < 1000000 for v in x)),
    "simd_any(i == 31)": _all(lambda x: 1),
    "uint(ulong(simd_ballot(i < 5)))": _all(lambda x: 31),
    "uint(ulong(simd_active_threads_mask()))": _all(lambda x: 2**32 - 1),
    "simd_is_first()": lambda x: [1, *[0] * 31],
    "quad_all(i % 4 < 3)": _four(lambda x: 0),
    "quad_any(i == 6)": lambda x: [int(4 <= i < 8) for i in range(32)],
    "uint(ulong(quad_ballot(i % 4 == 2)))": _four(lambda x: 4),
    "uint(ulong(quad_active_threads_mask()))": _four(lambda x: 15),
    "quad_is_first()": lambda x: [int(i % 4 == 0) for i in range(32)],
}
