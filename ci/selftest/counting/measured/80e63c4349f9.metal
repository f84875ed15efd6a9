// x [1, R] times the stored matrix [R, C], up to the first stage of MLX's column sum over 128 splits of the rows:
// partial[y, c] = ((s[y] + s[y + 32]) + s[y + 64]) + s[y + 96], s[i] being split i's sum of fma(code * scale, x, .).
//
// A threadgroup makes row y of the partials for two column groups of 512: its eight simdgroups take the four splits of
// each. A lane owns 16 positions of one block. Lanes past the last block run no rows, and still reach every barrier.
constexpr uint LANES = BLOCK / POSITIONS;
constexpr uint BLOCKS = 32 / LANES;
constexpr uint COLUMNS = 32 * POSITIONS;
constexpr uint WORDS = BLOCK * K / 32;
constexpr uint BITS = POSITIONS * K;
constexpr uint ADDED = SPLITS / SUM_ROWS;
constexpr bool ALIGNED = BITS % 32 == 0;
constexpr uint LOADED = (BITS + L - K + 31) / 32 + (ALIGNED ? 0 : 1);

threadgroup float codebook[STATES + (BYTE_OFFSET ? 1 : 0)];
for (uint i = thread_position_in_threadgroup.x; i < (1u << L) + (BYTE_OFFSET ? 1u : 0u); i += THREADS) {
  codebook[i] = FACTORED ? trellis_integer(trellis_sum(i)) : trellis_bits(trellis_sum(i));
}
threadgroup_barrier(mem_flags::mem_threadgroup);

const uint rows = uint(x_shape[1]);
const uint blocks = INTERLEAVED ? 2 * uint(codes_shape[0]) : uint(codes_shape[1]) / WORDS;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint y = threadgroup_position_in_grid.y % SUM_ROWS;
const uint pair = threadgroup_position_in_grid.y / SUM_ROWS;
const uint split = y + SUM_ROWS * (simdgroup % ADDED);
const uint block = (2 * pair + simdgroup / ADDED) * BLOCKS + lane / LANES;

const uint rows_a_split = (rows + SPLITS - 1) / SPLITS;
const uint start = min(split * rows_a_split, rows);
const bool active = block < blocks && start < rows;
const uint count = active ? min(rows_a_split, rows - start) : 0u;

const uint lane_bit = lane % LANES * BITS;
const bool shifted = !ALIGNED && lane_bit % 32 != 0;
uint index[LOADED];
#pragma clang loop unroll(full)
for (uint i = 0; i < LOADED; ++i) index[i] = (lane_bit / 32 + i) % WORDS;
const ulong stride = trellis_block(INTERLEAVED, 1, 0, rows, blocks, WORDS);
const device uint* first = codes;
if (active) first += trellis_block(INTERLEAVED, start, block, rows, blocks, WORDS);

float sums[POSITIONS];
#pragma clang loop unroll(full)
for (uint i = 0; i < POSITIONS; ++i) sums[i] = 0.0f;
uint r = 0;
for (; r + AHEAD <= count; r += AHEAD) {
  uint loaded[AHEAD][LOADED];
  float x_row[AHEAD], scale[AHEAD];
#pragma clang loop unroll(full)
  for (uint u = 0; u < AHEAD; ++u) {
    trellis_load<LOADED>(loaded[u], first + (r + u) * stride, index);
    x_row[u] = float(x[start + r + u]);
    scale[u] = float(scales[start + r + u]);
  }
#pragma clang loop unroll(full)
  for (uint u = 0; u < AHEAD; ++u) {
    trellis_accumulate<K, L, POSITIONS, FACTORED, BYTE_OFFSET>(sums, loaded[u], shifted, codebook, scale[u], x_row[u]);
  }
}
for (; r < count; ++r) {
  uint loaded[LOADED];
  trellis_load<LOADED>(loaded, first + r * stride, index);
  trellis_accumulate<K, L, POSITIONS, FACTORED, BYTE_OFFSET>(
      sums, loaded, shifted, codebook, float(scales[start + r]), float(x[start + r]));
}

// The partials take the codebook's memory, once every lane has read its last code.
threadgroup_barrier(mem_flags::mem_threadgroup);
const uint top = (lane / LANES + 1) * BLOCK - 1 - lane % LANES * POSITIONS;
#pragma clang loop unroll(full)
for (uint i = 0; i < POSITIONS; ++i) codebook[simdgroup * COLUMNS + top - i] = sums[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint i = thread_position_in_threadgroup.x; i < 2 * COLUMNS; i += THREADS) {
  const uint column = 2 * pair * COLUMNS + i;
  if (column < blocks * BLOCK) {
    const threadgroup float* splits = codebook + i / COLUMNS * ADDED * COLUMNS + i % COLUMNS;
    float total = 0.0f;
#pragma clang loop unroll(full)
    for (uint s = 0; s < ADDED; ++s) total = splits[s * COLUMNS] + total;
    partial[ulong(y) * (blocks * BLOCK) + column] = total;
  }
}
