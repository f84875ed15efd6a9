// The column sum that MLX's col_reduce_looped makes of 128 rows in tiles of 32 x 32, bit for bit: each of 32 lanes adds
// the rows y, y + 32, y + 64 and y + 96, then the lanes' totals are summed across the simdgroup. Given 32 rows, the first
// stage has been done. FACTORED: sums of unscaled codes, to be scaled once.
const uint columns = uint(partial_shape[1]);
const uint lane = thread_index_in_simdgroup;
const uint first = (threadgroup_position_in_grid.x * (THREADS / 32) + simdgroup_index_in_threadgroup) * COLUMNS;
float totals[COLUMNS];
#pragma clang loop unroll(full)
for (uint i = 0; i < COLUMNS; ++i) {
  if (first + i >= columns) continue;
  totals[i] = partial[ulong(lane) * columns + first + i];
  if (ROWS > 32) {
    totals[i] = totals[i] + 0.0f;
#pragma clang loop unroll(full)
    for (uint row = 32; row < ROWS; row += 32) totals[i] = partial[ulong(row + lane) * columns + first + i] + totals[i];
  }
}
#pragma clang loop unroll(full)
for (uint i = 0; i < COLUMNS; ++i) {
  if (first + i >= columns) continue;
  float total = simd_sum(totals[i]);
  if (FACTORED) total = total * TRELLIS_RECIPROCAL;
  if (lane == 0) out[first + i] = T(total);
}
