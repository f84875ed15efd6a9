// Metal's floating-point functions. f32 is computed by the C library or an exact instruction; f16 and bfloat are computed
// in f32 and rounded once. The C library's transcendentals are not a GPU's: claims about them need bounds.
#pragma once

#include "vectors.h"

extern "C" {
float acosf(float);
float acoshf(float);
float asinf(float);
float asinhf(float);
float atanf(float);
float atan2f(float, float);
float atanhf(float);
float cosf(float);
float coshf(float);
float expf(float);
float exp2f(float);
float fmodf(float, float);
float ldexpf(float, int);
float logf(float);
float log2f(float);
float log10f(float);
float nextafterf(float, float);
float powf(float, float);
float sinf(float);
float sinhf(float);
float tanf(float);
float tanhf(float);
ushort assay_fma_half(ushort, ushort, ushort);
}

namespace assay {

METAL_FUNC bool is_nan(float x) { return x != x; }

// NaN loses; of two equal values (zeros of both signs) the second stays.
METAL_FUNC float larger(float x, float y) { return is_nan(x) ? y : is_nan(y) ? x : x > y ? x : y; }
METAL_FUNC float smaller(float x, float y) { return is_nan(x) ? y : is_nan(y) ? x : x < y ? x : y; }

METAL_FUNC float exp10(float x) { return powf(10.0f, x); }
METAL_FUNC float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
METAL_FUNC float fract(float x) {
  const float f = x - __builtin_floorf(x);
  return f < 1.0f ? f : 0x1.fffffep-1f;
}
METAL_FUNC float sign(float x) { return is_nan(x) ? 0.0f : x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
METAL_FUNC float reduced(float x) { return x - 2.0f * __builtin_rintf(x * 0.5f); }
METAL_FUNC float sinpi(float x) { return sinf(M_PI_F * reduced(x)); }
METAL_FUNC float cospi(float x) { return cosf(M_PI_F * reduced(x)); }
METAL_FUNC float tanpi(float x) { return tanf(M_PI_F * reduced(x)); }
METAL_FUNC float fdim(float x, float y) { return x > y ? x - y : is_nan(x) || is_nan(y) ? NAN : 0.0f; }
METAL_FUNC float powr(float x, float y) { return x < 0.0f ? NAN : powf(x, y); }
METAL_FUNC float divide(float x, float y) { return x / y; }
METAL_FUNC float copysign(float x, float y) { return __builtin_copysignf(x, y); }
METAL_FUNC float saturate(float x) { return smaller(larger(x, 0.0f), 1.0f); }

// A GPU's fast tanh is a ratio of exponentials: the reciprocal of a huge one flushes to 0, and inf over inf is NaN.
METAL_FUNC float fast_tanh(float x) {
  const float e = expf(2.0f * x);
  return (e - 1.0f) * (1.0f / (e + 1.0f));
}

}  // namespace assay

// One function over float, half, bfloat and the vectors of float and half.
#define ASSAY_FLOAT_1(name, of)                                                             \
  METAL_FUNC float name(float x) { return of(x); }                                          \
  METAL_FUNC half name(half x) { return half(of(float(x))); }                               \
  METAL_FUNC bfloat name(bfloat x) { return bfloat(of(float(x))); }                         \
  template <class V, assay::if_vector<V> = 0>                                               \
  METAL_FUNC V name(V x) {                                                                  \
    V r;                                                                                    \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i]);              \
    return r;                                                                               \
  }
#define ASSAY_FLOAT_2(name, of)                                                             \
  METAL_FUNC float name(float x, float y) { return of(x, y); }                              \
  METAL_FUNC half name(half x, half y) { return half(of(float(x), float(y))); }             \
  METAL_FUNC bfloat name(bfloat x, bfloat y) { return bfloat(of(float(x), float(y))); }     \
  template <class V, assay::if_vector<V> = 0>                                               \
  METAL_FUNC V name(V x, V y) {                                                             \
    V r;                                                                                    \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i], y[i]);        \
    return r;                                                                               \
  }
#define ASSAY_FLOAT_TEST(name, test)                                                        \
  METAL_FUNC constexpr bool name(float x) { return test(as_type<uint>(x)); }                \
  METAL_FUNC constexpr bool name(half x) { return name(float(x)); }                         \
  METAL_FUNC constexpr bool name(bfloat x) { return name(float(x)); }

#define ASSAY_NAN(u) (((u) & 0x7fffffffu) > 0x7f800000u)
#define ASSAY_INF(u) (((u) & 0x7fffffffu) == 0x7f800000u)
#define ASSAY_FINITE(u) (((u) & 0x7f800000u) != 0x7f800000u)
#define ASSAY_NORMAL(u) (ASSAY_FINITE(u) && ((u) & 0x7f800000u) != 0u)
#define ASSAY_SIGN(u) (((u) >> 31) != 0u)

namespace metal {

ASSAY_FLOAT_1(acos, acosf)
ASSAY_FLOAT_1(acosh, acoshf)
ASSAY_FLOAT_1(asin, asinf)
ASSAY_FLOAT_1(asinh, asinhf)
ASSAY_FLOAT_1(atan, atanf)
ASSAY_FLOAT_1(atanh, atanhf)
ASSAY_FLOAT_1(ceil, __builtin_ceilf)
ASSAY_FLOAT_1(cos, cosf)
ASSAY_FLOAT_1(cosh, coshf)
ASSAY_FLOAT_1(cospi, assay::cospi)
ASSAY_FLOAT_1(exp, expf)
ASSAY_FLOAT_1(exp10, assay::exp10)
ASSAY_FLOAT_1(exp2, exp2f)
ASSAY_FLOAT_1(fabs, __builtin_fabsf)
ASSAY_FLOAT_1(floor, __builtin_floorf)
ASSAY_FLOAT_1(fract, assay::fract)
ASSAY_FLOAT_1(log, logf)
ASSAY_FLOAT_1(log10, log10f)
ASSAY_FLOAT_1(log2, log2f)
ASSAY_FLOAT_1(rint, __builtin_rintf)
ASSAY_FLOAT_1(round, __builtin_roundf)
ASSAY_FLOAT_1(rsqrt, assay::rsqrt)
ASSAY_FLOAT_1(saturate, assay::saturate)
ASSAY_FLOAT_1(sign, assay::sign)
ASSAY_FLOAT_1(sin, sinf)
ASSAY_FLOAT_1(sinh, sinhf)
ASSAY_FLOAT_1(sinpi, assay::sinpi)
ASSAY_FLOAT_1(sqrt, __builtin_sqrtf)
ASSAY_FLOAT_1(tan, tanf)
ASSAY_FLOAT_1(tanh, tanhf)
ASSAY_FLOAT_1(tanpi, assay::tanpi)
ASSAY_FLOAT_1(trunc, __builtin_truncf)

ASSAY_FLOAT_2(atan2, atan2f)
ASSAY_FLOAT_2(copysign, assay::copysign)
ASSAY_FLOAT_2(divide, assay::divide)
ASSAY_FLOAT_2(fdim, assay::fdim)
ASSAY_FLOAT_2(fmax, assay::larger)
ASSAY_FLOAT_2(fmin, assay::smaller)
ASSAY_FLOAT_2(fmod, fmodf)
ASSAY_FLOAT_2(pow, powf)
ASSAY_FLOAT_2(powr, assay::powr)

ASSAY_FLOAT_TEST(isnan, ASSAY_NAN)
ASSAY_FLOAT_TEST(isinf, ASSAY_INF)
ASSAY_FLOAT_TEST(isfinite, ASSAY_FINITE)
ASSAY_FLOAT_TEST(isnormal, ASSAY_NORMAL)
ASSAY_FLOAT_TEST(signbit, ASSAY_SIGN)

METAL_FUNC float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
METAL_FUNC half fma(half a, half b, half c) {
  return as_type<half>(assay_fma_half(as_type<ushort>(a), as_type<ushort>(b), as_type<ushort>(c)));
}
METAL_FUNC bfloat fma(bfloat a, bfloat b, bfloat c) { return bfloat(__builtin_fmaf(float(a), float(b), float(c))); }
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V fma(V a, V b, V c) {
  V r;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = fma(a[i], b[i], c[i]);
  return r;
}

METAL_FUNC float ldexp(float x, int k) { return ldexpf(x, k); }
METAL_FUNC half ldexp(half x, int k) { return half(ldexpf(float(x), k)); }
METAL_FUNC bfloat ldexp(bfloat x, int k) { return bfloat(ldexpf(float(x), k)); }
METAL_FUNC float nextafter(float x, float y) { return nextafterf(x, y); }

METAL_FUNC float mix(float x, float y, float a) { return x + (y - x) * a; }
METAL_FUNC half mix(half x, half y, half a) { return x + (y - x) * a; }
METAL_FUNC float step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }
METAL_FUNC float smoothstep(float lo, float hi, float x) {
  const float t = assay::saturate((x - lo) / (hi - lo));
  return t * t * (3.0f - 2.0f * t);
}

template <class V, assay::if_vector<V> = 0>
METAL_FUNC assay::element_t<V> dot(V a, V b) {
  assay::element_t<V> sum = a[0] * b[0];
  for (int i = 1; i < assay::vector_traits<V>::size; i++) sum = a[i] * b[i] + sum;
  return sum;
}

// Both namespaces name the same functions: math_mode is "safe", where the plain names are the precise ones.
namespace precise {
using namespace metal;
}
namespace fast {
using namespace metal;
METAL_FUNC float tanh(float x) { return assay::fast_tanh(x); }
}  // namespace fast

}  // namespace metal
