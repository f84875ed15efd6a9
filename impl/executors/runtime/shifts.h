// Counts of shifts under the checker. Clang folds a constant count modulo the width, as OpenCL asks; what a function
// gives it does not fold, unless a constant is called for.
#pragma once

#include "types.h"

namespace assay {

struct Kept {};
struct Folded {};

template <class T>
METAL_FUNC T unfolded(T count) {
  return count;
}

// A count of 32 or more is no constant, so neither is what is shifted by it.
template <class T>
METAL_FUNC constexpr T operator+(Kept, T count) {
  if constexpr (__is_integral(T))
    return count >= T(0) && count < T(32) ? count : unfolded(count);
  else
    return count;
}

template <class T>
METAL_FUNC constexpr T operator+(Folded, T count) {
  return count;
}

}  // namespace assay
