// The `__metal_*` functions under Metal's math: f32 in, f32 out, computed by the C library or an exact instruction, in the
// precise or the fast way. The C library's transcendentals are not a GPU's: claims about them need bounds.
#pragma once

#include "types.h"

#define __METAL_PRECISE_MATH__ 0
#define __METAL_FAST_MATH__ 1
// What the plain names mean: math_mode "safe" is the precise way, "relaxed" and "fast" are the fast one.
#ifndef __METAL_MAYBE_FAST_MATH__
#define __METAL_MAYBE_FAST_MATH__ 0
#endif

#ifdef ASSAY_CUDA
#include "libdevice.h"
#endif

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
float exp10f(float);
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
#ifdef ASSAY_COUNTED
// What is one instruction of a GPU and several of this processor stays one call.
__attribute__((const)) float assay_larger(float, float);
__attribute__((const)) float assay_smaller(float, float);
#endif
#ifndef ASSAY_CUDA
ushort assay_fma_half(ushort, ushort, ushort);
#endif
}
#ifndef ASSAY_CUDA
METAL_FUNC float assay_fast_exp(float x) { return expf(x); }
#endif
#ifdef ASSAY_CUDA
// CUDA's own __expf, but for results below the normals, which are 0.
METAL_FUNC float assay_fast_exp(float x) { return __nvvm_ex2_approx_ftz_f(x * 1.44269502f); }
METAL_FUNC ushort assay_fma_half(ushort a, ushort b, ushort c) {
  return __builtin_bit_cast(ushort, __builtin_elementwise_fma(__builtin_bit_cast(half, a), __builtin_bit_cast(half, b),
                                                              __builtin_bit_cast(half, c)));
}
#endif

#define ASSAY_EXACT(name, ...) \
  METAL_FUNC float __metal_##name(float x, int = 0) { return __VA_ARGS__; }
#define ASSAY_EXACT_2(name, ...) \
  METAL_FUNC float __metal_##name(float x, float y, int = 0) { return __VA_ARGS__; }
#define ASSAY_TWO_WAYS(name, precise_way, fast_way) \
  METAL_FUNC float __metal_##name(float x, int fast = 0) { return fast ? (fast_way) : (precise_way); }
#define ASSAY_TWO_WAYS_2(name, precise_way, fast_way) \
  METAL_FUNC float __metal_##name(float x, float y, int fast = 0) { return fast ? (fast_way) : (precise_way); }

namespace assay {

METAL_FUNC bool is_nan(float x) { return x != x; }

// NaN loses; of two equal values (zeros of both signs) the second stays.
#ifdef ASSAY_COUNTED
METAL_FUNC float larger(float x, float y) { return assay_larger(x, y); }
METAL_FUNC float smaller(float x, float y) { return assay_smaller(x, y); }
#else
METAL_FUNC float larger(float x, float y) { return is_nan(x) ? y : is_nan(y) ? x : x > y ? x : y; }
METAL_FUNC float smaller(float x, float y) { return is_nan(x) ? y : is_nan(y) ? x : x < y ? x : y; }
#endif

METAL_FUNC float fract(float x) {
  if (__builtin_isinf(x)) return 0.0f;
  const float f = x - __builtin_floorf(x);
  return f < 1.0f || is_nan(f) ? f : 0x1.fffffep-1f;
}
METAL_FUNC float sign(float x) { return is_nan(x) ? 0.0f : x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
METAL_FUNC float reduced(float x) { return x - 2.0f * __builtin_rintf(x * 0.5f); }
// The ratio of exponentials that a GPU's fast tanh is: a huge one's reciprocal flushes to 0, and inf over inf is NaN.
METAL_FUNC float fast_tanh(float x) {
  const float e = expf(2.0f * x);
  return (e - 1.0f) * (1.0f / (e + 1.0f));
}

}  // namespace assay

ASSAY_EXACT(ceil, __builtin_ceilf(x))
ASSAY_EXACT(fabs, __builtin_fabsf(x))
ASSAY_EXACT(floor, __builtin_floorf(x))
ASSAY_EXACT(rint, __builtin_rintf(x))
ASSAY_EXACT(round, __builtin_roundf(x))
ASSAY_EXACT(trunc, __builtin_truncf(x))
ASSAY_EXACT(sqrt, __builtin_sqrtf(x))
ASSAY_EXACT(rsqrt, 1.0f / __builtin_sqrtf(x))
ASSAY_EXACT(fract, assay::fract(x))
ASSAY_EXACT(sign, assay::sign(x))
ASSAY_EXACT(saturate, assay::smaller(assay::larger(x, 0.0f), 1.0f))
ASSAY_EXACT_2(fmax, assay::larger(x, y))
ASSAY_EXACT_2(fmin, assay::smaller(x, y))
ASSAY_EXACT_2(copysign, __builtin_copysignf(x, y))
ASSAY_EXACT_2(fmod, fmodf(x, y))
ASSAY_EXACT_2(nextafter, nextafterf(x, y))
ASSAY_EXACT_2(fdim, x > y ? x - y : assay::is_nan(x) || assay::is_nan(y) ? NAN : 0.0f)
ASSAY_TWO_WAYS_2(divide, x / y, x * (1.0f / y))

// The fast ways are those that Metal's specification names (appendix "ULP" tables): a formula over exp2, log2 and the like.
ASSAY_EXACT(acos, acosf(x))
ASSAY_EXACT(asin, asinf(x))
ASSAY_EXACT(atan, atanf(x))
ASSAY_EXACT(cos, cosf(x))
ASSAY_EXACT(sin, sinf(x))
ASSAY_EXACT(exp2, exp2f(x))
ASSAY_EXACT(log, logf(x))
ASSAY_EXACT(log2, log2f(x))
ASSAY_EXACT(log10, log10f(x))
ASSAY_EXACT(cospi, cosf(M_PI_F * assay::reduced(x)))
ASSAY_EXACT(sinpi, sinf(M_PI_F * assay::reduced(x)))
ASSAY_EXACT_2(atan2, atan2f(x, y))
ASSAY_TWO_WAYS(exp, expf(x), assay_fast_exp(x))
ASSAY_TWO_WAYS(acosh, acoshf(x), logf(x + __builtin_sqrtf(x * x - 1.0f)))
ASSAY_TWO_WAYS(asinh, asinhf(x), logf(x + __builtin_sqrtf(x * x + 1.0f)))
ASSAY_TWO_WAYS(atanh, atanhf(x), 0.5f * logf((1.0f + x) / (1.0f - x)))
ASSAY_TWO_WAYS(cosh, coshf(x), 0.5f * (expf(x) + expf(-x)))
ASSAY_TWO_WAYS(sinh, sinhf(x), 0.5f * (expf(x) - expf(-x)))
ASSAY_TWO_WAYS(tanh, tanhf(x), assay::fast_tanh(x))
ASSAY_TWO_WAYS(tan, tanf(x), sinf(x) * (1.0f / cosf(x)))
ASSAY_TWO_WAYS(tanpi, tanf(M_PI_F * assay::reduced(x)), __metal_sinpi(x) * (1.0f / __metal_cospi(x)))
ASSAY_TWO_WAYS(exp10, powf(10.0f, x), exp2f(x * 3.321928094887362f))
ASSAY_TWO_WAYS_2(pow, powf(x, y), exp2f(y * log2f(x)))
ASSAY_TWO_WAYS_2(powr, x < 0.0f ? NAN : powf(x, y), exp2f(y * log2f(x)))

#undef ASSAY_EXACT
#undef ASSAY_EXACT_2
#undef ASSAY_TWO_WAYS
#undef ASSAY_TWO_WAYS_2

METAL_FUNC float __metal_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
METAL_FUNC float __metal_ldexp(float x, int k, int = 0) { return ldexpf(x, k); }
METAL_FUNC float __metal_fmax3(float x, float y, float z, int = 0) { return assay::larger(assay::larger(x, y), z); }
METAL_FUNC float __metal_fmin3(float x, float y, float z, int = 0) { return assay::smaller(assay::smaller(x, y), z); }
METAL_FUNC float __metal_clamp(float x, float lo, float hi) { return assay::smaller(assay::larger(x, lo), hi); }
METAL_FUNC float __metal_fmedian3(float x, float y, float z, int = 0) {
  return assay::larger(assay::smaller(x, y), assay::smaller(assay::larger(x, y), z));
}

// The significand in [0.5, 1) and the exponent of x = significand * 2**exponent; a zero, an infinity and a NaN are their
// own significands with the exponent 0. Denormals count as zero, as everywhere in f32.
METAL_FUNC float __metal_frexp(float x, thread int* exponent) {
  const uint u = __builtin_bit_cast(uint, x), e = (u >> 23) & 0xffu;
  *exponent = e == 0 || e == 255 ? 0 : int(e) - 126;
  if (e == 0) return __builtin_bit_cast(float, u & 0x80000000u);
  return e == 255 ? x : __builtin_bit_cast(float, (u & 0x807fffffu) | 0x3f000000u);
}
METAL_FUNC int __metal_ilogb(float x) {
  const uint e = (__builtin_bit_cast(uint, x) >> 23) & 0xffu;
  return e == 0 ? INT_MIN : e == 255 ? INT_MAX : int(e) - 127;
}
