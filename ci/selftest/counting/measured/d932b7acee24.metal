// The column sum that MLX's col_reduce_looped makes of 128 rows in tiles of 32 x 32, bit for bit: each of 32 lanes adds
// the rows y, y + 32, y + 64 and y + 96, then the lanes' totals are summed across the simdgroup: one a column. Given 32 rows, the first
// stage has been done. FACTORED: sums of unscaled codes, to be scaled once.
const uint columns = uint(partial_shape[1]);
const uint lane = thread_index_in_simdgroup;
const uint column = threadgroup_position_in_grid.x * (THREADS / 32) + simdgroup_index_in_threadgroup;
if (column >= columns) return;
float total = partial[ulong(lane) * columns + column];
if (ROWS > 32) {
  total = total + 0.0f;
#pragma clang loop unroll(full)
  for (uint row = 32; row < ROWS; row += 32) total = partial[ulong(row + lane) * columns + column] + total;
}
total = simd_sum(total);
if (FACTORED) total = total * TRELLIS_RECIPROCAL;
if (lane == 0) out[column] = T(total);
