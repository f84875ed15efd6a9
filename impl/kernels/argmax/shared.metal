// A score is one element of `logits - lse`, rounded to the logits' dtype: scores decide, since rounding makes ties that
// the logits do not have.
//
// The threads of a threadgroup, the readers, share a row chunk by chunk, a chunk being the 16 or 8 bytes that one load
// takes: of R readers reader r has the chunks r, r + R, r + 2 R and so on.
constant constexpr uint NONE = 0xffffffffu;

// Which NaN score wins: none, the first, or none but one at id 0.
constant constexpr int NAN_SKIPPED = 0;
constant constexpr int NAN_FIRST = 1;
constant constexpr int NAN_LEADING = 2;

template <typename T>
inline float score(T logit, T lse) {
  return float(T(logit - lse));
}

// The bytes of a chunk, with zeros behind eight. An input of fewer than eight elements lies in constant memory.
template <uint bytes>
struct Chunk {
  template <typename T>
  static uint4 at(const device T* place) {
    return *(const device uint4*)place;
  }
  template <typename T>
  static uint4 at(const constant T* place) {
    return *(const constant uint4*)place;
  }
};
template <>
struct Chunk<8> {
  template <typename T>
  static uint4 at(const device T* place) {
    return uint4(*(const device uint2*)place, 0, 0);
  }
  template <typename T>
  static uint4 at(const constant T* place) {
    return uint4(*(const constant uint2*)place, 0, 0);
  }
};

template <typename T>
inline T logit_of(uint4 words, uint e) {
  return as_type<T>(ushort(words[e / 2] >> (e % 2 * 16)));
}
template <>
inline float logit_of<float>(uint4 words, uint e) {
  return as_type<float>(words[e]);
}

// The logits of a row from id `first` on, with -inf behind its end; `row` lies in device or constant memory.
template <uint count, typename T, typename Row>
inline void read(Row row, uint first, uint vocab, thread T* logits) {
  constexpr uint BYTES = count * sizeof(T);
  if (size_t(row) % BYTES == 0 && first + count <= vocab) {
    const uint4 words = Chunk<BYTES>::at(row + first);
#pragma unroll
    for (uint e = 0; e < count; ++e) logits[e] = logit_of<T>(words, e);
  } else {
#pragma unroll
    for (uint e = 0; e < count; ++e) {
      const T logit = row[min(first + e, vocab - 1)];
      logits[e] = first + e < vocab ? logit : T(-INFINITY);
    }
  }
}

// The greatest and the least of a simdgroup, for all its lanes.
inline float greatest(float value) {
#pragma clang loop unroll(disable)
  for (ushort distance = 16; distance > 0; distance /= 2) {
    const float other = simd_shuffle_xor(value, distance);
    value = value < other ? other : value;
  }
  return value;
}
inline uint least(uint value) {
#pragma clang loop unroll(disable)
  for (ushort distance = 16; distance > 0; distance /= 2) value = min(value, simd_shuffle_xor(value, distance));
  return value;
}
