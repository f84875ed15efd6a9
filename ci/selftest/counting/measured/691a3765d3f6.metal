// A reader a thread, of one row: the greatest of its logits, and the sum of exponentials that MLX's CUDA logsumexp has there.
constexpr uint LOGITS = 16 / sizeof(T);
const uint readers = threads_per_grid.x;
const uint reader = thread_position_in_grid.x;
const size_t row = thread_position_in_grid.y;
const auto from = logits + row * vocab;

Sum own = {-FLT_MAX, 0};
uint chunk = reader;
if (size_t(from) % 16 == 0) {
  for (; (chunk + (AHEAD - 1) * readers + 1) * LOGITS <= vocab; chunk += AHEAD * readers) {
    uint4 words[AHEAD];
#pragma unroll
    for (uint a = 0; a < AHEAD; ++a) words[a] = chunk_at(from + (chunk + a * readers) * LOGITS);
#pragma unroll
    for (uint a = 0; a < AHEAD; ++a) {
      float values[LOGITS];
#pragma unroll
      for (uint e = 0; e < LOGITS; ++e) values[e] = Chunk<T>::at(words[a], e);
      add<LOGITS>(own, values);
    }
  }
}
for (; chunk * LOGITS < vocab; chunk += readers) {
  float values[LOGITS];
  const uint at = chunk * LOGITS;
  if (at + LOGITS <= vocab && size_t(from) % 16 == 0) {
    const uint4 words = chunk_at(from + at);
#pragma unroll
    for (uint e = 0; e < LOGITS; ++e) values[e] = Chunk<T>::at(words, e);
  } else {
#pragma unroll
    for (uint e = 0; e < LOGITS; ++e) values[e] = at + e < vocab ? float(from[at + e]) : -INFINITY;
  }
  add<LOGITS>(own, values);
}
sums[(row * readers + reader) * 2] = own.maximum;
sums[(row * readers + reader) * 2 + 1] = own.sum;
