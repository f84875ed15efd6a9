// What the stages share. A score is one element of `logits - lse`, rounded to the logits' dtype: scores decide, since
// rounding makes ties that the logits do not have.
//
// Readers share a row chunk by chunk, a chunk being the 16 bytes that one load takes: reader r of R has the chunks r,
// r + R, r + 2 R and so on. Each knows the greatest of its logits alone.
constant constexpr uint NONE = 0xffffffffu;

// Which NaN score wins: none, the first, or none but one at id 0.
constant constexpr int NAN_SKIPPED = 0;
constant constexpr int NAN_FIRST = 1;
constant constexpr int NAN_LEADING = 2;

template <typename T>
inline float score(T logit, T lse) {
  return float(T(logit - lse));
}

// One of the logits in the 16 bytes of a chunk.
template <typename T>
struct Chunk {
  static float at(uint4 words, uint e) { return float(as_type<T>(ushort(words[e / 2] >> (e % 2 * 16)))); }
};
template <>
struct Chunk<float> {
  static float at(uint4 words, uint e) { return as_type<float>(words[e]); }
};

// The 16 bytes of a chunk; inputs of fewer than eight elements are constant.
template <typename T>
inline uint4 chunk_at(const device T* place) {
  return *(const device uint4*)place;
}
template <typename T>
inline uint4 chunk_at(const constant T* place) {
  return *(const constant uint4*)place;
}
struct Sum {
  float maximum;
  float sum;
};

// MLX's online sum of exponentials: one chunk more.
template <uint count>
inline void add(thread Sum& own, thread const float* values) {
  const float before = own.maximum;
#pragma unroll
  for (uint e = 0; e < count; ++e) own.maximum = own.maximum < values[e] ? values[e] : own.maximum;
  own.sum = fma(own.sum, fast::exp(before - own.maximum), fast::exp(values[0] - own.maximum));
#pragma unroll
  for (uint e = 1; e < count; ++e) own.sum = own.sum + fast::exp(values[e] - own.maximum);
}

// Every lane's sum, as cooperative groups add a warp: over distances 16, 8, 4, 2, 1.
inline float added(float value) {
#pragma unroll
  for (ushort distance = 16; distance > 0; distance /= 2) value = value + simd_shuffle_xor(value, distance);
  return value;
}
inline float greater(float value) {
#pragma unroll
  for (ushort distance = 16; distance > 0; distance /= 2) {
    const float other = simd_shuffle_xor(value, distance);
    value = value < other ? other : value;
  }
  return value;
}
inline uint lesser(uint value) {
#pragma unroll
  for (ushort distance = 16; distance > 0; distance /= 2) value = min(value, simd_shuffle_xor(value, distance));
  return value;
}
