// What the operations across lanes have in common on every machine: letter boxes, where a lane's value comes from, and the
// operations that join two.
#pragma once

#include "integer.h"
#include "launch.h"

namespace metal {

enum class mem_flags : uint {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16
};
METAL_FUNC constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
METAL_FUNC constexpr mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(uint(a) & uint(b)); }

}  // namespace metal

namespace assay {

template <class T>
METAL_FUNC T take(const ulong* box) {
  static_assert(sizeof(T) <= 16, "a simdgroup operation moves 16 bytes a lane at most");
  return *(const T*)box;
}
template <class T>
METAL_FUNC void leave(ulong* box, T v) {
  *(T*)box = v;
}

// Not a lane: the one that asks, where the operation says so, and one that there is not.
constexpr __constant uint kOwn = 64, kNone = 32;

enum Route { kDown, kUp, kXor, kIndex, kRotateDown, kRotateUp, kQuadDown, kQuadUp, kQuadXor, kQuadIndex,
             kQuadRotateDown, kQuadRotateUp };

METAL_FUNC constexpr uint source(Route route, uint lane, uint argument) {
  const uint base = lane & ~3u, quad = lane & 3u;
  switch (route) {
    case kDown: return lane + argument < 32u ? lane + argument : kOwn;
    case kUp: return argument <= lane ? lane - argument : kOwn;
    case kXor: return (lane ^ argument) < 32u ? lane ^ argument : kNone;
    case kIndex: return argument < 32u ? argument : kNone;
    case kRotateDown: return (lane + argument) & 31u;
    case kRotateUp: return (lane - argument) & 31u;
    case kQuadDown: return quad + argument < 4u ? lane + argument : kOwn;
    case kQuadUp: return argument <= quad ? lane - argument : kOwn;
    case kQuadXor: return (quad ^ argument) < 4u ? base + (quad ^ argument) : kNone;
    case kQuadIndex: return argument < 4u ? base + argument : kNone;
    case kQuadRotateDown: return base + ((quad + argument) & 3u);
    case kQuadRotateUp: return base + ((quad - argument) & 3u);
  }
  return kOwn;
}

struct Sum {
  template <class T>
  static METAL_FUNC T of(T a, T b) { return a + b; }
};
struct Product {
  template <class T>
  static METAL_FUNC T of(T a, T b) { return a * b; }
};
struct Max {
  template <class T>
  static METAL_FUNC T of(T a, T b) { return metal::max(a, b); }
};
struct Min {
  template <class T>
  static METAL_FUNC T of(T a, T b) { return metal::min(a, b); }
};
struct And {
  template <class T>
  static METAL_FUNC T of(T a, T b) { return a & b; }
};
struct Or {
  template <class T>
  static METAL_FUNC T of(T a, T b) { return a | b; }
};
struct Xor {
  template <class T>
  static METAL_FUNC T of(T a, T b) { return a ^ b; }
};

enum Order : uint { kAscending = 0, kDescending = 1, kSequential = 2, kReverseSequential = 3 };

}  // namespace assay
