constexpr uint LOGITS = 16 / sizeof(T);
const size_t row = thread_position_in_grid.y;
const auto from = logits + row * vocab;
device T* to = out + row * vocab;
// Chunks are those of the output's addresses: the first of a row may begin before it.
const uint before = size_t(to) % 16 / sizeof(T);
const bool together = size_t(from) % 16 == size_t(to) % 16;
for (uint chunk = thread_position_in_grid.x; chunk * LOGITS < vocab + before; chunk += threads_per_grid.x) {
  const uint end = (chunk + 1) * LOGITS - before;
  if (together && end >= LOGITS && end <= vocab) {
    const uint first = end - LOGITS;
    const uint4 words = chunk_at(from + first);
    // Ids from `first` on, a bit each; they may reach into a second word.
    const uint shift = first % WORD;
    uint allowed = bits[first / WORD] >> shift;
    if (shift + LOGITS > WORD) allowed |= bits[first / WORD + 1] << (WORD - shift);
    *(device uint4*)(to + first) = Chunk<T>::masked_words(words, allowed);
  } else {
    for (uint id = max(end, LOGITS) - LOGITS; id < min(vocab, end); ++id)
      to[id] = masked(from[id], bits[id / WORD] >> id % WORD & 1u);
  }
}
