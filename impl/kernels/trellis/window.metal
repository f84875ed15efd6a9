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
