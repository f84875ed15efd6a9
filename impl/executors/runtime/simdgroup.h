// Barriers, threadgroup arrays, and the operations across the lanes of a simdgroup or a quad.
//
// Every lane leaves its value in its letter box and waits; the last to arrive completes the operation for all. The call's
// line tells calls apart when lanes diverge: lanes that wait at one line act together, the others are inactive.
#pragma once

#include "integer.h"
#include "launch.h"

extern "C" {
assay::Lane* assay_lane();
void* assay_arena();
void assay_simdgroup(int site, void (*complete)(assay::Lane*, uint));
void assay_barrier(int site);
}

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

METAL_FUNC void threadgroup_barrier(mem_flags, int site = __builtin_LINE()) { assay_barrier(site); }

}  // namespace metal

namespace assay {

static uint threadgroup_bytes = 0;

inline uint lay_out(uint bytes) {
  const uint at = threadgroup_bytes;
  threadgroup_bytes = (at + bytes + 15u) & ~15u;
  return at;
}

// One for each threadgroup declaration of the kernel that was compiled, laid out when the library is loaded.
template <int Declaration, class A>
struct threadgroup_slot {
  static inline uint offset = lay_out(sizeof(A));
};

template <int Declaration, class A>
METAL_FUNC __local A& threadgroup_variable() {
  return *(__local A*)((ulong)assay_arena() + threadgroup_slot<Declaration, A>::offset);
}

template <class T>
METAL_FUNC T take(const ulong* box) {
  static_assert(sizeof(T) <= 16, "a simdgroup operation moves 16 bytes a lane at most");
  return *(const T*)box;
}
template <class T>
METAL_FUNC void leave(ulong* box, T v) {
  *(T*)box = v;
}

// What a lane gets from one that is not there. Its own pattern, so that a wrong result can be traced.
template <class T>
METAL_FUNC T garbage() {
  const ulong pattern[2] = {0xdeadbeefdeadbeeful, 0xdeadbeefdeadbeeful};
  return take<T>(pattern);
}

constexpr __constant uint kOwn = 64;

enum Route { kDown, kUp, kXor, kIndex, kRotateDown, kRotateUp, kQuadDown, kQuadUp, kQuadXor, kQuadIndex };

METAL_FUNC constexpr uint source(Route route, uint lane, uint argument) {
  const uint base = lane & ~3u, quad = lane & 3u;
  switch (route) {
    case kDown: return lane + argument < 32u ? lane + argument : kOwn;
    case kUp: return argument <= lane ? lane - argument : kOwn;
    case kXor: return (lane ^ argument) < 32u ? lane ^ argument : kOwn;
    case kIndex: return argument < 32u ? argument : kOwn;
    case kRotateDown: return (lane + argument) & 31u;
    case kRotateUp: return (lane - argument) & 31u;
    case kQuadDown: return quad + argument < 4u ? lane + argument : kOwn;
    case kQuadUp: return argument <= quad ? lane - argument : kOwn;
    case kQuadXor: return (quad ^ argument) < 4u ? base + (quad ^ argument) : kOwn;
    case kQuadIndex: return argument < 4u ? base + argument : kOwn;
  }
  return kOwn;
}

template <Route route, class T>
void shuffle(Lane* lanes, uint mask) {
  for (uint i = 0; i < kLanes; i++) {
    const uint from = source(route, i, lanes[i].argument);
    const uint lane = from == kOwn ? i : from;
    leave(lanes[i].result, (mask >> lane) & 1u ? take<T>(lanes[lane].value) : garbage<T>());
  }
}

// A window of `modulo` lanes; what would come from beyond its end comes from the other end of the filling.
template <bool down, class T>
void shuffle_and_fill(Lane* lanes, uint mask) {
  for (uint i = 0; i < kLanes; i++) {
    const uint delta = lanes[i].argument & 0xffffu, modulo = lanes[i].argument >> 16;
    const uint base = i / modulo * modulo, at = i - base;
    const bool inside = down ? at + delta < modulo : delta <= at;
    const uint lane = base + (down ? (at + delta) % modulo : (at + modulo - delta % modulo) % modulo);
    const bool active = (mask >> lane) & 1u;
    leave(lanes[i].result, !active ? garbage<T>() : take<T>(inside ? lanes[lane].value : lanes[lane].fill));
  }
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

// The ascending xor butterfly: distances 1, 2, 4, 8, 16. Every lane ends with the same tree, since the operations commute.
template <class Operation, class T, uint width>
void reduce(Lane* lanes, uint mask) {
  for (uint base = 0; base < kLanes; base += width) {
    T v[width];
    uint active = width == 32u ? mask : (mask >> base) & ((1u << (width & 31u)) - 1u);
    for (uint i = 0; i < width; i++) v[i] = take<T>(lanes[base + i].value);
    for (uint d = 1; d < width; d *= 2)
      for (uint i = 0; i < width; i += 2 * d) {
        const bool left = (active >> i) & 1u, right = (active >> (i + d)) & 1u;
        if (left && right) v[i] = Operation::of(v[i], v[i + d]);
        if (!left && right) v[i] = v[i + d];
        active |= (right ? 1u : 0u) << i;
      }
    for (uint i = 0; i < width; i++) leave(lanes[base + i].result, v[0]);
  }
}

template <class Operation, class T, bool inclusive, uint width>
void scan(Lane* lanes, uint mask) {
  for (uint base = 0; base < kLanes; base += width) {
    T sum = static_cast<T>(metal::is_same_v<Operation, Product> ? 1 : 0);
    for (uint i = base; i < base + width; i++) {
      if (!((mask >> i) & 1u)) continue;
      const T next = Operation::of(sum, take<T>(lanes[i].value));
      leave(lanes[i].result, inclusive ? next : sum);
      sum = next;
    }
  }
}

inline void vote(Lane* lanes, uint mask) {
  ulong yes = 0;
  for (uint i = 0; i < kLanes; i++)
    if (((mask >> i) & 1u) && lanes[i].value[0]) yes |= 1ul << i;
  for (uint i = 0; i < kLanes; i++) {
    lanes[i].result[0] = yes;
    lanes[i].result[1] = mask;
    lanes[i].fill[0] = i;
  }
}

template <class T>
void first(Lane* lanes, uint mask) {
  const T v = take<T>(lanes[__builtin_ctz(mask)].value);
  for (uint i = 0; i < kLanes; i++) leave(lanes[i].result, v);
}

template <class T>
void quad_first(Lane* lanes, uint mask) {
  for (uint i = 0; i < kLanes; i++) {
    const uint quad = (mask >> (i & ~3u)) & 15u;
    if (quad) leave(lanes[i].result, take<T>(lanes[(i & ~3u) + __builtin_ctz(quad)].value));
  }
}

inline void meet(Lane*, uint) {}

template <class T>
METAL_FUNC T collective(T v, uint argument, int site, void (*complete)(Lane*, uint)) {
  Lane* lane = assay_lane();
  leave(lane->value, v);
  lane->argument = argument;
  assay_simdgroup(site, complete);
  return take<T>(lane->result);
}

template <class T>
METAL_FUNC T collective_fill(T v, T filling, uint argument, int site, void (*complete)(Lane*, uint)) {
  leave(assay_lane()->fill, filling);
  return collective(v, argument, site, complete);
}

METAL_FUNC Lane ballot(bool vote_of_lane, int site) {
  Lane* lane = assay_lane();
  lane->value[0] = vote_of_lane;
  assay_simdgroup(site, &vote);
  return *lane;
}

}  // namespace assay
