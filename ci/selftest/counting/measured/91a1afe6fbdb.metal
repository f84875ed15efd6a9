constexpr uint LOGITS = 16 / sizeof(T);
const uint stride = threads_per_grid.x;
const size_t row = thread_position_in_grid.y;
const auto from = logits + row * vocab;
device T* to = out + row * vocab;
uint chunk = thread_position_in_grid.x;
if (size_t(from) % 16 == 0 && size_t(to) % 16 == 0) {
  for (; (chunk + (AHEAD - 1) * stride + 1) * LOGITS <= vocab; chunk += AHEAD * stride) {
    uint4 words[AHEAD];
    uint allowed[AHEAD];
#pragma unroll
    for (uint a = 0; a < AHEAD; ++a) {
      const uint first = (chunk + a * stride) * LOGITS;
      words[a] = chunk_at(from + first);
      allowed[a] = bits[first / WORD] >> first % WORD;
    }
#pragma unroll
    for (uint a = 0; a < AHEAD; ++a)
      *(device uint4*)(to + (chunk + a * stride) * LOGITS) = Chunk<T>::masked_words(words[a], allowed[a]);
  }
}
for (; chunk * LOGITS < vocab; chunk += stride) {
  for (uint id = chunk * LOGITS; id < min(vocab, (chunk + 1) * LOGITS); ++id)
    to[id] = masked(from[id], bits[id / WORD] >> id % WORD & 1u);
}
