// Tests of floating-point numbers, and all, any and select over scalars and vectors.
#pragma once

#include "math.h"

#define ASSAY_NAN(u) (((u) & 0x7fffffffu) > 0x7f800000u)
#define ASSAY_INF(u) (((u) & 0x7fffffffu) == 0x7f800000u)
#define ASSAY_FINITE(u) (((u) & 0x7f800000u) != 0x7f800000u)
#define ASSAY_NORMAL(u) (ASSAY_FINITE(u) && ((u) & 0x7f800000u) != 0u)
#define ASSAY_SIGN(u) (((u) >> 31) != 0u)
// A half is tested by its own bits, since its denormals are normal in f32.
#define ASSAY_HALF_NORMAL(u) (((u) & 0x7c00) != 0x7c00 && ((u) & 0x7c00) != 0)

#define ASSAY_FLOAT_TEST(name, test)                                                                   \
  METAL_FUNC constexpr bool name(float x) { return test(as_type<uint>(x)); }                           \
  METAL_FUNC constexpr bool name(bfloat x) { return name(float(x)); }                                  \
  template <class V, assay::if_vector<V> = 0>                                                          \
  METAL_FUNC assay::bool_vector<assay::vector_traits<V>::size> name(V x) {                             \
    assay::bool_vector<assay::vector_traits<V>::size> r;                                               \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i]);                         \
    return r;                                                                                          \
  }

namespace metal {

METAL_FUNC constexpr bool isnan(half x) { return (as_type<ushort>(x) & 0x7fff) > 0x7c00; }
METAL_FUNC constexpr bool isinf(half x) { return (as_type<ushort>(x) & 0x7fff) == 0x7c00; }
METAL_FUNC constexpr bool isfinite(half x) { return (as_type<ushort>(x) & 0x7c00) != 0x7c00; }
METAL_FUNC constexpr bool isnormal(half x) { return ASSAY_HALF_NORMAL(as_type<ushort>(x)); }
METAL_FUNC constexpr bool signbit(half x) { return (as_type<ushort>(x) >> 15) != 0; }
ASSAY_FLOAT_TEST(isnan, ASSAY_NAN)
ASSAY_FLOAT_TEST(isinf, ASSAY_INF)
ASSAY_FLOAT_TEST(isfinite, ASSAY_FINITE)
ASSAY_FLOAT_TEST(isnormal, ASSAY_NORMAL)
ASSAY_FLOAT_TEST(signbit, ASSAY_SIGN)

#define ASSAY_PAIR_TEST(name, ...)                                                                     \
  METAL_FUNC bool name(float x, float y) { return __VA_ARGS__; }                                       \
  METAL_FUNC bool name(half x, half y) { return __VA_ARGS__; }                                         \
  template <class V, assay::if_vector<V> = 0>                                                          \
  METAL_FUNC assay::bool_vector<assay::vector_traits<V>::size> name(V x, plain<V> y) {                 \
    assay::bool_vector<assay::vector_traits<V>::size> r;                                               \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i], y[i]);                   \
    return r;                                                                                          \
  }
ASSAY_PAIR_TEST(isordered, x == x && y == y)
ASSAY_PAIR_TEST(isunordered, x != x || y != y)
#undef ASSAY_PAIR_TEST

METAL_FUNC constexpr bool any(bool c) { return c; }
METAL_FUNC constexpr bool all(bool c) { return c; }
template <class V, assay::if_any_vector<V> = 0>
METAL_FUNC bool any(V v) {
  bool r = false;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r = r || assay::get(v, i) != 0;
  return r;
}
template <class V, assay::if_any_vector<V> = 0>
METAL_FUNC bool all(V v) {
  bool r = true;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r = r && assay::get(v, i) != 0;
  return r;
}

template <class T>
METAL_FUNC constexpr T select(T a, T b, bool c) {
  return c ? b : a;
}
template <class V, class C, assay::if_any_vector<V> = 0, assay::if_any_vector<C> = 0>
METAL_FUNC V select(V a, plain<V> b, C c) {
  static_assert(assay::vector_traits<V>::size == assay::vector_traits<C>::size, "select takes vectors of one size");
  V r = a;
  for (int i = 0; i < assay::vector_traits<V>::size; i++)
    if (assay::get(c, i) != 0) assay::put(r, i, assay::get(b, i));
  return r;
}

}  // namespace metal

#undef ASSAY_FLOAT_TEST
