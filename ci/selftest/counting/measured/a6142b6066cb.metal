// The plain single-row kernel: a lane a packed word, WORDS lanes a block, as many whole blocks a simdgroup as fit. A lane
// owns the positions whose symbol starts in its word; the rest of their windows lies in the next lane's.
// partial[split, c] = the split's rows in ascending order, fma(code * scale, x, .).
constexpr uint WORDS = BLOCK * K / 32;
constexpr uint BLOCKS = 32 / WORDS;
constexpr uint POSITIONS = (32 + K - 1) / K;
const uint rows = uint(x_shape[1]);
const uint blocks = INTERLEAVED ? 2 * uint(codes_shape[0]) : uint(codes_shape[1]) / WORDS;
const uint lane = thread_index_in_simdgroup;
const uint word = lane % WORDS;
const uint group = threadgroup_position_in_grid.y * (THREADS / 32) + simdgroup_index_in_threadgroup;
const uint block = group * BLOCKS + lane / WORDS;
const bool active = lane < BLOCKS * WORDS && block < blocks;
const uint next = word + 1 == WORDS ? lane + 1 - WORDS : lane + 1;

const uint split = threadgroup_position_in_grid.z;
const uint rows_a_split = (rows + SPLITS - 1) / SPLITS;
const uint start = min(split * rows_a_split, rows);
const uint end = min(start + rows_a_split, rows);
const uint position = (32 * word + K - 1) / K;
const uint shift = position * K - 32 * word;

float sums[POSITIONS];
#pragma clang loop unroll(full)
for (uint i = 0; i < POSITIONS; ++i) sums[i] = 0.0f;
for (uint first = start; first < end; first += AHEAD) {
  uint low[AHEAD];
#pragma clang loop unroll(full)
  for (uint u = 0; u < AHEAD; ++u) {
    low[u] = 0;
    if (active && first + u < end) {
      low[u] = codes[trellis_block(INTERLEAVED, first + u, block, rows, blocks, WORDS) + word];
    }
  }
#pragma clang loop unroll(full)
  for (uint u = 0; u < AHEAD; ++u) {
    if (first + u >= end) break;
    const ulong bits = ((ulong(simd_shuffle(low[u], ushort(next % 32))) << 32) | low[u]) >> shift;
    const float scale = float(scales[first + u]);
    const float x_row = float(x[first + u]);
#pragma clang loop unroll(full)
    for (uint i = 0; i < POSITIONS; ++i) {
      const uint state = uint(bits >> (i * K)) & ((1u << L) - 1u);
      sums[i] = metal::fma(trellis_bits(trellis_sum(state)) * scale, x_row, sums[i]);
    }
  }
}
if (active) {
  const ulong top = ulong(split) * (blocks * BLOCK) + (block + 1) * BLOCK - 1 - position;
#pragma clang loop unroll(full)
  for (uint i = 0; i < POSITIONS; ++i) {
    if (shift + i * K < 32) partial[top - i] = sums[i];
  }
}
