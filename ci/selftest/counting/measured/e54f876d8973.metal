// The 1MAD code of QTIP: a state's four mixed bytes are summed, and the sum, less 510, is scaled to unit variance.
constant constexpr float TRELLIS_DIVISOR = 147.800537109375f;
// 1 / TRELLIS_DIVISOR in float, written out: a compiler's own division need not round so.
constant constexpr float TRELLIS_RECIPROCAL = 0.0067658754996955395f;

// Bytes 0 and 2, and bytes 1 and 3, are added in halves of one word.
inline int trellis_sum(uint state) {
  const uint mixed = state * 34038481u + 76625530u;
  const uint pairs = (mixed & 0x00ff00ffu) + ((mixed >> 8) & 0x00ff00ffu);
  return int((pairs & 0xffffu) + (pairs >> 16)) - 510;
}

inline float trellis_precise(int sum) { return metal::precise::divide(float(sum), TRELLIS_DIVISOR); }

// One residual step makes the product correctly rounded for every sum.
inline float trellis_refined(int sum) {
  const float y = float(sum);
  const float quotient = y * TRELLIS_RECIPROCAL;
  const float residual = metal::fma(-quotient, TRELLIS_DIVISOR, y);
  return metal::fma(residual, TRELLIS_RECIPROCAL, quotient);
}

inline float trellis_unrefined(int sum) { return float(sum) * TRELLIS_RECIPROCAL; }

// The sum as a float without a conversion: from 2^23 on floats are whole numbers one apart, so that sum + 510 in the
// mantissa of 2^23, less 2^23 + 510, is exact. Its zero is +0.
inline float trellis_integer(int sum) { return as_type<float>(0x4b000000u | uint(sum + 510)) - 8389118.0f; }

inline float trellis_bits(int sum) { return trellis_integer(sum) * TRELLIS_RECIPROCAL; }

// To bfloat16, nearest even, kept as a float. Infinities stay; code values times scales that are NaN stay NaN.
inline float trellis_bf16(float value) {
  const uint bits = as_type<uint>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return value;
  return as_type<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

constant constexpr int TRELLIS_PRECISE = 0;
constant constexpr int TRELLIS_REFINED = 1;
constant constexpr int TRELLIS_UNREFINED = 2;
constant constexpr int TRELLIS_INTEGER = 3;
constant constexpr int TRELLIS_BITS = 4;
constant constexpr int TRELLIS_STATE = 5;
constant constexpr int TRELLIS_LUT_THREADGROUP = 6;
constant constexpr int TRELLIS_LUT_DEVICE = 7;

template <int FORM>
inline float trellis_value(int sum) {
  switch (FORM) {
    case TRELLIS_PRECISE: return trellis_precise(sum);
    case TRELLIS_REFINED: return trellis_refined(sum);
    case TRELLIS_INTEGER: return trellis_integer(sum);
    case TRELLIS_BITS: return trellis_bits(sum);
    default: return trellis_unrefined(sum);
  }
}
