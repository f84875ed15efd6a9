// Exact half-precision fma. Through f32 it would round twice: fma(3, 683/2048, 2^-24) is 0x3c01, not 0x3c00. The product of
// two halves is exact in a double; the sum is rounded to odd there, so that the rounding to half is the only one.
typedef unsigned short u16;
typedef unsigned long u64;

static double widen(u16 h) { return static_cast<double>(__builtin_bit_cast(_Float16, h)); }

static u16 fma(u16 a, u16 b, u16 c) {
#pragma clang fp contract(off)
  const double product = widen(a) * widen(b), addend = widen(c);
  double sum = product + addend;
  const double back = sum - product;
  const double lost = (product - (sum - back)) + (addend - back);
  u64 bits = __builtin_bit_cast(u64, sum);
  if (lost != 0.0 && lost == lost && !(bits & 1)) {
    // Toward the lost part: an odd neighbour on its side.
    bits += ((lost > 0.0) == (sum > 0.0)) ? 1 : -1ul;
  }
  // To f32's precision in the same way, since f16 converts from f32 alone.
  constexpr u64 below = (1ul << 29) - 1;
  if (sum == sum && (bits & below)) bits = (bits | (1ul << 29)) & ~below;
  const float narrow = static_cast<float>(__builtin_bit_cast(double, bits));
  return __builtin_bit_cast(u16, static_cast<_Float16>(narrow));
}

// Two names, so that a kernel that names one of them keeps its own declaration.
extern "C" u16 assay_fma_half(u16 a, u16 b, u16 c) { return fma(a, b, c); }
extern "C" u16 assay_fmuladd_half(u16 a, u16 b, u16 c) { return fma(a, b, c); }
