// Packed vectors: their element's size times their length, and its alignment.
#pragma once

#include "vectors.h"

namespace assay {

// Elements by name and index; it converts to the vector and back, and computes as one.
template <class T, int N>
struct packed_elements;
template <class T>
struct packed_elements<T, 2> {
  union { T x, r; };
  union { T y, g; };
};
template <class T>
struct packed_elements<T, 3> {
  union { T x, r; };
  union { T y, g; };
  union { T z, b; };
};
template <class T>
struct packed_elements<T, 4> {
  union { T x, r; };
  union { T y, g; };
  union { T z, b; };
  union { T w, a; };
};

template <class T, int N>
struct packed_vector : packed_elements<T, N> {
  typedef metal::vec<T, N> V;
  packed_vector() = default;
  packed_vector(const packed_vector&) = default;
  packed_vector(V v) {
    for (int i = 0; i < N; i++) (&this->x)[i] = v[i];
  }
  template <class A, class = metal::enable_if_t<metal::is_arithmetic_v<A>>>
  packed_vector(A a) : packed_vector(V(static_cast<T>(a))) {}
  template <class A, class B, class... More>
  packed_vector(A a, B b, More... more) : packed_vector(construct<V>(a, b, more...)) {}

  // One operator for every space but constant: what a function returns lies in none of them.
  T& operator[](int i) { return *((T*)this + i); }
  T operator[](int i) const { return *((const T*)this + i); }
  operator V() const {
    V v;
    for (int i = 0; i < N; i++) v[i] = *((const T*)this + i);
    return v;
  }
  packed_vector& operator=(V v) {
    for (int i = 0; i < N; i++) *((T*)this + i) = v[i];
    return *this;
  }
  packed_vector& operator=(const packed_vector& v) {
    for (int i = 0; i < N; i++) *((T*)this + i) = v[i];
    return *this;
  }
  T operator[](int i) const __constant { return *((const __constant T*)this + i); }
  operator V() const __constant {
    V v;
    for (int i = 0; i < N; i++) v[i] = *((const __constant T*)this + i);
    return v;
  }
};

template <class T, int N>
struct vector_traits<packed_vector<T, N>> : traits_of_vector<T, N, false> {};

#define ASSAY_PACKED_OPERATOR(op)                                                                            \
  template <class T, int N>                                                                                  \
  METAL_FUNC auto operator op(packed_vector<T, N> a, packed_vector<T, N> b) {                                \
    return metal::vec<T, N>(a) op metal::vec<T, N>(b);                                                       \
  }                                                                                                          \
  template <class T, int N>                                                                                  \
  METAL_FUNC auto operator op(packed_vector<T, N> a, metal::plain<metal::vec<T, N>> b) {                     \
    return metal::vec<T, N>(a) op b;                                                                         \
  }                                                                                                          \
  template <class T, int N>                                                                                  \
  METAL_FUNC auto operator op(metal::plain<metal::vec<T, N>> a, packed_vector<T, N> b) {                     \
    return a op metal::vec<T, N>(b);                                                                         \
  }
ASSAY_PACKED_OPERATOR(+)
ASSAY_PACKED_OPERATOR(-)
ASSAY_PACKED_OPERATOR(*)
ASSAY_PACKED_OPERATOR(/)
ASSAY_PACKED_OPERATOR(<)
ASSAY_PACKED_OPERATOR(>)
ASSAY_PACKED_OPERATOR(<=)
ASSAY_PACKED_OPERATOR(>=)
ASSAY_PACKED_OPERATOR(==)
ASSAY_PACKED_OPERATOR(!=)
#undef ASSAY_PACKED_OPERATOR
#define ASSAY_PACKED_ASSIGNMENT(op)                                                                   \
  template <class T, int N, class B>                                                                         \
  METAL_FUNC packed_vector<T, N>& operator op##=(packed_vector<T, N>& a, B b) {                              \
    return a = metal::vec<T, N>(a) op b;                                                                     \
  }
ASSAY_PACKED_ASSIGNMENT(+)
ASSAY_PACKED_ASSIGNMENT(-)
ASSAY_PACKED_ASSIGNMENT(*)
ASSAY_PACKED_ASSIGNMENT(/)
#undef ASSAY_PACKED_ASSIGNMENT
template <class T, int N>
METAL_FUNC metal::vec<T, N> operator-(packed_vector<T, N> a) {
  return -metal::vec<T, N>(a);
}

}  // namespace assay

#define ASSAY_PACKED_SIZE(type, n)                                            \
  typedef assay::packed_vector<type, n> packed_##type##n;                     \
  static_assert(sizeof(packed_##type##n) == n * sizeof(type), "packed");      \
  namespace metal {                                                           \
  using ::packed_##type##n;                                                   \
  }
#define ASSAY_PACKED(type) ASSAY_PACKED_SIZE(type, 2) ASSAY_PACKED_SIZE(type, 3) ASSAY_PACKED_SIZE(type, 4)
ASSAY_PACKED(char)
ASSAY_PACKED(uchar)
ASSAY_PACKED(short)
ASSAY_PACKED(ushort)
ASSAY_PACKED(int)
ASSAY_PACKED(uint)
ASSAY_PACKED(long)
ASSAY_PACKED(ulong)
ASSAY_PACKED(half)
ASSAY_PACKED(float)
#undef ASSAY_PACKED
#undef ASSAY_PACKED_SIZE
