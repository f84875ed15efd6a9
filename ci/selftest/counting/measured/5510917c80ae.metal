// The balanced single-row kernel: a simdgroup a block, eight positions a lane, whatever words they lie in.
// partial[split, c] as in the plain kernel, of other lanes.
constexpr uint WORDS = BLOCK * K / 32;
const uint rows = uint(x_shape[1]);
const uint blocks = INTERLEAVED ? 2 * uint(codes_shape[0]) : uint(codes_shape[1]) / WORDS;
const uint lane = thread_index_in_simdgroup;
const uint block = threadgroup_position_in_grid.y * (THREADS / 32) + simdgroup_index_in_threadgroup;
if (block >= blocks) return;
const uint bit = lane * POSITIONS * K;
const uint word = bit / 32, next = (word + 1) % WORDS, shift = bit % 32;

const uint split = threadgroup_position_in_grid.z;
const uint rows_a_split = (rows + SPLITS - 1) / SPLITS;
const uint start = min(split * rows_a_split, rows);
const uint end = min(start + rows_a_split, rows);

float sums[POSITIONS];
#pragma clang loop unroll(full)
for (uint i = 0; i < POSITIONS; ++i) sums[i] = 0.0f;
#pragma clang loop unroll_count(AHEAD)
for (uint row = start; row < end; ++row) {
  const ulong first = trellis_block(INTERLEAVED, row, block, rows, blocks, WORDS);
  const ulong bits = trellis_bits_of(codes, first, word, next, shift);
  const float scale = float(scales[row]);
  const float x_row = float(x[row]);
#pragma clang loop unroll(full)
  for (uint i = 0; i < POSITIONS; ++i) {
    const uint state = uint(bits >> (i * K)) & ((1u << L) - 1u);
    sums[i] = metal::fma(trellis_bits(trellis_sum(state)) * scale, x_row, sums[i]);
  }
}
const ulong top = ulong(split) * (blocks * BLOCK) + (block + 1) * BLOCK - 1 - lane * POSITIONS;
#pragma clang loop unroll(full)
for (uint i = 0; i < POSITIONS; ++i) partial[top - i] = sums[i];
