// Metal's matrices, floatCxR and halfCxR: C columns of R rows, each column a vector.
#pragma once

#include "geometric.h"
#include "packed.h"

namespace metal {

template <class T, int C, int R>
struct matrix {
  typedef vec<T, R> Column;
  Column columns[C];

  matrix() = default;
  matrix(const matrix&) = default;
  explicit matrix(T diagonal) {
    for (int c = 0; c < C; c++)
      for (int r = 0; r < R; r++) columns[c][r] = c == r ? diagonal : T(0);
  }
  // C columns, or C * R numbers column by column.
  template <class... A, class = enable_if_t<sizeof...(A) == C || sizeof...(A) == C * R>>
  matrix(A... a) {
    if constexpr (sizeof...(A) == C) {
      const Column given[C] = {a...};
      for (int c = 0; c < C; c++) columns[c] = given[c];
    } else {
      const T given[C * R] = {T(a)...};
      for (int i = 0; i < C * R; i++) columns[i / R][i % R] = given[i];
    }
  }
  Column& operator[](int c) { return columns[c]; }
  Column operator[](int c) const { return columns[c]; }
  Column operator[](int c) const __constant { return columns[c]; }
  // A copy from the constant space, which clang does not make by itself.
  template <class B, class = enable_if_t<is_same_v<B, matrix>>>
  matrix(const __constant B& other) {
    for (int c = 0; c < C; c++) columns[c] = other.columns[c];
  }
};

template <class T, int C, int R>
METAL_FUNC matrix<T, C, R> operator+(matrix<T, C, R> a, matrix<T, C, R> b) {
  for (int c = 0; c < C; c++) a.columns[c] += b.columns[c];
  return a;
}
template <class T, int C, int R>
METAL_FUNC matrix<T, C, R> operator-(matrix<T, C, R> a, matrix<T, C, R> b) {
  for (int c = 0; c < C; c++) a.columns[c] -= b.columns[c];
  return a;
}
template <class T, int C, int R>
METAL_FUNC matrix<T, C, R> operator-(matrix<T, C, R> a) {
  for (int c = 0; c < C; c++) a.columns[c] = -a.columns[c];
  return a;
}
template <class T, int C, int R>
METAL_FUNC matrix<T, C, R> operator*(matrix<T, C, R> a, plain<T> b) {
  for (int c = 0; c < C; c++) a.columns[c] *= b;
  return a;
}
template <class T, int C, int R>
METAL_FUNC matrix<T, C, R> operator*(plain<T> a, matrix<T, C, R> b) {
  return b * a;
}
// Columns are added by ascending number, fused where Metal may fuse.
template <class T, int C, int R>
METAL_FUNC vec<T, R> operator*(matrix<T, C, R> a, plain<vec<T, C>> v) {
  vec<T, R> sum = a.columns[0] * v[0];
  for (int c = 1; c < C; c++) sum = a.columns[c] * v[c] + sum;
  return sum;
}
template <class T, int C, int R>
METAL_FUNC vec<T, C> operator*(plain<vec<T, R>> v, matrix<T, C, R> a) {
  vec<T, C> result;
  for (int c = 0; c < C; c++) result[c] = dot(v, a.columns[c]);
  return result;
}
template <class T, int K, int R, int C>
METAL_FUNC matrix<T, C, R> operator*(matrix<T, K, R> a, matrix<T, C, K> b) {
  matrix<T, C, R> result;
  for (int c = 0; c < C; c++) result.columns[c] = a * b.columns[c];
  return result;
}
template <class T, int C, int R, class B>
METAL_FUNC thread matrix<T, C, R>& operator*=(thread matrix<T, C, R>& a, B b) {
  return a = a * b;
}
template <class T, int C, int R>
METAL_FUNC thread matrix<T, C, R>& operator+=(thread matrix<T, C, R>& a, matrix<T, C, R> b) {
  return a = a + b;
}
template <class T, int C, int R>
METAL_FUNC thread matrix<T, C, R>& operator-=(thread matrix<T, C, R>& a, matrix<T, C, R> b) {
  return a = a - b;
}
template <class T, int C, int R>
METAL_FUNC bool operator==(matrix<T, C, R> a, matrix<T, C, R> b) {
  bool same = true;
  for (int c = 0; c < C; c++) same = same && all(a.columns[c] == b.columns[c]);
  return same;
}
template <class T, int C, int R>
METAL_FUNC bool operator!=(matrix<T, C, R> a, matrix<T, C, R> b) {
  return !(a == b);
}

template <class T, int C, int R>
METAL_FUNC matrix<T, R, C> transpose(matrix<T, C, R> a) {
  matrix<T, R, C> result;
  for (int c = 0; c < C; c++)
    for (int r = 0; r < R; r++) result.columns[r][c] = a.columns[c][r];
  return result;
}

template <class T>
METAL_FUNC T determinant(matrix<T, 2, 2> m) {
  return m[0][0] * m[1][1] - m[1][0] * m[0][1];
}
template <class T>
METAL_FUNC T determinant(matrix<T, 3, 3> m) {
  return dot(m.columns[0], cross(m.columns[1], m.columns[2]));
}
template <class T>
METAL_FUNC T determinant(matrix<T, 4, 4> m) {
  T sum = T(0);
  for (int c = 0; c < 4; c++) {
    matrix<T, 3, 3> minor;
    for (int i = 0, k = 0; i < 4; i++)
      if (i != c) minor.columns[k++] = m.columns[i].yzw;
    sum = (c % 2 ? -m.columns[c].x : m.columns[c].x) * determinant(minor) + sum;
  }
  return sum;
}

}  // namespace metal

#define ASSAY_MATRIX(T, C, R)                         \
  typedef metal::matrix<T, C, R> T##C##x##R;          \
  namespace metal {                                   \
  using ::T##C##x##R;                                 \
  }
#define ASSAY_MATRICES(T)                                                     \
  ASSAY_MATRIX(T, 2, 2) ASSAY_MATRIX(T, 2, 3) ASSAY_MATRIX(T, 2, 4)           \
  ASSAY_MATRIX(T, 3, 2) ASSAY_MATRIX(T, 3, 3) ASSAY_MATRIX(T, 3, 4)           \
  ASSAY_MATRIX(T, 4, 2) ASSAY_MATRIX(T, 4, 3) ASSAY_MATRIX(T, 4, 4)
ASSAY_MATRICES(float)
ASSAY_MATRICES(half)
#undef ASSAY_MATRICES
#undef ASSAY_MATRIX
