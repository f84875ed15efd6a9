// A thread takes chunks of one row, a chunk being the 16 bytes that one store takes. Chunks are those of the output's
// addresses, so that a row's first may begin before it; elements of an incomplete chunk go one by one.
constexpr uint LOGITS = 16 / sizeof(T);
const uint size = vocab;
const size_t row = thread_position_in_grid.y;
const auto from = logits + row * size;
device T* to = out + row * size;
const uint before = uint(size_t(to) % 16 / sizeof(T));
const bool together = size_t(from) % 16 == size_t(to) % 16;
for (uint start = thread_position_in_grid.x * LOGITS; start < size + before; start += threads_per_grid.x * LOGITS) {
  if (together && start >= before && start + LOGITS <= size + before) {
    // A bit an id, from `first` on; they may reach into a second word.
    const uint first = start - before;
    const uint shift = first % 32;
    uint allowed = bits[first / 32] >> shift;
    if (shift + LOGITS > 32) allowed |= bits[first / 32 + 1] << (32 - shift);
    *(device uint4*)(to + first) = masked_chunk<T>(chunk_at(from + first), allowed);
  } else {
    for (uint place = max(start, before); place < min(start + LOGITS, size + before); ++place) {
      const uint id = place - before;
      to[id] = masked(from[id], bits[id / 32] >> id % 32 & 1u);
    }
  }
}
