// What a lane of the codebook kernel does with one input row.

// Adds the codes of the lane's positions, times scale, times x. The last position has the lowest bits, so that position i
// has its window at bit i * K. LOOKED_UP of the POSITIONS codes, evenly spread, come from the codebook, the others are
// computed: a GPU's threadgroup memory and its arithmetic then work side by side.
template <int K, int L, int POSITIONS, int LOOKED_UP, bool FACTORED, bool BYTE_OFFSET>
inline void trellis_accumulate(thread float* sums, ulong bits, const threadgroup float* codebook, float scale, float x) {
  const threadgroup uchar* bytes = (const threadgroup uchar*)codebook;
#pragma clang loop unroll(full)
  for (int i = 0; i < POSITIONS; ++i) {
    const uint state = uint(bits >> (i * K)) & ((1u << L) - 1u);
    float code;
    if (BYTE_OFFSET) {
      // The window and the two bits below it, as a byte offset: right only where a load of a float from threadgroup
      // memory ignores the two lowest address bits.
      const uint offset = i == 0 ? state << 2 : uint(bits >> (i * K - 2)) & ((4u << L) - 1u);
      code = *(const threadgroup float*)(bytes + offset);
    } else if ((i + 1) * LOOKED_UP / POSITIONS > i * LOOKED_UP / POSITIONS) {
      code = *(const threadgroup float*)(bytes + 4u * state);
    } else {
      code = FACTORED ? trellis_integer(trellis_sum(state)) : trellis_bits(trellis_sum(state));
    }
    if (FACTORED) {
      sums[i] = metal::fma(code, scale * x, sums[i]);
    } else {
      sums[i] = metal::fma(code * scale, x, sums[i]);
    }
  }
}
