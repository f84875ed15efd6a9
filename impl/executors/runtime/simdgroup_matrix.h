// simdgroup_matrix<T, 8, 8>: spread over the 32 lanes, two neighbours of a row a lane, in the layout that MLX's own kernels
// assume (steel/gemm/mma.h).
#pragma once

#include "collectives.h"

namespace assay {

METAL_FUNC uint matrix_row(uint lane) { return ((lane / 4) & 4) + (lane / 2) % 4; }
METAL_FUNC uint matrix_column(uint lane) { return ((lane / 4) & 2) * 2 + (lane % 2) * 2; }

template <class A>
METAL_FUNC Lane gathered(Lane own, int site) {
  own.argument = kNeedsAll;
  return exchanged<A>(own, site);
}

// value holds a lane's shares of A and B, fill that of C. Terms are added by ascending column of A with fused steps, in
// f32 and rounded once at the end; the order of a GPU is not known.
struct MultiplyAccumulate {
  static void complete(Lane* lanes, uint) {
    float a[8][8], b[8][8];
    for (uint i = 0; i < kLanes; i++) {
      const uint row = matrix_row(i), column = matrix_column(i);
      const float* in = (const float*)lanes[i].value;
      a[row][column] = in[0], a[row][column + 1] = in[1];
      b[row][column] = in[2], b[row][column + 1] = in[3];
    }
    for (uint i = 0; i < kLanes; i++) {
      const uint row = matrix_row(i), column = matrix_column(i);
      for (uint j = 0; j < 2; j++) {
        float sum = ((const float*)lanes[i].fill)[j];
        for (uint k = 0; k < 8; k++) sum = __builtin_fmaf(a[row][k], b[k][column + j], sum);
        ((float*)lanes[i].result)[j] = sum;
      }
    }
  }
};

}  // namespace assay

namespace metal {

template <class T, int C, int R>
struct simdgroup_matrix {
  static_assert(C == 8 && R == 8, "Metal's simdgroup matrices are 8 x 8");
  static_assert(is_same_v<T, float> || is_same_v<T, half> || is_same_v<T, bfloat>,
                "Metal's simdgroup matrices are of float, half and bfloat");
  vec<T, 2> elements;

  simdgroup_matrix() = default;
  simdgroup_matrix(const simdgroup_matrix&) = default;
  explicit simdgroup_matrix(T diagonal) {
    const uint row = assay::matrix_row(assay_lane_index()), column = assay::matrix_column(assay_lane_index());
    elements = make_vec<T, 2>(row == column ? T(diagonal) : T(0), row == column + 1 ? T(diagonal) : T(0));
  }
  thread vec<T, 2>& thread_elements() { return *(thread vec<T, 2>*)&elements; }
};

typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int C, int R = C>
METAL_FUNC simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, C, R> m;
  m.elements = make_vec<T, 2>(value, value);
  return m;
}

// A lane's two neighbours of a row are one access, as a counted launch has to see them.
#ifdef ASSAY_COUNTED
}  // namespace metal
namespace assay {
template <class T>
using half_of = metal::conditional_t<sizeof(T) == 4, uint, ushort>;
template <class T>
using pair_of = metal::vec<half_of<T>, 2>;
}  // namespace assay
namespace metal {
#define ASSAY_LOAD_PAIR(space, v, from, at)                                          \
  if (!transposed) {                                                                 \
    const assay::pair_of<T> both = *(space assay::pair_of<T> const*)(from + (at));   \
    for (int i = 0; i < 2; i++) v[i] = __builtin_bit_cast(T, assay::half_of<T>(both[i])); \
  } else
#define ASSAY_STORE_PAIR(space, m, to, at)                                           \
  if (!transposed) {                                                                 \
    assay::pair_of<T> both;                                                          \
    for (int i = 0; i < 2; i++) both[i] = __builtin_bit_cast(assay::half_of<T>, T(m.elements[i])); \
    *(space assay::pair_of<T>*)(to + (at)) = both;                                   \
  } else
#else
#define ASSAY_LOAD_PAIR(space, v, from, at)
#define ASSAY_STORE_PAIR(space, m, to, at)
#endif
#define ASSAY_TRANSFER(space)                                                                                      \
  template <class T, int C, int R>                                                                                 \
  METAL_FUNC void simdgroup_load(thread simdgroup_matrix<T, C, R>& m, const space T* from, ulong row_stride = C,   \
                                 ulong2 origin = 0, bool transposed = false, ASSAY_SITE) {                         \
    assay::gathered<assay::Transfer>(assay::Lane{}, site);                                                                             \
    const ulong row = assay::matrix_row(assay_lane_index()), column = assay::matrix_column(assay_lane_index());    \
    T v[2];                                                                                                        \
    ASSAY_LOAD_PAIR(space, v, from, (origin.y + row) * row_stride + origin.x + column)                             \
    for (ulong i = 0; i < 2; i++) {                                                                                \
      const ulong x = transposed ? row : column + i, y = transposed ? column + i : row;                            \
      v[i] = from[(origin.y + y) * row_stride + origin.x + x];                                                     \
    }                                                                                                              \
    m.elements = make_vec<T, 2>(v[0], v[1]);                                                                       \
  }                                                                                                                \
  template <class T, int C, int R>                                                                                 \
  METAL_FUNC void simdgroup_store(simdgroup_matrix<T, C, R> m, space T* to, ulong row_stride = C,                  \
                                  ulong2 origin = 0, bool transposed = false, ASSAY_SITE) {                        \
    assay::gathered<assay::Transfer>(assay::Lane{}, site);                                                                             \
    const ulong row = assay::matrix_row(assay_lane_index()), column = assay::matrix_column(assay_lane_index());    \
    ASSAY_STORE_PAIR(space, m, to, (origin.y + row) * row_stride + origin.x + column)                              \
    for (ulong i = 0; i < 2; i++) {                                                                                \
      const ulong x = transposed ? row : column + i, y = transposed ? column + i : row;                            \
      to[(origin.y + y) * row_stride + origin.x + x] = m.elements[int(i)];                                         \
    }                                                                                                              \
  }
ASSAY_TRANSFER(device)
ASSAY_TRANSFER(threadgroup)
#undef ASSAY_TRANSFER
template <class T, int C, int R>
METAL_FUNC void simdgroup_load(thread simdgroup_matrix<T, C, R>& m, const constant T* from, ulong row_stride = C,
                               ulong2 origin = 0, bool transposed = false, ASSAY_SITE) {
  const ulong row = assay::matrix_row(assay_lane_index()), column = assay::matrix_column(assay_lane_index());
  T v[2];
  ASSAY_LOAD_PAIR(constant, v, from, (origin.y + row) * row_stride + origin.x + column)
  for (ulong i = 0; i < 2; i++) {
    const ulong x = transposed ? row : column + i, y = transposed ? column + i : row;
    v[i] = from[(origin.y + y) * row_stride + origin.x + x];
  }
  m.elements = make_vec<T, 2>(v[0], v[1]);
}

template <class D, class A, class B, class C>
METAL_FUNC void simdgroup_multiply_accumulate(thread simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                              simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c, ASSAY_SITE) {
  assay::Lane own;
  float* shares = (float*)own.value;
  shares[0] = float(a.elements[0]), shares[1] = float(a.elements[1]);
  shares[2] = float(b.elements[0]), shares[3] = float(b.elements[1]);
  float* addend = (float*)own.fill;
  addend[0] = float(c.elements[0]), addend[1] = float(c.elements[1]);
  const assay::Lane came = assay::gathered<assay::MultiplyAccumulate>(own, site);
  const float* sum = (const float*)came.result;
  d.elements = make_vec<D, 2>(D(sum[0]), D(sum[1]));
}
template <class D, class A, class B>
METAL_FUNC void simdgroup_multiply(thread simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                   simdgroup_matrix<B, 8, 8> b, ASSAY_SITE) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<float, 8>(0.0f), site);
}
template <class T>
METAL_FUNC simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a, simdgroup_matrix<T, 8, 8> b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}

}  // namespace metal
