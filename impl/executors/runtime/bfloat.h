// bfloat: stored in 16 bits, computed in f32, rounded to nearest even after each operation. A float becomes a bfloat only
// by an explicit conversion, as in Metal, so that `bit ? x : -INFINITY` does not compile for it. A product and a sum in one
// expression are rounded once, as Apple's compiler has it (llvm.fmuladd.bf16), unless ASSAY_CONTRACT is 0.
#pragma once

#include "types.h"

#ifndef ASSAY_CONTRACT
#define ASSAY_CONTRACT 1
#endif

#ifdef ASSAY_COUNTED
extern "C" __attribute__((const)) ushort assay_narrow(float);
#endif

namespace assay {

// Rounds the magnitude of an integer to odd at f32's precision, so that the second rounding (to bfloat) is the only one.
template <class I>
METAL_FUNC constexpr float round_to_odd(I value) {
  const bool negative = value < I(0);
  ulong m = negative ? ulong(0) - ulong(value) : ulong(value);
  const int bits = m ? 64 - __builtin_clzl(m) : 0;
  if (bits > 24) {
    const int drop = bits - 24;
    const ulong lost = m & ((1ul << drop) - 1);
    m = ((m >> drop) | ulong(lost != 0)) << drop;
  }
  const float f = float(m);
  return negative ? -f : f;
}

METAL_FUNC constexpr ushort bfloat_bits(float f) {
#ifdef ASSAY_COUNTED
  // One instruction of a GPU that has bfloats; of a constant, none.
  if (!__builtin_constant_p(f)) return assay_narrow(f);
#endif
  const uint u = __builtin_bit_cast(uint, f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return ushort((u >> 16) | 0x40u);
  return ushort((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

}  // namespace assay

struct bfloat {
  ushort bits;

  bfloat() = default;
  constexpr bfloat(const bfloat&) = default;
  template <class B, class = metal::enable_if_t<metal::is_same_v<B, bfloat>>>
  constexpr bfloat(const __constant B& other) : bits(other.bits) {}
  template <class B, class = metal::enable_if_t<metal::is_same_v<B, bfloat>>>
  constexpr bfloat(const __constant B& other) __constant : bits(other.bits) {}
  bfloat& operator=(const bfloat&) = default;
  template <class B, class = metal::enable_if_t<metal::is_same_v<B, bfloat>>>
  bfloat& operator=(const __constant B& other) {
    bits = other.bits;
    return *this;
  }

  constexpr explicit bfloat(float f) : bits(assay::bfloat_bits(f)) {}
  constexpr explicit bfloat(half h) : bits(assay::bfloat_bits(float(h))) {}
  template <class I, class = metal::enable_if_t<__is_integral(I)>>
  constexpr bfloat(I i) : bits(assay::bfloat_bits(assay::round_to_odd(i))) {}

  // To float alone: a second implicit conversion would turn `c ? x : 0` into an int.
  template <class F, class = metal::enable_if_t<metal::is_same_v<F, float>>>
  constexpr operator F() const {
    return __builtin_bit_cast(float, uint(bits) << 16);
  }
  template <class F, class = metal::enable_if_t<metal::is_same_v<F, float>>, class = void>
  constexpr operator F() const __constant {
    return __builtin_bit_cast(float, uint(bits) << 16);
  }
  template <class A, class = metal::enable_if_t<__is_integral(A) || metal::is_same_v<A, half>>, class = void,
            class = void>
  constexpr explicit operator A() const {
    return static_cast<A>(__builtin_bit_cast(float, uint(bits) << 16));
  }
  template <class A, class = metal::enable_if_t<__is_integral(A) || metal::is_same_v<A, half>>, class = void,
            class = void>
  constexpr explicit operator A() const __constant {
    return static_cast<A>(__builtin_bit_cast(float, uint(bits) << 16));
  }

  constexpr bfloat operator-() const { return from_bits(ushort(bits ^ 0x8000u)); }
  constexpr bfloat operator+() const { return *this; }

  static constexpr bfloat from_bits(ushort b) {
    bfloat r = bfloat(0.0f);
    r.bits = b;
    return r;
  }
};

static_assert(sizeof(bfloat) == 2, "a bfloat has 16 bits");

namespace metal {
template <>
constexpr __constant bool is_floating_point_v<bfloat> = true;
}

namespace assay {

// A copy that has left its address space: clang's `c ? x : y` refuses two of one class in different spaces.
template <class T>
METAL_FUNC constexpr T value(T x) {
  return x;
}

}  // namespace assay

namespace assay {

// What a product of bfloats is until it is used: a bfloat, and the product itself, which f32 holds exactly. A sum sees the
// latter where the product is a part of its own expression, and not where it has been given a name.
struct bfloat_product : bfloat {
  float exact;
  constexpr explicit bfloat_product(float product) : bfloat(product), exact(product) {}
};

#if ASSAY_CONTRACT
typedef bfloat_product product_of_bfloats;
#else
typedef bfloat product_of_bfloats;
#endif

}  // namespace assay

template <class To>
METAL_FUNC constexpr To as_type(assay::bfloat_product product) {
  return as_type<To>(bfloat(product));
}

#define ASSAY_BFLOAT_ASSIGNMENT(op, space) \
  METAL_FUNC space bfloat& operator op##=(space bfloat & a, bfloat b) { \
    a = a op b; \
    return a; \
  }
// With a float, a bfloat is one: the operation is the language's own, which clang contracts as any other.
#define ASSAY_BFLOAT_OPERATOR(op, Result) \
  METAL_FUNC constexpr Result operator op(bfloat a, bfloat b) { return Result(float(a) op float(b)); } \
  template <class I, class = metal::enable_if_t<__is_integral(I)>> \
  METAL_FUNC constexpr Result operator op(bfloat a, I b) { \
    return Result(float(a) op float(bfloat(b))); \
  } \
  template <class I, class = metal::enable_if_t<__is_integral(I)>> \
  METAL_FUNC constexpr Result operator op(I a, bfloat b) { \
    return Result(float(bfloat(a)) op float(b)); \
  } \
  ASSAY_BFLOAT_ASSIGNMENT(op, __private) \
  ASSAY_BFLOAT_ASSIGNMENT(op, __global) \
  ASSAY_BFLOAT_ASSIGNMENT(op, __local) \
  ASSAY_BFLOAT_ASSIGNMENT(op, __generic)
ASSAY_BFLOAT_OPERATOR(+, bfloat)
ASSAY_BFLOAT_OPERATOR(-, bfloat)
ASSAY_BFLOAT_OPERATOR(*, assay::product_of_bfloats)
ASSAY_BFLOAT_OPERATOR(/, bfloat)
#undef ASSAY_BFLOAT_OPERATOR

#if ASSAY_CONTRACT
METAL_FUNC constexpr assay::bfloat_product operator-(assay::bfloat_product&& a) {
  return assay::bfloat_product(-a.exact);
}
#define ASSAY_BFLOAT_FUSED(op) \
  METAL_FUNC constexpr bfloat operator op(assay::bfloat_product&& a, bfloat b) { return bfloat(a.exact op float(b)); } \
  METAL_FUNC constexpr bfloat operator op(bfloat a, assay::bfloat_product&& b) { return bfloat(float(a) op b.exact); } \
  template <class I, class = metal::enable_if_t<__is_integral(I)>> \
  METAL_FUNC constexpr bfloat operator op(assay::bfloat_product&& a, I b) { \
    return bfloat(a.exact op float(bfloat(b))); \
  } \
  template <class I, class = metal::enable_if_t<__is_integral(I)>> \
  METAL_FUNC constexpr bfloat operator op(I a, assay::bfloat_product&& b) { \
    return bfloat(float(bfloat(a)) op b.exact); \
  } \
  METAL_FUNC constexpr bfloat operator op(assay::bfloat_product&& a, assay::bfloat_product&& b) { \
    return bfloat(a.exact op float(b)); \
  } \
  ASSAY_BFLOAT_FUSED_ASSIGNMENT(op, __private) \
  ASSAY_BFLOAT_FUSED_ASSIGNMENT(op, __global) \
  ASSAY_BFLOAT_FUSED_ASSIGNMENT(op, __local) \
  ASSAY_BFLOAT_FUSED_ASSIGNMENT(op, __generic)
#define ASSAY_BFLOAT_FUSED_ASSIGNMENT(op, space) \
  METAL_FUNC space bfloat& operator op##=(space bfloat & a, assay::bfloat_product&& b) { \
    a = bfloat(float(a) op b.exact); \
    return a; \
  }
ASSAY_BFLOAT_FUSED(+)
ASSAY_BFLOAT_FUSED(-)
#undef ASSAY_BFLOAT_FUSED
#undef ASSAY_BFLOAT_FUSED_ASSIGNMENT
#endif

#define ASSAY_BFLOAT_COMPARISON(op) \
  METAL_FUNC constexpr bool operator op(bfloat a, bfloat b) { return float(a) op float(b); } \
  METAL_FUNC constexpr bool operator op(bfloat a, float b) { return float(a) op b; } \
  METAL_FUNC constexpr bool operator op(float a, bfloat b) { return a op float(b); } \
  template <class I, class = metal::enable_if_t<__is_integral(I)>> \
  METAL_FUNC constexpr bool operator op(bfloat a, I b) { \
    return float(a) op float(bfloat(b)); \
  } \
  template <class I, class = metal::enable_if_t<__is_integral(I)>> \
  METAL_FUNC constexpr bool operator op(I a, bfloat b) { \
    return float(bfloat(a)) op float(b); \
  }
ASSAY_BFLOAT_COMPARISON(<)
ASSAY_BFLOAT_COMPARISON(>)
ASSAY_BFLOAT_COMPARISON(<=)
ASSAY_BFLOAT_COMPARISON(>=)
ASSAY_BFLOAT_COMPARISON(==)
ASSAY_BFLOAT_COMPARISON(!=)
#undef ASSAY_BFLOAT_COMPARISON
