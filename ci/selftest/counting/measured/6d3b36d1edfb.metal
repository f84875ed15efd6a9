// A threadgroup a row: its readers look at every logit once.
constexpr uint LOGITS = 16 / sizeof(T);
const uint reader = thread_position_in_threadgroup.x;
const uint readers = threads_per_threadgroup.x;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint simdgroups = readers / 32;
const size_t row = threadgroup_position_in_grid.y;
const auto from = logits + row * vocab;
threadgroup float shared_maxima[32];
threadgroup uint shared_ids[32];

Reader own = begun();
#pragma clang loop unroll(disable)
for (uint chunk = reader; chunk * LOGITS < vocab; chunk += readers) {
  T values[LOGITS];
  read(from, chunk * LOGITS, vocab, values);
  take<LOGITS>(own, values);
}
// The row's logsumexp is given; its greatest logit is that of all readers.
const T shift = lse[row];
threadgroup bool shared_nans[32];
float maximum = greatest(own.maximum);
bool nan = simd_any(own.nan);
if (lane == 0) {
  shared_maxima[simdgroup] = maximum;
  shared_nans[simdgroup] = nan;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint g = 0; g < simdgroups; ++g) {
  maximum = maximum < shared_maxima[g] ? shared_maxima[g] : maximum;
  nan = nan || shared_nans[g];
}
const bool search_nan = NAN_RULE == NAN_FIRST && (nan || !isfinite(float(shift)));
const bool wanted = search_nan ? own.nan : score(T(own.maximum), shift) == score(T(maximum), shift);
// The lowest id with the best score. Only readers who have it look again, a simdgroup for each of them, a chunk a lane;
// all readers where lse is infinite.
const bool regular = isfinite(float(shift));
const float best = regular ? score(T(maximum), shift) : INFINITY;
uint answer = isnan(float(shift)) ? 0 : NONE;
if (NAN_RULE == NAN_LEADING && isnan(score(T(from[0]), shift))) answer = 0;

if (answer == NONE) {
  uint left = uint(simd_vote::vote_t(simd_ballot(wanted || !regular)));
  for (; left != 0; left &= left - 1) {
    uint hit = NONE;
    for (uint chunk = simdgroup * 32 + ctz(left) + lane * readers; chunk * LOGITS < vocab && hit == NONE;
         chunk += 32 * readers) {
      for (uint id = chunk * LOGITS; id < min(vocab, (chunk + 1) * LOGITS) && hit == NONE; ++id) {
        const float candidate = score(T(from[id]), shift);
        if (search_nan ? isnan(candidate) : candidate == best) hit = id;
      }
    }
    answer = min(answer, hit);
  }
}
answer = least(answer);
if (lane == 0) shared_ids[simdgroup] = answer;
threadgroup_barrier(mem_flags::mem_threadgroup);
if (reader == 0) {
  for (uint g = 0; g < simdgroups; ++g) answer = min(answer, shared_ids[g]);
  out[row] = answer == NONE ? 0 : answer;
}
