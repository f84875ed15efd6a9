// Metal's floating-point functions over float, half and their vectors, in the namespaces metal, precise and fast. Halves
// are computed in f32 and rounded once. bfloats are served by MLX's own bf16_math.h, as on Metal.
#pragma once

#include "builtins.h"
#include "vectors.h"

#define ASSAY_FLOAT_1_AS(name, builtin, mode)                                               \
  METAL_FUNC float name(float x) { return __metal_##builtin(x, mode); }                     \
  METAL_FUNC half name(half x) { return half(__metal_##builtin(float(x), mode)); }          \
  template <class V, assay::if_vector<V> = 0>                                               \
  METAL_FUNC V name(V x) {                                                                  \
    V r;                                                                                    \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i]);              \
    return r;                                                                               \
  }
#define ASSAY_FLOAT_2_AS(name, builtin, mode)                                               \
  METAL_FUNC float name(float x, float y) { return __metal_##builtin(x, y, mode); }         \
  METAL_FUNC half name(half x, half y) { return half(__metal_##builtin(float(x), float(y), mode)); } \
  template <class V, assay::if_vector<V> = 0>                                               \
  METAL_FUNC V name(V x, plain<V> y) {                                                      \
    V r;                                                                                    \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i], y[i]);        \
    return r;                                                                               \
  }                                                                                         \
  template <class V, assay::if_vector<V> = 0>                                               \
  METAL_FUNC V name(assay::element_t<V> x, V y) {                                           \
    return name(V(x), y);                                                                   \
  }

// The namespaces precise and fast hold functions of float alone: a half is widened for them.
#define ASSAY_FLOAT_ONLY_1(name, builtin, mode)                                             \
  METAL_FUNC float name(float x) { return __metal_##builtin(x, mode); }                     \
  ASSAY_ELEMENTWISE_FLOAT_1(name)
#define ASSAY_ELEMENTWISE_FLOAT_1(name)                                                     \
  template <class V, assay::if_float_vector<V> = 0>                                         \
  METAL_FUNC V name(V x) {                                                                  \
    V r;                                                                                    \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i]);              \
    return r;                                                                               \
  }
#define ASSAY_FLOAT_ONLY_2(name, builtin, mode)                                             \
  METAL_FUNC float name(float x, float y) { return __metal_##builtin(x, y, mode); }         \
  ASSAY_ELEMENTWISE_FLOAT_2(name)
#define ASSAY_ELEMENTWISE_FLOAT_2(name)                                                     \
  template <class V, assay::if_float_vector<V> = 0>                                         \
  METAL_FUNC V name(V x, plain<V> y) {                                                      \
    V r;                                                                                    \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i], y[i]);        \
    return r;                                                                               \
  }
#define ASSAY_FLOAT_ONLY_3(name, builtin, mode)                                             \
  METAL_FUNC float name(float x, float y, float z) { return __metal_##builtin(x, y, z); }   \
  ASSAY_ELEMENTWISE_FLOAT_3(name)
#define ASSAY_ELEMENTWISE_FLOAT_3(name)                                                     \
  template <class V, assay::if_float_vector<V> = 0>                                         \
  METAL_FUNC V name(V x, plain<V> y, plain<V> z) {                                          \
    V r;                                                                                    \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i], y[i], z[i]);  \
    return r;                                                                               \
  }
#define ASSAY_THREE_WAYS(n, name, builtin)                                             \
  ASSAY_FLOAT_##n##_AS(name, builtin, __METAL_MAYBE_FAST_MATH__)                       \
  namespace precise { ASSAY_FLOAT_ONLY_##n(name, builtin, __METAL_PRECISE_MATH__) }    \
  namespace fast { ASSAY_FLOAT_ONLY_##n(name, builtin, __METAL_FAST_MATH__) }
#define ASSAY_FLOAT_1(name) ASSAY_THREE_WAYS(1, name, name)
#define ASSAY_FLOAT_2(name) ASSAY_THREE_WAYS(2, name, name)

namespace metal {

ASSAY_FLOAT_1(acos)
ASSAY_FLOAT_1(asin)
ASSAY_FLOAT_1(atan)
ASSAY_FLOAT_1(ceil)
ASSAY_FLOAT_1(cos)
ASSAY_FLOAT_1(cospi)
ASSAY_FLOAT_1(exp)
ASSAY_FLOAT_1(exp2)
ASSAY_FLOAT_1(fabs)
ASSAY_FLOAT_1(floor)
ASSAY_FLOAT_1(fract)
ASSAY_FLOAT_1(log)
ASSAY_FLOAT_1(log10)
ASSAY_FLOAT_1(log2)
ASSAY_FLOAT_1(rint)
ASSAY_FLOAT_1(round)
ASSAY_FLOAT_1(rsqrt)
ASSAY_FLOAT_1(saturate)
ASSAY_FLOAT_1(sign)
ASSAY_FLOAT_1(sin)
ASSAY_FLOAT_1(sinpi)
ASSAY_FLOAT_1(sqrt)
ASSAY_FLOAT_1(trunc)
ASSAY_FLOAT_1(acosh)
ASSAY_FLOAT_1(asinh)
ASSAY_FLOAT_1(atanh)
ASSAY_FLOAT_1(cosh)
ASSAY_FLOAT_1(exp10)
ASSAY_FLOAT_1(sinh)
ASSAY_FLOAT_1(tan)
ASSAY_FLOAT_1(tanh)
ASSAY_FLOAT_1(tanpi)

ASSAY_FLOAT_2(atan2)
ASSAY_FLOAT_2(copysign)
ASSAY_FLOAT_2(fdim)
ASSAY_FLOAT_2(fmax)
ASSAY_FLOAT_2(fmin)
ASSAY_FLOAT_2(fmod)
ASSAY_FLOAT_2(divide)
ASSAY_FLOAT_2(pow)
ASSAY_FLOAT_2(powr)

// Of a half the neighbour is another half.
METAL_FUNC float nextafter(float x, float y) { return nextafterf(x, y); }
METAL_FUNC half nextafter(half x, half y) {
  const float a = float(x), b = float(y);
  if (assay::is_nan(a) || assay::is_nan(b)) return half(NAN);
  if (a == b) return y;
  const ushort u = as_type<ushort>(x);
  if (a == 0.0f) return as_type<half>(ushort(b > 0.0f ? 0x0001 : 0x8001));
  return as_type<half>(ushort((b > a) == (a > 0.0f) ? u + 1 : u - 1));
}

METAL_FUNC float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
METAL_FUNC half fma(half a, half b, half c) {
  return as_type<half>(assay_fma_half(as_type<ushort>(a), as_type<ushort>(b), as_type<ushort>(c)));
}

METAL_FUNC float ldexp(float x, int k) { return ldexpf(x, k); }
METAL_FUNC half ldexp(half x, int k) { return half(ldexpf(float(x), k)); }
template <class V, class K, assay::if_vector<V> = 0, assay::if_vector<K> = 0>
METAL_FUNC V ldexp(V x, K k) {
  V r;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = ldexp(x[i], k[i]);
  return r;
}
METAL_FUNC int ilogb(float x) { return __metal_ilogb(x); }
METAL_FUNC int ilogb(half x) { return __metal_ilogb(float(x)); }
METAL_FUNC float frexp(float x, thread int& exponent) { return __metal_frexp(x, &exponent); }
METAL_FUNC half frexp(half x, thread int& exponent) { return half(__metal_frexp(float(x), &exponent)); }
METAL_FUNC float modf(float x, thread float& whole) {
  whole = __builtin_truncf(x);
  return __builtin_copysignf(__builtin_isinf(x) ? 0.0f : x - whole, x);
}
METAL_FUNC half modf(half x, thread half& whole) {
  whole = half(__builtin_truncf(float(x)));
  return half(__builtin_copysignf(__builtin_isinf(float(x)) ? 0.0f : float(x) - float(whole), float(x)));
}
METAL_FUNC float sincos(float x, thread float& cosine) {
  cosine = cosf(x);
  return sinf(x);
}
METAL_FUNC half sincos(half x, thread half& cosine) {
  cosine = half(cosf(float(x)));
  return half(sinf(float(x)));
}

#define ASSAY_ELEMENTWISE_3(name)                                                                \
  template <class V, assay::if_vector<V> = 0>                                                    \
  METAL_FUNC V name(V x, plain<V> y, plain<V> z) {                                               \
    V r;                                                                                         \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i], y[i], z[i]);       \
    return r;                                                                                    \
  }
#define ASSAY_FLOAT_3_AS(name, builtin, mode)                                                    \
  METAL_FUNC float name(float x, float y, float z) { return __metal_##builtin(x, y, z); }        \
  METAL_FUNC half name(half x, half y, half z) { return half(__metal_##builtin(float(x), float(y), float(z))); } \
  ASSAY_ELEMENTWISE_3(name)
ASSAY_ELEMENTWISE_3(fma)
ASSAY_THREE_WAYS(3, fmax3, fmax3)
ASSAY_THREE_WAYS(3, fmin3, fmin3)
ASSAY_THREE_WAYS(3, fmedian3, fmedian3)

#define ASSAY_BLENDS(T)                                                                          \
  METAL_FUNC T mix(T x, T y, T a) { return x + (y - x) * a; }                                    \
  METAL_FUNC T step(T edge, T x) { return x < edge ? T(0) : T(1); }                              \
  METAL_FUNC T smoothstep(T lo, T hi, T x) {                                                     \
    const T t = saturate((x - lo) / (hi - lo));                                                  \
    return t * t * (T(3) - T(2) * t);                                                            \
  }
ASSAY_BLENDS(float)
ASSAY_BLENDS(half)
#undef ASSAY_BLENDS
ASSAY_ELEMENTWISE_3(mix)
ASSAY_ELEMENTWISE_3(smoothstep)
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V step(V edge, V x) {
  V r;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = step(edge[i], x[i]);
  return r;
}

#define ASSAY_FLOAT_REST                                                                          \
  METAL_FUNC float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }            \
  METAL_FUNC float frexp(float x, thread int& exponent) { return __metal_frexp(x, &exponent); }  \
  METAL_FUNC float ldexp(float x, int k) { return ldexpf(x, k); }                                \
  METAL_FUNC int ilogb(float x) { return __metal_ilogb(x); }                                     \
  METAL_FUNC float nextafter(float x, float y) { return nextafterf(x, y); }                      \
  METAL_FUNC float modf(float x, thread float& whole) { return metal::modf(x, whole); }          \
  METAL_FUNC float sincos(float x, thread float& cosine) { return metal::sincos(x, cosine); }    \
  METAL_FUNC float mix(float x, float y, float a) { return metal::mix(x, y, a); }                \
  METAL_FUNC float step(float edge, float x) { return metal::step(edge, x); }                    \
  METAL_FUNC float smoothstep(float lo, float hi, float x) { return metal::smoothstep(lo, hi, x); } \
  ASSAY_ELEMENTWISE_FLOAT_3(fma)                                                                 \
  ASSAY_ELEMENTWISE_FLOAT_3(mix)                                                                 \
  ASSAY_ELEMENTWISE_FLOAT_3(smoothstep)                                                          \
  ASSAY_ELEMENTWISE_FLOAT_2(step)                                                                \
  ASSAY_FLOAT_ONLY_1(abs, fabs, 0)                                                               \
  ASSAY_FLOAT_ONLY_2(max, fmax, 0)                                                               \
  ASSAY_FLOAT_ONLY_2(min, fmin, 0)                                                               \
  ASSAY_FLOAT_ONLY_3(max3, fmax3, 0)                                                             \
  ASSAY_FLOAT_ONLY_3(min3, fmin3, 0)                                                             \
  ASSAY_FLOAT_ONLY_3(median3, fmedian3, 0)                                                       \
  ASSAY_FLOAT_ONLY_3(clamp, clamp, 0)
namespace precise {
ASSAY_FLOAT_REST
}
namespace fast {
ASSAY_FLOAT_REST
}

}  // namespace metal

#undef ASSAY_FLOAT_1
#undef ASSAY_FLOAT_2
#undef ASSAY_FLOAT_REST
