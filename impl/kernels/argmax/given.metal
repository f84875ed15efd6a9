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
