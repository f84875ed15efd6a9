// Metal's vectors. Arithmetic ones are clang's ext vectors, with their swizzles; a vector of bfloat is a struct.
#pragma once

#include "bfloat.h"

namespace assay {

template <int N>
struct bfloat_vector;
template <>
struct bfloat_vector<2> {
  bfloat x, y;
};
template <>
struct bfloat_vector<3> {
  bfloat x, y, z, padding;
};
template <>
struct bfloat_vector<4> {
  bfloat x, y, z, w;
};

template <class T, int N>
struct vector_of {
  typedef T type __attribute__((ext_vector_type(N)));
};
template <int N>
struct vector_of<bfloat, N> {
  typedef bfloat_vector<N> type;
};

template <class T>
struct vector_traits {
  typedef T element;
  static constexpr __constant int size = 1;
  static constexpr __constant bool is_vector = false;
};
template <class T, int N>
struct vector_traits<T __attribute__((ext_vector_type(N)))> {
  typedef T element;
  static constexpr __constant int size = N;
  static constexpr __constant bool is_vector = true;
};
template <int N>
struct vector_traits<bfloat_vector<N>> {
  typedef bfloat element;
  static constexpr __constant int size = N;
  static constexpr __constant bool is_vector = true;
};

template <class V>
using element_t = typename vector_traits<V>::element;
template <class V>
using if_vector = metal::enable_if_t<vector_traits<V>::is_vector && !metal::is_same_v<element_t<V>, bfloat>, int>;

template <class V>
METAL_FUNC element_t<V> get(V v, int i) {
  if constexpr (!vector_traits<V>::is_vector)
    return v;
  else if constexpr (metal::is_same_v<element_t<V>, bfloat>)
    return (&v.x)[i];
  else
    return v[i];
}

template <class V>
METAL_FUNC void put(__private V& v, int i, element_t<V> e) {
  if constexpr (metal::is_same_v<element_t<V>, bfloat>)
    (&v.x)[i] = e;
  else
    v[i] = e;
}

template <class V, class A>
METAL_FUNC int append(__private V& v, int at, A a) {
  for (int i = 0; i < vector_traits<A>::size; i++) put(v, at++, static_cast<element_t<V>>(get(a, i)));
  return at;
}

template <class V, class A>
METAL_FUNC V construct(A a) {
  V v;
  if constexpr (vector_traits<A>::is_vector) {
    static_assert(vector_traits<A>::size == vector_traits<V>::size, "a vector is made of one of the same size");
    append(v, 0, a);
  } else {
    for (int i = 0; i < vector_traits<V>::size; i++) put(v, i, static_cast<element_t<V>>(a));
  }
  return v;
}

template <class V, class A, class B, class... More>
METAL_FUNC V construct(A a, B b, More... more) {
  static_assert(vector_traits<A>::size + vector_traits<B>::size + (0 + ... + vector_traits<More>::size) ==
                    vector_traits<V>::size,
                "the parts of a vector add up to its size");
  V v;
  int at = append(v, 0, a);
  at = append(v, at, b);
  ((at = append(v, at, more)), ...);
  return v;
}

}  // namespace assay

namespace metal {

template <class T, int N>
using vec = typename assay::vector_of<T, N>::type;

template <class T, int N, class... A>
METAL_FUNC vec<T, N> make_vec(A... a) {
  if constexpr (sizeof...(A) == 0)
    return vec<T, N>{};
  else
    return assay::construct<vec<T, N>>(a...);
}

}  // namespace metal

#define ASSAY_VECTOR(type, n)                      \
  typedef metal::vec<type, n> type##n;             \
  namespace metal {                                \
  using ::type##n;                                 \
  template <class... A>                            \
  METAL_FUNC type##n make_##type##n(A... a) {      \
    return make_vec<type, n>(a...);                \
  }                                                \
  }
#define ASSAY_VECTORS(type) ASSAY_VECTOR(type, 2) ASSAY_VECTOR(type, 3) ASSAY_VECTOR(type, 4)
ASSAY_VECTORS(char)
ASSAY_VECTORS(uchar)
ASSAY_VECTORS(short)
ASSAY_VECTORS(ushort)
ASSAY_VECTORS(int)
ASSAY_VECTORS(uint)
ASSAY_VECTORS(long)
ASSAY_VECTORS(ulong)
ASSAY_VECTORS(half)
ASSAY_VECTORS(float)
ASSAY_VECTORS(bfloat)
#undef ASSAY_VECTORS
#undef ASSAY_VECTOR

// Packed vectors have their element's alignment. A packed vector of three would need other code in clang: not offered.
#define ASSAY_PACKED(type)                                                                           \
  typedef type packed_##type##2 __attribute__((ext_vector_type(2), aligned(sizeof(type))));          \
  typedef type packed_##type##4 __attribute__((ext_vector_type(4), aligned(sizeof(type))));
ASSAY_PACKED(char)
ASSAY_PACKED(uchar)
ASSAY_PACKED(short)
ASSAY_PACKED(ushort)
ASSAY_PACKED(int)
ASSAY_PACKED(uint)
ASSAY_PACKED(half)
ASSAY_PACKED(float)
#undef ASSAY_PACKED

namespace metal {
using ::bfloat;
using ::uchar;
using ::uint;
using ::ulong;
using ::ushort;
typedef half float16;
}  // namespace metal
