// A threadgroup a tile of 1,024 logits of one row: the greatest logit that is a number, and the lowest id of a NaN.
// The score never decreases as the logit grows, so the tile's maximum says all that the finish needs.
const uint tid = thread_position_in_threadgroup.x;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint vocab = uint(logits_shape[1]);
const uint tile = threadgroup_position_in_grid.x;
const size_t row = threadgroup_position_in_grid.y;
const size_t start = row * vocab;
threadgroup float shared_logits[SIMDGROUPS];
threadgroup uint shared_ids[SIMDGROUPS];

float maximum = -INFINITY;
uint nan_id = NONE;
for (uint i = tile * TILE + tid; i < min(vocab, (tile + 1) * TILE); i += THREADS) {
  const float logit = float(logits[start + i]);
  if (isnan(logit)) {
    nan_id = min(nan_id, i);
  } else {
    maximum = max(maximum, logit);
  }
}
maximum = greatest(maximum, shared_logits, lane, simdgroup);
nan_id = least(nan_id, shared_ids, lane, simdgroup);
if (tid == 0) {
  const size_t place = row * threadgroups_per_grid.x + tile;
  maxima[place] = T(maximum);
  nan_ids[place] = nan_id;
}
