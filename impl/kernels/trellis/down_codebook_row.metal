// What a lane of the codebook kernel does with one input row.

template <uint LOADED>
inline void trellis_load(thread uint* loaded, const device uint* row, thread const uint* index) {
#pragma clang loop unroll(full)
  for (uint i = 0; i < LOADED; ++i) loaded[i] = row[index[i]];
}

// Adds the codes of the lane's positions, times scale, times x. The last position has the lowest bits, so that position i
// reads a window at bit i * K of the loaded words, once those are shifted to begin with the lane's first bit.
template <int K, int L, int POSITIONS, bool FACTORED, bool BYTE_OFFSET>
inline void trellis_accumulate(
    thread float* sums, thread const uint* loaded, bool shifted, const threadgroup float* codebook, float scale, float x) {
  constexpr uint SHIFT = POSITIONS * K % 32;
  constexpr uint SPANNED = (POSITIONS * K + L - K + 31) / 32;
  uint words[SPANNED];
#pragma clang loop unroll(full)
  for (uint i = 0; i < SPANNED; ++i) {
    words[i] = loaded[i];
    if (SHIFT != 0 && shifted) words[i] = (loaded[i] >> SHIFT) | (loaded[i + 1] << ((32 - SHIFT) % 32));
  }
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
