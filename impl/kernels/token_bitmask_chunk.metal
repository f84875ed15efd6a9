// The sum is the contract: it makes NaN of +inf at a rejected id, and +0 of -0 at an allowed one.
template <typename T>
inline T masked(T logit, bool allowed) {
  return logit + T(allowed ? 0.0f : -INFINITY);
}
// The float is the logit, a zero, an infinity or NaN: a bfloat's bits and sixteen more that need no rounding.
template <>
inline bfloat16_t masked<bfloat16_t>(bfloat16_t logit, bool allowed) {
  return as_type<bfloat16_t>(ushort(as_type<uint>(float(logit) + (allowed ? 0.0f : -INFINITY)) >> 16));
}

// The 16 bytes of a chunk. An input of fewer than eight elements lies in constant memory.
template <typename T>
inline uint4 chunk_at(const device T* place) {
  return *(const device uint4*)place;
}
template <typename T>
inline uint4 chunk_at(const constant T* place) {
  return *(const constant uint4*)place;
}

// The sums of a chunk; the lowest bit is its first logit's.
template <typename T>
inline uint4 masked_chunk(uint4 words, uint allowed) {
#pragma unroll
  for (uint w = 0; w < 4; ++w) {
    const T low = masked(as_type<T>(ushort(words[w])), allowed >> (2 * w) & 1u);
    const T high = masked(as_type<T>(ushort(words[w] >> 16)), allowed >> (2 * w + 1) & 1u);
    words[w] = uint(as_type<ushort>(high)) << 16 | as_type<ushort>(low);
  }
  return words;
}
template <>
inline uint4 masked_chunk<float>(uint4 words, uint allowed) {
#pragma unroll
  for (uint w = 0; w < 4; ++w) words[w] = as_type<uint>(masked(as_type<float>(words[w]), allowed >> w & 1u));
  return words;
}
