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
