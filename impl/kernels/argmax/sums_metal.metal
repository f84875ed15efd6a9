// What a reader keeps for the logsumexp of MLX's Metal kernel logsumexp_looped, of rows of more than 4,096 logits: the same
// as for CUDA, in chunks of four, each product and sum rounded apart, and simdgroups added by simd_sum.
template <typename T>
constexpr constant uint CHUNK = 4;

struct Reader {
  float maximum;
  float sum;
};

inline Reader begun() {
  return {-FLT_MAX, 0.0f};
}

template <uint count, typename T>
inline void take(thread Reader& own, thread const T* logits) {
  const float before = own.maximum;
#pragma unroll
  for (uint e = 0; e < count; ++e) own.maximum = own.maximum < float(logits[e]) ? float(logits[e]) : own.maximum;
  own.sum *= fast::exp(before - own.maximum);
#pragma unroll
  for (uint e = 0; e < count; ++e) own.sum += fast::exp(float(logits[e]) - own.maximum);
}

inline float summed(float value) {
  return simd_sum(value);
}
