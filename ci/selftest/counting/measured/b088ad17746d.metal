// A reader a thread, of one row: the greatest of its logits, and the sum of exponentials that MLX's CUDA logsumexp has there.
constexpr uint LOGITS = 16 / sizeof(T);
const uint readers = READERS;
const uint reader = thread_position_in_grid.x;
const size_t row = thread_position_in_grid.y;
const auto from = logits + row * vocab;

Sum own_ = {-FLT_MAX, 0};
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
      add<LOGITS>(own_, values);
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
  add<LOGITS>(own_, values);
}
const uint tid = thread_position_in_threadgroup.x;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint groups = readers / 32;
constexpr uint HELD = READERS_A_THREAD;
threadgroup float group_maxima[32];
threadgroup float group_sums[32];
threadgroup uint group_ids[32];

float held[HELD];
#pragma unroll
for (uint h = 0; h < HELD; ++h) {
  const uint g = h * THREADS + tid;
  const Sum own = {own_.maximum, own_.sum};
  held[h] = own.maximum;
  const float maximum = greater(own.maximum);
  const float sum = added(own.sum * fast::exp(own.maximum - maximum));
  if (lane == 0) {
    group_maxima[g / 32] = maximum;
    group_sums[g / 32] = sum;
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
float maximum = lane < groups ? group_maxima[lane] : -FLT_MAX;
float sum = lane < groups ? group_sums[lane] : 0;
const float before = maximum;
maximum = greater(maximum);
sum = added(sum * fast::exp(before - maximum));
const T shift = isinf(maximum) ? T(maximum) : T(log(sum) + maximum);

uint answer = NONE;
const bool regular = isfinite(float(shift));
if (isnan(float(shift))) {
  answer = 0;
} else {
  const float best = score(T(maximum), shift);
  const bool search_nan = !regular;
#pragma unroll
  for (uint h = 0; h < HELD; ++h) {
    const bool may = !regular || score(T(held[h]), shift) == best;
    uint left = uint(static_cast<simd_vote::vote_t>(simd_ballot(may)));
    const uint first = h * THREADS + simdgroup * 32;
    for (; left != 0; left &= left - 1) {
      const uint reader_ = first + ctz(left);
      uint hit = NONE;
      for (uint chunk = reader_ + lane * readers; chunk * LOGITS < vocab && hit == NONE; chunk += 32 * readers) {
        for (uint i = chunk * LOGITS; i < min(vocab, (chunk + 1) * LOGITS) && hit == NONE; ++i) {
          const float candidate = score(T(from[i]), shift);
          if (search_nan ? isnan(candidate) : candidate == best) hit = i;
        }
      }
      answer = min(answer, hit);
    }
  }
}
answer = lesser(answer);
if (lane == 0) group_ids[simdgroup] = answer;
threadgroup_barrier(mem_flags::mem_threadgroup);
if (simdgroup == 0) {
  answer = lesser(lane < THREADS / 32 ? group_ids[lane] : NONE);
  if (lane == 0) out[row] = answer == NONE ? 0 : answer;
  if (lane == 0) lse_out[row] = shift;
}
