// What both stages share. A score is one element of `logits - lse`, rounded to the logits' dtype: scores decide, since
// rounding makes ties that the logits do not have.
constant constexpr uint THREADS = 128;
constant constexpr uint SIMDGROUPS = THREADS / 32;
constant constexpr uint TILE = 1024;
constant constexpr uint NONE = 0xffffffffu;

// Which NaN score wins: none, the first, or none but one at id 0.
constant constexpr int NAN_SKIPPED = 0;
constant constexpr int NAN_FIRST = 1;
constant constexpr int NAN_LEADING = 2;

template <typename T>
inline float score(T logit, T lse) {
  return float(T(logit - lse));
}

// The least value of a threadgroup, for all its threads. The first barrier keeps a fast simdgroup from writing what a
// slow one still reads from the call before.
inline uint least(uint value, threadgroup uint* shared, uint lane, uint simdgroup) {
  value = simd_min(value);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) shared[simdgroup] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint g = 0; g < SIMDGROUPS; ++g) value = min(value, shared[g]);
  return value;
}

// The greatest value of a threadgroup, for all its threads; no value is NaN.
inline float greatest(float value, threadgroup float* shared, uint lane, uint simdgroup) {
  value = simd_max(value);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) shared[simdgroup] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint g = 0; g < SIMDGROUPS; ++g) value = max(value, shared[g]);
  return value;
}
