// Metal's geometric functions, over vectors of float and half. Sums run from the first component on, fused where Metal may
// fuse.
#pragma once

#include "relational.h"

namespace metal {

template <class V, assay::if_vector<V> = 0>
METAL_FUNC assay::element_t<V> dot(V a, plain<V> b) {
  assay::element_t<V> sum = a[0] * b[0];
  for (int i = 1; i < assay::vector_traits<V>::size; i++) sum = a[i] * b[i] + sum;
  return sum;
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC assay::element_t<V> length_squared(V a) {
  return dot(a, a);
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC assay::element_t<V> length(V a) {
  return sqrt(dot(a, a));
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC assay::element_t<V> distance_squared(V a, plain<V> b) {
  return length_squared(a - b);
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC assay::element_t<V> distance(V a, plain<V> b) {
  return length(a - b);
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V normalize(V a) {
  return a * rsqrt(dot(a, a));
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V faceforward(V n, plain<V> incident, plain<V> reference) {
  return dot(reference, incident) < assay::element_t<V>(0) ? n : -n;
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V reflect(V incident, plain<V> n) {
  return incident - assay::element_t<V>(2) * dot(n, incident) * n;
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V refract(V incident, plain<V> n, assay::element_t<V> ratio) {
  typedef assay::element_t<V> T;
  const T along = dot(n, incident), k = T(1) - ratio * ratio * (T(1) - along * along);
  return k < T(0) ? V(T(0)) : ratio * incident - (ratio * along + sqrt(k)) * n;
}
template <class V, assay::if_vector<V> = 0>
METAL_FUNC V cross(V a, plain<V> b) {
  static_assert(assay::vector_traits<V>::size == 3, "cross takes vectors of three");
  return a.yzx * b.zxy - a.zxy * b.yzx;
}

#define ASSAY_FLOAT_GEOMETRY                                                                                 \
  template <class V, assay::if_float_vector<V> = 0>                                                          \
  METAL_FUNC float length(V a) {                                                                             \
    return metal::length(a);                                                                                 \
  }                                                                                                          \
  template <class V, assay::if_float_vector<V> = 0>                                                          \
  METAL_FUNC float distance(V a, plain<V> b) {                                                               \
    return metal::distance(a, b);                                                                            \
  }                                                                                                          \
  template <class V, assay::if_float_vector<V> = 0>                                                          \
  METAL_FUNC V normalize(V a) {                                                                              \
    return metal::normalize(a);                                                                              \
  }
namespace precise {
ASSAY_FLOAT_GEOMETRY
}
namespace fast {
ASSAY_FLOAT_GEOMETRY
}
#undef ASSAY_FLOAT_GEOMETRY

}  // namespace metal
