// What a reader keeps where the logsumexp is made of the same read: the greatest of its logits and the sum of their
// exponentials below it, as the threads of MLX's CUDA kernel have them (mlx/backend/cuda/logsumexp.cu). Its compiler
// fuses the first product and sum; what it rounds apart is apart here.
template <typename T>
constexpr constant uint CHUNK = 16 / sizeof(T);

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
  own.sum = fma(own.sum, fast::exp(before - own.maximum), fast::exp(float(logits[0]) - own.maximum));
#pragma unroll
  for (uint e = 1; e < count; ++e) own.sum = own.sum + fast::exp(float(logits[e]) - own.maximum);
}

// The sum over a simdgroup in the order of CUDA's cooperative groups.
inline float summed(float value) {
#pragma clang loop unroll(disable)
  for (ushort distance = 16; distance > 0; distance /= 2) value = value + simd_shuffle_xor(value, distance);
  return value;
}
