// argmax and argmin under MLX's names, buffers and rule (the first NaN wins, then the first of the greatest), in a text of
// this suite's own: MLX ships none of its own with its headers.
#include "mlx/backend/metal/kernels/utils.h"

template <typename T>
struct Candidate {
  T value;
  uint id;
};

template <typename T, bool largest>
METAL_FUNC bool beats(T a, uint i, T b, uint j) {
  const bool a_nan = a != a, b_nan = b != b;
  if (a_nan || b_nan) return a_nan && (!b_nan || i < j);
  return a == b ? i < j : largest ? a > b : a < b;
}

template <typename T, bool largest>
[[kernel]] void arg_reduce(
    const device T* in [[buffer(0)]],
    device uint32_t* out [[buffer(1)]],
    const constant int* shape [[buffer(2)]],
    const constant int64_t* in_strides [[buffer(3)]],
    const constant int64_t* out_strides [[buffer(4)]],
    const constant size_t& ndim [[buffer(5)]],
    const constant int64_t& axis_stride [[buffer(6)]],
    const constant size_t& axis_size [[buffer(7)]],
    uint3 gid [[thread_position_in_grid]],
    uint3 lid [[thread_position_in_threadgroup]],
    uint3 lsize [[threads_per_threadgroup]]) {
  threadgroup Candidate<T> found[1024];
  const device T* row = in + elem_to_loc(int64_t(gid.y), shape, in_strides, int(ndim));
  Candidate<T> best = {row[0], 0};
  for (uint i = lid.x; i < axis_size; i += lsize.x) {
    const T value = row[i * axis_stride];
    if (beats<T, largest>(value, i, best.value, best.id)) best = {value, i};
  }
  found[lid.x] = best;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = 512; step > 0; step /= 2) {
    if (lid.x < step && lid.x + step < lsize.x) {
      const Candidate<T> other = found[lid.x + step];
      if (beats<T, largest>(other.value, other.id, found[lid.x].value, found[lid.x].id)) found[lid.x] = other;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (lid.x == 0) out[elem_to_loc(int64_t(gid.y), shape, out_strides, int(ndim))] = found[0].id;
}

instantiate_kernel("argmax_float32", arg_reduce, float, true)
instantiate_kernel("argmin_float32", arg_reduce, float, false)
instantiate_kernel("argmax_float16", arg_reduce, half, true)
instantiate_kernel("argmin_float16", arg_reduce, half, false)
instantiate_kernel("argmax_bfloat16", arg_reduce, bfloat16_t, true)
instantiate_kernel("argmin_bfloat16", arg_reduce, bfloat16_t, false)
