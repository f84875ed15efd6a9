// The root mean square norm under MLX's names, buffers and order of sums, in a text of this suite's own: each thread adds
// the squares of four neighbours, fused, then its simdgroup's and its threadgroup's partial sums are added.
#include "mlx/backend/metal/kernels/utils.h"

METAL_FUNC float sum_of_group(float mine, threadgroup float* parts, uint lane, uint simdgroup) {
  mine = simd_sum(mine);
  if (simdgroup == 0) parts[lane] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) parts[simdgroup] = mine;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(parts[lane]);
}

template <typename T>
[[kernel]] void rms(
    const device T* x,
    const device T* w,
    device T* out,
    constant float& eps,
    constant uint& size,
    constant uint& w_stride,
    uint row [[threadgroup_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint lsize [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float parts[32];
  x += size_t(row) * size;
  out += size_t(row) * size;
  float squares = 0;
  for (uint first = lid * 4; first < size; first += lsize * 4) {
    for (uint i = first; i < min(first + 4, size); i++) {
      const float value = x[i];
      squares += value * value;
    }
  }
  const float scale = metal::precise::rsqrt(sum_of_group(squares, parts, lane, simdgroup) / size + eps);
  for (uint first = lid * 4; first < size; first += lsize * 4) {
    for (uint i = first; i < min(first + 4, size); i++) {
      out[i] = w[w_stride * i] * static_cast<T>(x[i] * scale);
    }
  }
}

instantiate_kernel("rmsfloat32", rms, float)
instantiate_kernel("rmsfloat16", rms, half)
instantiate_kernel("rmsbfloat16", rms, bfloat16_t)
instantiate_kernel("rms_loopedfloat32", rms, float)
instantiate_kernel("rms_loopedfloat16", rms, half)
instantiate_kernel("rms_loopedbfloat16", rms, bfloat16_t)
