// What MLX puts before the text of a custom kernel (its utils.h), as far as custom kernels use it.
#pragma once

#include "atomics.h"
#include "collectives.h"

using namespace metal;

struct complex64_t {
  float real, imag;
};

template <class U>
struct Limits {
  static constexpr __constant bool is_float = !numeric_limits<U>::is_integer;
  static constexpr U top() {
    if constexpr (is_float)
      return numeric_limits<U>::infinity();
    else
      return numeric_limits<U>::max();
  }
  static constexpr U bottom() {
    if constexpr (is_float)
      return -numeric_limits<U>::infinity();
    else
      return numeric_limits<U>::min();
  }
  static constexpr __constant U max = top();
  static constexpr __constant U min = bottom();
  static constexpr __constant U finite_max = numeric_limits<U>::max();
  static constexpr __constant U finite_min = numeric_limits<U>::lowest();
};

template <bool c, class T, class U>
struct ConditionalType {
  typedef metal::conditional_t<c, T, U> type;
};

METAL_FUNC ushort bfloat16_to_uint16(bfloat16_t x) { return as_type<ushort>(x); }
METAL_FUNC bfloat16_t uint16_to_bfloat16(ushort x) { return as_type<bfloat16_t>(x); }

// The last axis runs fastest in `elem`.
template <class I = int64_t>
METAL_FUNC I elem_to_loc(I elem, constant const int* shape, constant const int64_t* strides, int ndim) {
  I at = 0;
  for (int axis = ndim - 1; axis >= 0; axis--) {
    at += (elem % shape[axis]) * I(strides[axis]);
    elem /= shape[axis];
  }
  return at;
}

// A three-dimensional position: x is the last axis, y the one before, z all the others.
template <class I = int64_t>
METAL_FUNC I elem_to_loc(uint3 elem, constant const int* shape, constant const int64_t* strides, int ndim) {
  I at = elem.x * I(strides[ndim - 1]) + elem.y * I(strides[ndim - 2]);
  uint rest = elem.z;
  for (int axis = ndim - 3; axis >= 0; axis--) {
    at += (rest % shape[axis]) * I(strides[axis]);
    rest /= shape[axis];
  }
  return at;
}

template <class I = int64_t>
METAL_FUNC I elem_to_loc_1(uint elem, constant const int64_t& stride) {
  return elem * I(stride);
}
template <class I = int64_t>
METAL_FUNC I elem_to_loc_2(uint2 elem, constant const int64_t* strides) {
  return elem.x * I(strides[1]) + elem.y * I(strides[0]);
}
template <class I = int64_t>
METAL_FUNC I elem_to_loc_3(uint3 elem, constant const int64_t* strides) {
  return elem.x * I(strides[2]) + elem.y * I(strides[1]) + elem.z * I(strides[0]);
}

template <class T, class U>
inline T ceildiv(T n, U m) {
  return (n + m - 1) / m;
}

inline float log1p(float x) {
  const float y = 1.0f + x;
  if (y == INFINITY) return INFINITY;
  if (y == 1.0f) return x;
  return x * (metal::log(y) / (y - 1.0f));
}
inline bfloat16_t log1p(bfloat16_t x) { return bfloat16_t(log1p(float(x))); }
