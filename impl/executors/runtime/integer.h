// min, max, clamp, select and friends over every scalar, and the integer functions.
#pragma once

#include "math.h"

namespace metal {

#define ASSAY_ORDER(T)                                                   \
  METAL_FUNC constexpr T max(T x, T y) { return x > y ? x : y; }         \
  METAL_FUNC constexpr T min(T x, T y) { return x < y ? x : y; }
ASSAY_ORDER(char)
ASSAY_ORDER(signed char)
ASSAY_ORDER(uchar)
ASSAY_ORDER(short)
ASSAY_ORDER(ushort)
ASSAY_ORDER(int)
ASSAY_ORDER(uint)
ASSAY_ORDER(long)
ASSAY_ORDER(ulong)
#undef ASSAY_ORDER

#define ASSAY_FLOAT_ORDER(T)                                      \
  METAL_FUNC T max(T x, T y) { return fmax(x, y); }               \
  METAL_FUNC T min(T x, T y) { return fmin(x, y); }
ASSAY_FLOAT_ORDER(float)
ASSAY_FLOAT_ORDER(half)
ASSAY_FLOAT_ORDER(bfloat)
#undef ASSAY_FLOAT_ORDER

#define ASSAY_ELEMENTWISE_2(name)                                                         \
  template <class V, assay::if_vector<V> = 0>                                             \
  METAL_FUNC V name(V x, V y) {                                                           \
    V r;                                                                                  \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i], y[i]);      \
    return r;                                                                             \
  }
ASSAY_ELEMENTWISE_2(max)
ASSAY_ELEMENTWISE_2(min)
#undef ASSAY_ELEMENTWISE_2

#define ASSAY_TERNARY_ORDER(T)                                                                      \
  METAL_FUNC T max3(T x, T y, T z) { return max(max(x, y), z); }                                    \
  METAL_FUNC T min3(T x, T y, T z) { return min(min(x, y), z); }                                    \
  METAL_FUNC T median3(T x, T y, T z) { return max(min(x, y), min(max(x, y), z)); }                 \
  METAL_FUNC T clamp(T x, T lo, T hi) { return min(max(x, lo), hi); }
ASSAY_TERNARY_ORDER(char)
ASSAY_TERNARY_ORDER(uchar)
ASSAY_TERNARY_ORDER(short)
ASSAY_TERNARY_ORDER(ushort)
ASSAY_TERNARY_ORDER(int)
ASSAY_TERNARY_ORDER(uint)
ASSAY_TERNARY_ORDER(long)
ASSAY_TERNARY_ORDER(ulong)
ASSAY_TERNARY_ORDER(float)
ASSAY_TERNARY_ORDER(half)
ASSAY_TERNARY_ORDER(bfloat)
#undef ASSAY_TERNARY_ORDER
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V clamp(V x, V lo, V hi) {
  return min(max(x, lo), hi);
}

METAL_FUNC float abs(float x) { return fabs(x); }
METAL_FUNC half abs(half x) { return fabs(x); }
METAL_FUNC bfloat abs(bfloat x) { return fabs(x); }
METAL_FUNC constexpr char abs(char x) { return x < 0 ? char(-x) : x; }
METAL_FUNC constexpr short abs(short x) { return x < 0 ? short(-x) : x; }
METAL_FUNC constexpr int abs(int x) { return x < 0 ? int(0u - uint(x)) : x; }
METAL_FUNC constexpr long abs(long x) { return x < 0 ? long(0ul - ulong(x)) : x; }
METAL_FUNC constexpr uchar abs(uchar x) { return x; }
METAL_FUNC constexpr ushort abs(ushort x) { return x; }
METAL_FUNC constexpr uint abs(uint x) { return x; }
METAL_FUNC constexpr ulong abs(ulong x) { return x; }
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V abs(V x) {
  V r;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = abs(x[i]);
  return r;
}

template <class T>
METAL_FUNC T select(T a, T b, bool c) {
  return c ? b : a;
}
template <class V, class C, assay::if_vector<V> = 0, assay::if_vector<C> = 0>
METAL_FUNC V select(V a, V b, C c) {
  V r;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = c[i] ? b[i] : a[i];
  return r;
}
METAL_FUNC constexpr bool any(bool c) { return c; }
METAL_FUNC constexpr bool all(bool c) { return c; }
template <class V, assay::if_vector<V> = 0>
METAL_FUNC bool any(V v) {
  bool r = false;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r = r || v[i] != 0;
  return r;
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC bool all(V v) {
  bool r = true;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r = r && v[i] != 0;
  return r;
}

// Zeros count as the full width, as Metal says.
#define ASSAY_BITS(T, U, width)                                                                        \
  METAL_FUNC constexpr T clz(T x) { return x ? T(__builtin_clzl(ulong(U(x))) - (64 - width)) : T(width); } \
  METAL_FUNC constexpr T ctz(T x) { return x ? T(__builtin_ctzl(ulong(U(x)))) : T(width); }            \
  METAL_FUNC constexpr T popcount(T x) { return T(__builtin_popcountl(ulong(U(x)))); }                 \
  METAL_FUNC constexpr T rotate(T x, T by) {                                                           \
    const uint n = uint(by) % width;                                                                   \
    return n ? T(U(U(x) << n) | U(U(x) >> (width - n))) : x;                                           \
  }                                                                                                    \
  METAL_FUNC constexpr T reverse_bits(T x) {                                                           \
    U r = 0;                                                                                           \
    for (int i = 0; i < width; i++) r = U(r | U(U(U(x) >> i) & U(1)) << (width - 1 - i));              \
    return T(r);                                                                                       \
  }                                                                                                    \
  METAL_FUNC constexpr U absdiff(T x, T y) { return x > y ? U(U(x) - U(y)) : U(U(y) - U(x)); }
ASSAY_BITS(char, uchar, 8)
ASSAY_BITS(uchar, uchar, 8)
ASSAY_BITS(short, ushort, 16)
ASSAY_BITS(ushort, ushort, 16)
ASSAY_BITS(int, uint, 32)
ASSAY_BITS(uint, uint, 32)
ASSAY_BITS(long, ulong, 64)
ASSAY_BITS(ulong, ulong, 64)
#undef ASSAY_BITS

METAL_FUNC constexpr int mulhi(int x, int y) { return int((long(x) * long(y)) >> 32); }
METAL_FUNC constexpr uint mulhi(uint x, uint y) { return uint((ulong(x) * ulong(y)) >> 32); }
METAL_FUNC constexpr int mad24(int x, int y, int z) { return x * y + z; }
METAL_FUNC constexpr uint mad24(uint x, uint y, uint z) { return x * y + z; }
METAL_FUNC constexpr uint extract_bits(uint x, uint offset, uint bits) {
  return bits == 0 ? 0 : (x >> offset) & (bits >= 32 ? ~0u : (1u << bits) - 1u);
}
METAL_FUNC constexpr uint insert_bits(uint base, uint value, uint offset, uint bits) {
  const uint mask = (bits >= 32 ? ~0u : (1u << bits) - 1u) << offset;
  return (base & ~mask) | ((value << offset) & mask);
}

template <class T>
struct numeric_limits;
#define ASSAY_INTEGER_LIMITS(T, lo, hi, n)                   \
  template <>                                                \
  struct numeric_limits<T> {                                 \
    static constexpr T max() { return hi; }                  \
    static constexpr T min() { return lo; }                  \
    static constexpr T lowest() { return lo; }               \
    static constexpr __constant int digits = n;              \
    static constexpr __constant bool is_integer = true;      \
  };
ASSAY_INTEGER_LIMITS(bool, false, true, 1)
ASSAY_INTEGER_LIMITS(char, char(-0x80), 0x7f, 7)
ASSAY_INTEGER_LIMITS(signed char, -0x80, 0x7f, 7)
ASSAY_INTEGER_LIMITS(uchar, 0, 0xff, 8)
ASSAY_INTEGER_LIMITS(short, -0x8000, 0x7fff, 15)
ASSAY_INTEGER_LIMITS(ushort, 0, 0xffff, 16)
ASSAY_INTEGER_LIMITS(int, INT_MIN, INT_MAX, 31)
ASSAY_INTEGER_LIMITS(uint, 0, UINT_MAX, 32)
ASSAY_INTEGER_LIMITS(long, -0x7fffffffffffffffl - 1, 0x7fffffffffffffffl, 63)
ASSAY_INTEGER_LIMITS(ulong, 0, ~0ul, 64)
#undef ASSAY_INTEGER_LIMITS
#define ASSAY_FLOAT_LIMITS(T, big, small, eps, n, inf, nan)  \
  template <>                                                \
  struct numeric_limits<T> {                                 \
    static constexpr T max() { return big; }                 \
    static constexpr T min() { return small; }               \
    static constexpr T lowest() { return -big; }             \
    static constexpr T epsilon() { return eps; }             \
    static constexpr T infinity() { return inf; }            \
    static constexpr T quiet_NaN() { return nan; }           \
    static constexpr __constant int digits = n;              \
    static constexpr __constant bool is_integer = false;     \
  };
ASSAY_FLOAT_LIMITS(float, FLT_MAX, FLT_MIN, FLT_EPSILON, 24, INFINITY, NAN)
ASSAY_FLOAT_LIMITS(half, HALF_MAX, HALF_MIN, 0x1p-10h, 11, half(INFINITY), half(NAN))
ASSAY_FLOAT_LIMITS(bfloat, bfloat::from_bits(0x7f7f), bfloat::from_bits(0x0080), bfloat::from_bits(0x3c00), 8,
                   bfloat::from_bits(0x7f80), bfloat::from_bits(0x7fc0))
#undef ASSAY_FLOAT_LIMITS

}  // namespace metal
