// What a lane of the codebook kernel does with one input row: the codes of its positions, times scale, times x.
//
// words: the lane's bits of the row, aligned to its first. The last position has the lowest bits, so that position i
// reads a window at bit i * K.
template <int K, int L, int POSITIONS, bool FACTORED, bool BYTE_OFFSET>
inline void trellis_accumulate(
    thread float* sums, thread const uint* words, const threadgroup float* codebook, float scale, float x) {
#pragma clang loop unroll(full)
  for (int i = 0; i < POSITIONS; ++i) {
    float code;
    if (BYTE_OFFSET) {
      // The window and the two bits below it, as a byte offset: right only where a load of a float from threadgroup
      // memory ignores the two lowest address bits.
      const uint offset = i == 0 ? trellis_field<L>(words, 0u) << 2 : trellis_field<L + 2>(words, uint(i * K - 2));
      code = *(const threadgroup float*)((const threadgroup uchar*)codebook + offset);
    } else {
      code = codebook[trellis_field<L>(words, uint(i * K))];
    }
    if (FACTORED) {
      sums[i] = metal::fma(code, scale * x, sums[i]);
    } else {
      sums[i] = metal::fma(code * scale, x, sums[i]);
    }
  }
}
