// min, max, clamp, select and friends over every scalar, and the integer functions.
#pragma once

#include "geometric.h"

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
ASSAY_ORDER(bool)
#undef ASSAY_ORDER

#define ASSAY_FLOAT_ORDER(T)                                      \
  METAL_FUNC T max(T x, T y) { return fmax(x, y); }               \
  METAL_FUNC T min(T x, T y) { return fmin(x, y); }
ASSAY_FLOAT_ORDER(float)
ASSAY_FLOAT_ORDER(half)
#undef ASSAY_FLOAT_ORDER

#define ASSAY_ELEMENTWISE_2(name)                                                         \
  template <class V, assay::if_vector<V> = 0>                                             \
  METAL_FUNC V name(V x, plain<V> y) {                                                    \
    V r;                                                                                  \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i], y[i]);      \
    return r;                                                                             \
  }                                                                                       \
  template <class V, assay::if_vector<V> = 0>                                             \
  METAL_FUNC V name(assay::element_t<V> x, V y) {                                         \
    return name(V(x), y);                                                                 \
  }
ASSAY_ELEMENTWISE_2(max)
ASSAY_ELEMENTWISE_2(min)

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
#undef ASSAY_TERNARY_ORDER
ASSAY_ELEMENTWISE_3(max3)
ASSAY_ELEMENTWISE_3(min3)
ASSAY_ELEMENTWISE_3(median3)
ASSAY_ELEMENTWISE_3(clamp)

METAL_FUNC float abs(float x) { return fabs(x); }
METAL_FUNC half abs(half x) { return fabs(x); }
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

#define ASSAY_INTEGER(T, U, width, lowest, highest)                                                        \
  METAL_FUNC constexpr T addsat(T x, T y) {                                                                \
    T r = 0;                                                                                               \
    return !__builtin_add_overflow(x, y, &r) ? r : y < T(0) ? T(lowest) : T(highest);                      \
  }                                                                                                        \
  METAL_FUNC constexpr T subsat(T x, T y) {                                                                \
    T r = 0;                                                                                               \
    return !__builtin_sub_overflow(x, y, &r) ? r : T(lowest) == T(0) || y > T(0) ? T(lowest) : T(highest); \
  }                                                                                                        \
  METAL_FUNC constexpr T hadd(T x, T y) { return T((x >> 1) + (y >> 1) + (x & y & T(1))); }                \
  METAL_FUNC constexpr T rhadd(T x, T y) { return T((x >> 1) + (y >> 1) + ((x | y) & T(1))); }             \
  METAL_FUNC constexpr T mulhi(T x, T y) { return T((__int128(x) * __int128(y)) >> width); }               \
  METAL_FUNC constexpr T madhi(T a, T b, T c) { return T(U(mulhi(a, b)) + U(c)); }                         \
  METAL_FUNC constexpr T madsat(T a, T b, T c) {                                                           \
    const __int128 r = __int128(a) * __int128(b) + __int128(c);                                            \
    return r < __int128(T(lowest)) ? T(lowest) : r > __int128(T(highest)) ? T(highest) : T(r);             \
  }                                                                                                        \
  METAL_FUNC constexpr T extract_bits(T x, uint offset, uint bits) {                                       \
    if (bits == 0) return T(0);                                                                            \
    return T(T(U(U(x) << (width - offset - bits))) >> (width - bits));                                     \
  }                                                                                                        \
  METAL_FUNC constexpr T insert_bits(T base, T insert, uint offset, uint bits) {                           \
    const U mask = bits == 0 ? U(0) : U(U(U(~U(0)) >> (width - bits)) << offset);                          \
    return T(U(U(base) & U(~mask)) | U(U(U(insert) << offset) & mask));                                    \
  }
ASSAY_INTEGER(char, uchar, 8, -0x80, 0x7f)
ASSAY_INTEGER(uchar, uchar, 8, 0, 0xff)
ASSAY_INTEGER(short, ushort, 16, -0x8000, 0x7fff)
ASSAY_INTEGER(ushort, ushort, 16, 0, 0xffff)
ASSAY_INTEGER(int, uint, 32, INT_MIN, INT_MAX)
ASSAY_INTEGER(uint, uint, 32, 0, UINT_MAX)
ASSAY_INTEGER(long, ulong, 64, (-0x7fffffffffffffffl - 1), 0x7fffffffffffffffl)
#undef ASSAY_INTEGER
// 64 x 64 bits exceed a signed 128-bit product.
METAL_FUNC constexpr ulong addsat(ulong x, ulong y) { return x + y < x ? ~0ul : x + y; }
METAL_FUNC constexpr ulong subsat(ulong x, ulong y) { return x < y ? 0ul : x - y; }
METAL_FUNC constexpr ulong hadd(ulong x, ulong y) { return (x >> 1) + (y >> 1) + (x & y & 1ul); }
METAL_FUNC constexpr ulong rhadd(ulong x, ulong y) { return (x >> 1) + (y >> 1) + ((x | y) & 1ul); }
METAL_FUNC constexpr ulong mulhi(ulong x, ulong y) { return ulong(((unsigned __int128)(x) * y) >> 64); }
METAL_FUNC constexpr ulong madhi(ulong a, ulong b, ulong c) { return mulhi(a, b) + c; }
METAL_FUNC constexpr ulong madsat(ulong a, ulong b, ulong c) {
  return mulhi(a, b) != 0ul ? ~0ul : addsat(a * b, c);
}
METAL_FUNC constexpr ulong extract_bits(ulong x, uint offset, uint bits) {
  return bits == 0 ? 0ul : (x << (64 - offset - bits)) >> (64 - bits);
}
METAL_FUNC constexpr ulong insert_bits(ulong base, ulong insert, uint offset, uint bits) {
  const ulong mask = bits == 0 ? 0ul : (~0ul >> (64 - bits)) << offset;
  return (base & ~mask) | ((insert << offset) & mask);
}

// The product and the sum wrap at 32 bits; the factors are the low 24 bits, with the sign of bit 23 where signed.
METAL_FUNC constexpr int mul24(int x, int y) { return int(uint(int(uint(x) << 8) >> 8) * uint(int(uint(y) << 8) >> 8)); }
METAL_FUNC constexpr uint mul24(uint x, uint y) { return (x & 0xffffffu) * (y & 0xffffffu); }
METAL_FUNC constexpr int mad24(int x, int y, int z) { return int(uint(mul24(x, y)) + uint(z)); }
METAL_FUNC constexpr uint mad24(uint x, uint y, uint z) { return mul24(x, y) + z; }

#define ASSAY_ELEMENTWISE_1(name)                                                         \
  template <class V, assay::if_vector<V> = 0>                                             \
  METAL_FUNC V name(V x) {                                                                \
    V r;                                                                                  \
    for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = name(x[i]);            \
    return r;                                                                             \
  }
ASSAY_ELEMENTWISE_1(clz)
ASSAY_ELEMENTWISE_1(ctz)
ASSAY_ELEMENTWISE_1(popcount)
ASSAY_ELEMENTWISE_1(reverse_bits)
ASSAY_ELEMENTWISE_2(addsat)
ASSAY_ELEMENTWISE_2(subsat)
ASSAY_ELEMENTWISE_2(hadd)
ASSAY_ELEMENTWISE_2(rhadd)
ASSAY_ELEMENTWISE_2(mulhi)
ASSAY_ELEMENTWISE_2(mul24)
ASSAY_ELEMENTWISE_2(rotate)
ASSAY_ELEMENTWISE_3(madhi)
ASSAY_ELEMENTWISE_3(madsat)
ASSAY_ELEMENTWISE_3(mad24)
template <class V, assay::if_vector<V> = 0>
METAL_FUNC auto absdiff(V x, plain<V> y) {
  vec<decltype(absdiff(x[0], y[0])), assay::vector_traits<V>::size> r;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = absdiff(x[i], y[i]);
  return r;
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V extract_bits(V x, uint offset, uint bits) {
  V r;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = extract_bits(x[i], offset, bits);
  return r;
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V insert_bits(V base, V insert, uint offset, uint bits) {
  V r;
  for (int i = 0; i < assay::vector_traits<V>::size; i++) r[i] = insert_bits(base[i], insert[i], offset, bits);
  return r;
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
