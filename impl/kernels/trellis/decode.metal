// The matrix itself. A thread decodes one column of every `threadgroups_per_grid.y`-th row.
// layout: rows, cols, T, k, L; then whether blocks are interleaved, weights scaled, and scaled weights rounded.
const uint rows = layout[0], cols = layout[1], length = layout[2], k = layout[3], l = layout[4];
const bool interleaved = layout[5], scaled = layout[6], rounded = layout[7];
const uint words_per_block = length * k / 32u;
const uint column = thread_position_in_grid.x;
threadgroup float table[FORM == TRELLIS_LUT_THREADGROUP ? STATES : 1];
if (FORM == TRELLIS_LUT_THREADGROUP) {
  for (uint i = thread_position_in_threadgroup.x; i < (1u << l); i += threads_per_threadgroup.x) table[i] = lut[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
if (column >= cols) return;
const uint block = column / length, t = column % length;
for (uint row = threadgroup_position_in_grid.y; row < rows; row += threadgroups_per_grid.y) {
  const ulong first = trellis_block(interleaved, row, block, rows, cols / length, words_per_block);
  const uint state = trellis_state(codes + first, words_per_block, t, length, k, l);
  float value;
  if (FORM == TRELLIS_STATE) {
    value = float(state);
  } else if (FORM == TRELLIS_LUT_THREADGROUP) {
    value = table[state];
  } else if (FORM == TRELLIS_LUT_DEVICE) {
    value = lut[state];
  } else {
    value = trellis_value<FORM>(trellis_sum(state));
  }
  if (scaled) value = value * float(scales[row]);
  out[ulong(row) * cols + column] = rounded ? trellis_bf16(value) : value;
}
