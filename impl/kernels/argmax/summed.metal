// The row's logsumexp and greatest logit: simdgroup by simdgroup, then of all. A row with a NaN has none that is finite.
threadgroup float shared_sums[32];
const float top = greatest(own.maximum);
const float part = summed(own.sum * fast::exp(own.maximum - top));
if (lane == 0) {
  shared_maxima[simdgroup] = top;
  shared_sums[simdgroup] = part;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
const float other = lane < simdgroups ? shared_maxima[lane] : -FLT_MAX;
const float maximum = greatest(other);
const float sum = summed((lane < simdgroups ? shared_sums[lane] : 0.0f) * fast::exp(other - maximum));
const T shift = isinf(maximum) ? T(maximum) : T(log(sum) + maximum);
const bool search_nan = NAN_RULE == NAN_FIRST && !isfinite(float(shift));
const bool wanted = score(T(own.maximum), shift) == score(T(maximum), shift);
