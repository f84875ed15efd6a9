constexpr uint LANES = BLOCK / POS;
constexpr uint COLUMNS = 32 * POS;
constexpr uint WORDS = BLOCK * K / 32;
constexpr uint BITS = POS * K;
constexpr uint ADDED = SPLITS / SUM_ROWS;
constexpr uint UNITS = THREADS / 32 / ADDED;
constexpr uint GCD = BITS % 32 == 0 ? 32 : BITS % 16 == 0 ? 16 : BITS % 8 == 0 ? 8 : 4;
constexpr uint MOST = 32 - GCD;
constexpr uint SPANNED = (BITS + L - K + 31) / 32;
constexpr uint LOADED = (MOST + BITS + L - K + 31) / 32;
threadgroup float codebook[LUT > 0 ? STATES : UNITS * ADDED * COLUMNS];
threadgroup float2 staged[STAGED ? THREADS : 1];
const uint thread_number = thread_position_in_threadgroup.x;
if (LUT > 0) {
  for (uint i = thread_number; i < (1u << L); i += THREADS) codebook[i] = exp_code<FORM>(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
const uint rows = uint(x_shape[1]);
const uint blocks = INTERLEAVED ? 2 * uint(codes_shape[0]) : uint(codes_shape[1]) / WORDS;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint y = threadgroup_position_in_grid.y % SUM_ROWS;
const uint pair = threadgroup_position_in_grid.y / SUM_ROWS;
const uint split = y + SUM_ROWS * (simdgroup % ADDED);
const uint slot = (UNITS * pair + simdgroup / ADDED) * 32 + lane;
const uint block = slot / LANES;
const uint rows_a_split = (rows + SPLITS - 1) / SPLITS;
const uint start = min(split * rows_a_split, rows);
const uint count = block < blocks ? min(rows_a_split, rows - start) : 0u;
const uint lane_bit = slot % LANES * BITS;
const uint shift = lane_bit % 32;
uint index[LOADED];
#pragma clang loop unroll(full)
for (uint i = 0; i < LOADED; ++i) index[i] = (lane_bit / 32 + i) % WORDS;
const ulong stride = trellis_block(INTERLEAVED, 1, 0, rows, blocks, WORDS);
ulong first = trellis_block(INTERLEAVED, start, block, rows, blocks, WORDS);

float sums[POS];
#pragma clang loop unroll(full)
for (uint i = 0; i < POS; ++i) sums[i] = 0.0f;
if (STAGED) {
  threadgroup float2* own = staged + simdgroup * 32;
  uint held[AHEAD][LOADED];
  if (PIPE && AHEAD <= count) {
#pragma clang loop unroll(full)
    for (uint u = 0; u < AHEAD; ++u) exp_load<LOADED>(held[u], codes, first + u * stride, index);
  }
  float2 ready = float2(0.0f);
  if (lane < count) ready = float2(float(scales[start + lane]), float(x[start + lane]));
  for (uint r0 = 0; r0 < count; r0 += 32) {
    own[lane] = ready;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const uint n = min(32u, count - r0);
    const uint later = start + r0 + 32 + lane;
    if (r0 + 32 + lane < count) ready = float2(float(scales[later]), float(x[later]));
    uint r = 0;
#pragma clang loop unroll(disable)
    for (; r + AHEAD <= n; r += AHEAD) {
      uint loaded[AHEAD][LOADED];
      if (PIPE) {
        const ulong following = r0 + r + 2 * AHEAD <= count ? first + AHEAD * stride : first;
#pragma clang loop unroll(full)
        for (uint u = 0; u < AHEAD; ++u) {
#pragma clang loop unroll(full)
          for (uint i = 0; i < LOADED; ++i) loaded[u][i] = held[u][i];
          exp_load<LOADED>(held[u], codes, following + u * stride, index);
        }
      } else {
#pragma clang loop unroll(full)
        for (uint u = 0; u < AHEAD; ++u) exp_load<LOADED>(loaded[u], codes, first + u * stride, index);
      }
      first += AHEAD * stride;
#pragma clang loop unroll(full)
      for (uint u = 0; u < AHEAD; ++u) {
        const float2 both = own[r + u];
        exp_use<K, L, POS, LUT, FORM, SPANNED, LOADED, (MOST > 0)>(sums, loaded[u], shift, codebook, both.x, both.y);
      }
    }
#pragma clang loop unroll(disable)
    for (; r < n; ++r) {
      uint loaded[LOADED];
      exp_load<LOADED>(loaded, codes, first, index);
      first += stride;
      exp_use<K, L, POS, LUT, FORM, SPANNED, LOADED, (MOST > 0)>(sums, loaded, shift, codebook, own[r].x, own[r].y);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
} else {
  uint r = 0;
  for (; r + AHEAD <= count; r += AHEAD) {
    uint loaded[AHEAD][LOADED];
    float x_row[AHEAD], scale[AHEAD];
#pragma clang loop unroll(full)
    for (uint u = 0; u < AHEAD; ++u) {
      exp_load<LOADED>(loaded[u], codes, first + u * stride, index);
      x_row[u] = float(x[start + r + u]);
      scale[u] = float(scales[start + r + u]);
    }
    first += AHEAD * stride;
#pragma clang loop unroll(full)
    for (uint u = 0; u < AHEAD; ++u) {
      exp_use<K, L, POS, LUT, FORM, SPANNED, LOADED, (MOST > 0)>(sums, loaded[u], shift, codebook, scale[u], x_row[u]);
    }
  }
#pragma clang loop unroll(disable)
  for (; r < count; ++r) {
    uint loaded[LOADED];
    exp_load<LOADED>(loaded, codes, first, index);
    first += stride;
    exp_use<K, L, POS, LUT, FORM, SPANNED, LOADED, (MOST > 0)>(
        sums, loaded, shift, codebook, float(scales[start + r]), float(x[start + r]));
  }
}

if (LUT > 0) threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
for (uint i = 0; i < POS; ++i) codebook[simdgroup * COLUMNS + (lane + 1) * POS - 1 - i] = sums[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint i = thread_number; i < UNITS * COLUMNS; i += THREADS) {
  // i numbers slots backwards in a block: slot * POS + POS - 1 - p is the column's mirror image.
  const uint unit = UNITS * pair + i / COLUMNS;
  const uint lane_of = i % COLUMNS / POS, position = POS - 1 - i % POS;
  const uint at = unit * 32 + lane_of;
  const uint column = at / LANES * BLOCK + BLOCK - 1 - at % LANES * POS - position;
  if (column < blocks * BLOCK) {
    const threadgroup float* splits = codebook + i / COLUMNS * ADDED * COLUMNS + i % COLUMNS;
    float total = 0.0f;
#pragma clang loop unroll(full)
    for (uint s = 0; s < ADDED; ++s) total = splits[s * COLUMNS] + total;
    partial[ulong(y) * (blocks * BLOCK) + column] = total;
  }
}
