// Barriers, threadgroup arrays, and the operations across the lanes of a simdgroup or a quad.
//
// Every lane leaves its value in its letter box and waits; the last to arrive completes the operation for all. Where
// lanes diverge, those that wait at one call act together (convergence.py), the others are inactive.
#pragma once

#include "integer.h"
#include "launch.h"

extern "C" {
assay::Lane* assay_lane();
uint assay_lane_index();
void* assay_arena();
void assay_simdgroup(int site, void (*complete)(assay::Lane*, uint));
void assay_barrier(int site);
uint assay_simd_order();
#ifdef ASSAY_CHECKED
void assay_flagged_barrier(int site, uint flags);
void assay_flagged_simdgroup_barrier(int site, uint flags);
uint assay_garbage(bool seen);
bool assay_garbage_varied();
void assay_fence(uint flags);
__attribute__((const)) void* assay_array(uint number);
#endif
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

#ifdef ASSAY_CHECKED
METAL_FUNC void threadgroup_barrier(mem_flags flags, int site = __builtin_LINE()) {
  assay_flagged_barrier(site, uint(flags));
}
#else
METAL_FUNC void threadgroup_barrier(mem_flags, int site = __builtin_LINE()) { assay_barrier(site); }
#endif

}  // namespace metal

namespace assay {

static uint threadgroup_bytes = 0;

#ifdef ASSAY_CHECKED
constexpr __constant uint kMaxArrays = 128;
// Of each array: its bytes, the bytes of the smallest part of it that is written at once, and those of an element.
extern "C" {
__attribute__((visibility("default"))) uint assay_threadgroup_arrays[kMaxArrays][3] = {};
}
#endif

// Beyond 32 bits it is the most that they hold: more than any threadgroup may have.
METAL_FUNC uint in_32_bits(ulong n) { return n < 0xfffffff0ul ? uint(n) : 0xfffffff0u; }

inline uint lay_out(uint declaration, ulong bytes, uint unit, ulong element) {
#ifdef ASSAY_CHECKED
  assay_threadgroup_arrays[declaration][0] = in_32_bits(bytes);
  assay_threadgroup_arrays[declaration][1] = unit;
  assay_threadgroup_arrays[declaration][2] = in_32_bits(element);
#endif
  const uint at = threadgroup_bytes;
  threadgroup_bytes = in_32_bits((at + bytes + 15ul) & ~15ul);
  return at;
}

template <class A>
struct element_of {
  typedef A type;
};
template <class A, size_t n>
struct element_of<A[n]> : element_of<A> {};

// One for each threadgroup declaration of the kernel that was compiled, laid out when the library is loaded.
template <int Declaration, class A>
struct threadgroup_slot {
  typedef typename element_of<A>::type E;
  static inline uint offset = lay_out(Declaration, sizeof(A), alignof(E) < 4 ? uint(alignof(E)) : 4u, sizeof(E));
};

template <int Declaration, class A>
METAL_FUNC __local A& threadgroup_variable() {
#ifdef ASSAY_CHECKED
  static_assert(Declaration < kMaxArrays, "the checker knows 128 threadgroup arrays of a kernel at most");
  (void)&threadgroup_slot<Declaration, A>::offset;
  return *(__local A*)assay_array(Declaration);
#else
  return *(__local A*)((ulong)assay_arena() + threadgroup_slot<Declaration, A>::offset);
#endif
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
METAL_FUNC T garbage(bool seen) {
#ifdef ASSAY_CHECKED
  const ulong word = ulong(assay_garbage(seen)) * 0x100000001ul;
#else
  const ulong word = 0xdeadbeefdeadbeeful;
#endif
  const ulong pattern[2] = {word, word};
  return take<T>(pattern);
}

// What a lane gets from a number that no lane has: its own value, as an open emulator of the M1's GPU does. The checker
// puts garbage in its place where it asks whether an output depends on it.
template <class T>
METAL_FUNC T nobody(T own, bool seen) {
#ifdef ASSAY_CHECKED
  const T other = garbage<T>(seen);
  if (assay_garbage_varied()) return other;
#endif
  return own;
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

template <Route route, class T>
void shuffle(Lane* lanes, uint mask) {
  for (uint i = 0; i < kLanes; i++) {
    const uint from = source(route, i, lanes[i].argument & 0xffffu);
    const uint lane = from == kOwn ? i : from;
    const bool seen = (mask >> i) & 1u;
    if (lane == kNone)
      leave(lanes[i].result, nobody(take<T>(lanes[i].value), seen));
    else
      leave(lanes[i].result, (mask >> lane) & 1u ? take<T>(lanes[lane].value) : garbage<T>(seen));
  }
}

// A window of `modulo` lanes; what would come from beyond its end comes from the other end of the filling.
template <bool down, class T>
void shuffle_and_fill(Lane* lanes, uint mask) {
  for (uint i = 0; i < kLanes; i++) {
    const uint delta = lanes[i].argument & 0xffffu, modulo = lanes[i].argument >> 16 & 0xffu;
    const uint base = i / modulo * modulo, at = i - base;
    const bool inside = down ? at + delta < modulo : delta <= at;
    const uint lane = base + (down ? (at + delta) % modulo : (at + modulo - delta % modulo) % modulo);
    const bool active = (mask >> lane) & 1u;
    leave(lanes[i].result, !active ? garbage<T>((mask >> i) & 1u) : take<T>(inside ? lanes[lane].value : lanes[lane].fill));
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

enum Order : uint { kAscending = 0, kDescending = 1, kSequential = 2, kReverseSequential = 3 };

// Sums and products are taken in the order that the launch asks for; what has one result in every order, in the first.
template <class Operation>
METAL_FUNC uint order() {
  if constexpr (metal::is_same_v<Operation, Sum> || metal::is_same_v<Operation, Product>)
    return assay_simd_order();
  else
    return kAscending;
}

// Joins what two sets of lanes have; a set without an active lane has nothing.
template <class Operation, class T>
METAL_FUNC void join(T& v, bool& some, T other, bool other_some) {
  if (some && other_some) v = Operation::of(v, other);
  if (!some && other_some) v = other;
  some |= other_some;
}

// The distances of a butterfly, from step 0: 1, 2, 4 ... or ... 4, 2, 1.
METAL_FUNC uint distance(uint order, uint step, uint width) { return order == kDescending ? width >> (step + 1u) : 1u << step; }

// Butterflies: a lane joins the one that differs by xor with the distance; every lane ends with the same tree, since the
// operations commute.
template <class Operation, class T, uint width>
void reduce(Lane* lanes, uint mask) {
  const uint order = assay::order<Operation>();
  for (uint base = 0; base < kLanes; base += width) {
    T v[width];
    bool some[width];
    for (uint i = 0; i < width; i++) {
      const uint lane = base + (order == kReverseSequential ? width - 1u - i : i);
      v[i] = take<T>(lanes[lane].value);
      some[i] = (mask >> lane) & 1u;
    }
    if (order >= kSequential)
      for (uint i = 1; i < width; i++) join<Operation, T>(v[0], some[0], v[i], some[i]);
    else
      for (uint step = 0; 1u << step < width; step++) {
        const uint d = distance(order, step, width), count = order == kDescending ? d : width, stride = order == kDescending ? 1u : 2u * d;
        for (uint i = 0; i < count; i += stride) join<Operation, T>(v[i], some[i], v[i + d], some[i + d]);
      }
    for (uint i = 0; i < width; i++) leave(lanes[base + i].result, v[0]);
  }
}

// What the lanes up to `last` have together, added from its end.
template <class Operation, class T>
METAL_FUNC void join_down(T& v, bool& some, const T* each, const bool* active, uint last) {
  for (int i = int(last); i >= 0; i--) join<Operation, T>(v, some, each[i], active[i]);
}

// Butterflies: a lane joins the one below it at the distance, so the last lane ends with the tree of the reduction.
template <class Operation, class T, bool inclusive, uint width>
void scan(Lane* lanes, uint mask) {
  const uint order = assay::order<Operation>();
  for (uint base = 0; base < kLanes; base += width) {
    T v[width], up_to[width];
    bool some[width], any[width];
    for (uint i = 0; i < width; i++) {
      v[i] = up_to[i] = take<T>(lanes[base + i].value);
      some[i] = any[i] = (mask >> (base + i)) & 1u;
    }
    if (order == kSequential) {
      for (uint i = 1; i < width; i++) {
        up_to[i] = up_to[i - 1u], any[i] = any[i - 1u];
        join<Operation, T>(up_to[i], any[i], v[i], some[i]);
      }
    } else if (order == kReverseSequential) {
      for (uint i = 0; i < width; i++) {
        any[i] = false;
        join_down<Operation, T>(up_to[i], any[i], v, some, i);
      }
    } else {
      for (uint step = 0; 1u << step < width; step++) {
        const uint d = distance(order, step, width);
        for (uint i = width - 1u; i >= d; i--) join<Operation, T>(up_to[i], any[i], up_to[i - d], any[i - d]);
      }
    }
    const T nothing = static_cast<T>(metal::is_same_v<Operation, Product> ? 1 : 0);
    for (uint i = 0; i < width; i++) {
      if (!some[i]) continue;
      const bool before = i && any[i - 1u];
      leave(lanes[base + i].result, inclusive ? up_to[i] : before ? up_to[i - 1u] : nothing);
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

METAL_FUNC Lane ballot(bool vote_of_lane, int site, uint argument = 0) {
  Lane* lane = assay_lane();
  lane->argument = argument;
  lane->value[0] = vote_of_lane;
  assay_simdgroup(site, &vote);
  return *lane;
}

}  // namespace assay
