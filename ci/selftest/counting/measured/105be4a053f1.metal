// x [1, R] times the stored matrix [R, C], up to the first stage of MLX's column sum over 128 splits of the rows:
// partial[y, c] = ((s[y] + s[y + 32]) + s[y + 64]) + s[y + 96], s[i] being split i's sum of fma(code * scale, x, .).
//
// Four simdgroups make row y of the partials for a block of 256 columns, one split each; a lane owns eight positions.
// Simdgroups past the last block run no rows, and still reach every barrier. ROW_WORDS: the words of a row, of a pair of
// blocks where they are interleaved, so that a compiler knows where the next rows are; 0 where a new number of columns is
// to be no new compilation.
constexpr uint WORDS = BLOCK * K / 32;
constexpr uint ADDED = SPLITS / SUM_ROWS;
constexpr uint BLOCKS = THREADS / 32 / ADDED;

threadgroup float codebook[STATES + (BYTE_OFFSET ? 1 : 0)];
threadgroup float2 factors[THREADS];
for (uint i = thread_position_in_threadgroup.x; i < (1u << L) + (BYTE_OFFSET ? 1u : 0u); i += THREADS) {
  codebook[i] = FACTORED ? trellis_integer(trellis_sum(i)) : trellis_bits(trellis_sum(i));
}
threadgroup_barrier(mem_flags::mem_threadgroup);

const uint rows = uint(x_shape[1]);
const uint blocks = INTERLEAVED ? 2 * uint(codes_shape[0]) : uint(codes_shape[1]) / WORDS;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint y = threadgroup_position_in_grid.y % SUM_ROWS;
const uint first_block = threadgroup_position_in_grid.y / SUM_ROWS * BLOCKS;
const uint block = first_block + simdgroup / ADDED;
const uint split = y + SUM_ROWS * (simdgroup % ADDED);

const uint rows_a_split = (rows + SPLITS - 1) / SPLITS;
const uint start = min(split * rows_a_split, rows);
const uint count = block < blocks ? min(rows_a_split, rows - start) : 0u;

const uint bit = lane * POSITIONS * K;
const uint word = bit / 32, next = (word + 1) % WORDS, shift = bit % 32;
const ulong stride = ROW_WORDS > 0 ? ROW_WORDS : trellis_block(INTERLEAVED, 1, 0, rows, blocks, WORDS);
ulong at = trellis_block(INTERLEAVED, start, block, rows, blocks, WORDS);

float sums[POSITIONS];
#pragma clang loop unroll(full)
for (uint i = 0; i < POSITIONS; ++i) sums[i] = 0.0f;
// Scales and x of 32 rows at a time, one row a lane.
threadgroup float2* own = factors + simdgroup * 32;
for (uint r = 0; r < count; r += 32) {
  const uint row = start + r + lane;
  if (r + lane < count) own[lane] = float2(float(scales[row]), float(x[row]));
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const uint held = min(32u, count - r);
#pragma clang loop unroll_count(AHEAD)
  for (uint i = 0; i < held; ++i, at += stride) {
    const ulong bits = trellis_bits_of(codes, at, word, next, shift);
    trellis_accumulate<K, L, POSITIONS, LOOKED_UP, FACTORED, BYTE_OFFSET>(sums, bits, codebook, own[i].x, own[i].y);
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

// The partials take the codebook's memory, once every lane has read its last code; the lowest bits are the last column.
threadgroup_barrier(mem_flags::mem_threadgroup);
const uint top = (simdgroup + 1) * BLOCK - 1 - lane * POSITIONS;
#pragma clang loop unroll(full)
for (uint i = 0; i < POSITIONS; ++i) codebook[top - i] = sums[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
const uint columns = blocks * BLOCK;
for (uint i = thread_position_in_threadgroup.x; i < BLOCKS * BLOCK; i += THREADS) {
  const uint column = first_block * BLOCK + i;
  if (column < columns) {
    const threadgroup float* splits = codebook + i / BLOCK * ADDED * BLOCK + i % BLOCK;
    float total = 0.0f;
#pragma clang loop unroll(full)
    for (uint s = 0; s < ADDED; ++s) total = splits[s * BLOCK] + total;
    partial[ulong(y) * columns + column] = total;
  }
}
