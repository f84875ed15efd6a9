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
// Windows of a packed block. Bit i of a block is bit i % 32 of word i / 32; position t has its symbol at bit
// (T - 1 - t) * k and its state in the l bits from there on, wrapping at the block's end.
template <typename Words>
inline uint trellis_state(Words words, uint words_per_block, uint t, uint length, uint k, uint l) {
  const uint bit = (length - 1u - t) * k;
  const uint word = bit >> 5, shift = bit & 31u;
  uint window = words[word] >> shift;
  if (shift + l > 32u) window |= words[word + 1u == words_per_block ? 0u : word + 1u] << (32u - shift);
  return window & ((1u << l) - 1u);
}

// From a lane's first bit on, which is bit `shift` of a row's word: all windows that begin in 32 bits, or in 33 less the
// shift where it is a multiple of K.
inline ulong trellis_bits_of(const device uint* codes, ulong row, uint word, uint next, uint shift) {
  return ((ulong(codes[row + next]) << 32) | codes[row + word]) >> shift;
}

// The first word of a block of a row. Interleaved, two blocks stand side by side: [blocks / 2, rows, 2 * words].
inline ulong trellis_block(bool interleaved, ulong row, uint block, ulong rows, uint blocks, uint words_per_block) {
  if (interleaved) return ((block / 2u) * rows + row) * 2ul * words_per_block + (block % 2u) * words_per_block;
  return (row * blocks + block) * words_per_block;
}
