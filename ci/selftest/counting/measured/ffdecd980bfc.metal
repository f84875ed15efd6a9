// A threadgroup a row: from the tiles' maxima to the lowest id with the greatest score. Only the first tile whose
// maximum has that score is read again; a row whose lse is infinite is searched from its first tile.
const uint tid = thread_position_in_threadgroup.x;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint vocab = uint(logits_shape[1]);
const uint tiles = uint(maxima_shape[1]);
const size_t row = threadgroup_position_in_grid.y;
const size_t start = row * vocab;
const size_t tiles_start = row * tiles;
const T shift = lse[row];
threadgroup float shared_scores[SIMDGROUPS];
threadgroup uint shared_ids[SIMDGROUPS];

float maximum = -INFINITY;
uint nan_id = NONE;
for (uint t = tid; t < tiles; t += THREADS) {
  maximum = max(maximum, float(maxima[tiles_start + t]));
  nan_id = min(nan_id, nan_ids[tiles_start + t]);
}
maximum = greatest(maximum, shared_scores, lane, simdgroup);
nan_id = least(nan_id, shared_ids, lane, simdgroup);

const bool regular = isfinite(float(shift));
const float best = regular ? score(T(maximum), shift) : INFINITY;
uint answer = isnan(float(shift)) ? 0 : NONE;
if (answer == NONE && regular && NAN_RULE == NAN_FIRST) answer = nan_id;
if (NAN_RULE == NAN_LEADING && isnan(score(T(logits[start]), shift))) answer = 0;

if (answer == NONE) {
  uint tile = 0, end = tiles;
  if (regular) {
    uint first = NONE;
    for (uint t = tid; t < tiles && first == NONE; t += THREADS) {
      if (score(maxima[tiles_start + t], shift) == best) first = t;
    }
    tile = least(first, shared_ids, lane, simdgroup);
    end = tile + 1;
  }
  const bool search_nan = NAN_RULE == NAN_FIRST && !regular;
  for (; tile < end && answer == NONE; ++tile) {
    uint hit = NONE;
    for (uint i = tile * TILE + tid; i < min(vocab, (tile + 1) * TILE) && hit == NONE; i += THREADS) {
      const float candidate = score(T(logits[start + i]), shift);
      if (search_nan ? isnan(candidate) : candidate == best) hit = i;
    }
    answer = least(hit, shared_ids, lane, simdgroup);
  }
}
if (tid == 0) out[row] = answer == NONE ? 0 : answer;
