// Barriers, threadgroup arrays, and the operations across lanes, where a simdgroup is a warp of an NVIDIA GPU.
//
// The lanes at one call are those that the hardware has brought together there. What has no quick way of its own goes by
// the letter boxes of all lanes, in each lane's private memory, as on the host.
#pragma once

#include "lanes.h"

#ifndef ASSAY_SIMD_ORDER
#define ASSAY_SIMD_ORDER 0
#endif

extern "C" {
// Where the array of a declaration begins; the compilation lays them out and puts the address in its place.
__local void* assay_array(uint declaration, ulong bytes, ulong alignment);
}
METAL_FUNC uint assay_lane_index() { return uint(__nvvm_read_ptx_sreg_laneid()); }

namespace metal {

METAL_FUNC void threadgroup_barrier(mem_flags, int = 0) { __nvvm_bar_sync(0); }

}  // namespace metal

namespace assay {

template <int Declaration, class A>
METAL_FUNC __local A& threadgroup_variable() {
  return *(__local A*)assay_array(Declaration, sizeof(A), alignof(A) < 16 ? 16 : alignof(A));
}

template <class T>
METAL_FUNC T garbage() {
  const ulong pattern[2] = {0xdeadbeefdeadbeeful, 0xdeadbeefdeadbeeful};
  return take<T>(pattern);
}
template <class T>
METAL_FUNC T nobody(T own) {
  return own;
}
template <class T>
METAL_FUNC T windowless() {
  return garbage<T>();
}

template <class Operation>
METAL_FUNC uint order() {
  if constexpr (metal::is_same_v<Operation, Sum> || metal::is_same_v<Operation, Product>)
    return ASSAY_SIMD_ORDER;
  else
    return kAscending;
}

METAL_FUNC uint active() { return uint(__nvvm_activemask()); }
constexpr __constant uint kEveryLane = 0xffffffffu;

// The value of another lane, which has to be one of `mask`.
template <class T>
METAL_FUNC T value_of(T v, uint lane, uint mask) {
  uint words[(sizeof(T) + 3) / 4] = {};
  *(T*)words = v;
  for (uint i = 0; i < sizeof(words) / 4; i++) words[i] = uint(__nvvm_shfl_sync_idx_i32(mask, int(words[i]), int(lane), 31));
  return *(const T*)words;
}

// The lane's own, or what an absent one gives.
template <class T>
METAL_FUNC T fetched(T v, uint lane, uint mask) {
  const bool there = (mask >> lane) & 1u;
  T other = value_of(v, there ? lane : assay_lane_index(), mask);
  if (!there) other = garbage<T>();
  return other;
}

// The way of an operation that needs no letter boxes; `across` gives false where it has none for these lanes.
template <class A>
struct Way {
  template <class T>
  static METAL_FUNC bool across(__private T&, T, uint, uint) { return false; }
};

METAL_FUNC void swap_boxes(__private Lane* lanes, Lane own, uint mask) {
  for (uint i = 0; i < kLanes; i++) {
    if (!((mask >> i) & 1u)) continue;
    lanes[i].value[0] = value_of(own.value[0], i, mask), lanes[i].value[1] = value_of(own.value[1], i, mask);
    lanes[i].fill[0] = value_of(own.fill[0], i, mask), lanes[i].fill[1] = value_of(own.fill[1], i, mask);
    lanes[i].argument = value_of(own.argument, i, mask);
  }
}

template <class A>
METAL_FUNC Lane exchanged(Lane own, int) {
  const uint mask = active();
  if constexpr (metal::is_same_v<A, Meet> || metal::is_same_v<A, Transfer>) {
    __nvvm_bar_warp_sync(mask);
    return own;
  } else {
    Lane lanes[kLanes];
    swap_boxes(lanes, own, mask);
    A::complete(lanes, mask);
    return lanes[assay_lane_index()];
  }
}

template <class A, class T>
METAL_FUNC T collective_fill(T v, T filling, uint argument, int site) {
  T result = v;
  if (Way<A>::across(result, filling, argument, active())) return result;
  Lane own;
  leave(own.value, v);
  leave(own.fill, filling);
  own.argument = argument;
  return take<T>(exchanged<A>(own, site).result);
}

template <class A, class T>
METAL_FUNC T collective(T v, uint argument, int site) {
  return collective_fill<A>(v, v, argument, site);
}

template <Route route, class T>
struct Way<Shuffle<route, T>> {
  static METAL_FUNC bool across(__private T& v, T, uint argument, uint mask) {
    const uint from = source(route, assay_lane_index(), argument & 0xffffu);
    v = fetched(v, from < kLanes ? from : assay_lane_index(), mask);
    return true;
  }
};

template <bool down, class T>
struct Way<ShuffleAndFill<down, T>> {
  static METAL_FUNC bool across(__private T& v, T filling, uint argument, uint mask) {
    const uint given = window(argument >> 16 & 0xffu, kLanes), delta = argument & 0xffffu, modulo = given ? given : kLanes;
    const uint lane = assay_lane_index(), base = lane / modulo * modulo, at = lane - base;
    const bool inside = down ? at + delta < modulo : delta <= at;
    const uint from = base + (down ? (at + delta) % modulo : (at + modulo - delta % modulo) % modulo);
    const T value = fetched(v, from, mask), fill = fetched(filling, from, mask);
    v = fill;
    if (inside) v = value;
    if (!given) v = windowless<T>();
    return true;
  }
};

// Of two lanes that join, the lower one's value stands first, as in the letter boxes.
template <class Operation, class T, uint width>
struct Way<Reduce<Operation, T, width>> {
  static METAL_FUNC bool across(__private T& v, T, uint, uint mask) {
    const uint order = assay::order<Operation>();
    if (mask != kEveryLane || order >= kSequential) return false;
    for (uint step = 0; 1u << step < width; step++) {
      const uint d = distance(order, step, width), lane = assay_lane_index();
      const T other = value_of(v, lane ^ d, mask);
      if (lane & d)
        v = Operation::of(other, v);
      else
        v = Operation::of(v, other);
    }
    return true;
  }
};

template <class Operation, class T, bool inclusive, uint width>
struct Way<Scan<Operation, T, inclusive, width>> {
  static METAL_FUNC bool across(__private T& v, T, uint, uint mask) {
    const uint order = assay::order<Operation>();
    if (mask != kEveryLane || order >= kSequential) return false;
    const uint lane = assay_lane_index(), at = lane % width;
    for (uint step = 0; 1u << step < width; step++) {
      const uint d = distance(order, step, width);
      const T other = value_of(v, at >= d ? lane - d : lane, mask);
      if (at >= d) v = Operation::of(v, other);
    }
    if constexpr (!inclusive) {
      const T before = value_of(v, at ? lane - 1u : lane, mask);
      v = static_cast<T>(metal::is_same_v<Operation, Product> ? 1 : 0);
      if (at) v = before;
    }
    return true;
  }
};

template <class T>
struct Way<First<T>> {
  static METAL_FUNC bool across(__private T& v, T, uint, uint mask) {
    v = value_of(v, uint(__builtin_ctz(mask)), mask);
    return true;
  }
};
template <class T>
struct Way<QuadFirst<T>> {
  static METAL_FUNC bool across(__private T& v, T, uint, uint mask) {
    const uint base = assay_lane_index() & ~3u;
    v = value_of(v, base + uint(__builtin_ctz(mask >> base & 15u)), mask);
    return true;
  }
};

METAL_FUNC Lane ballot(bool vote_of_lane, int, uint = 0) {
  const uint mask = active();
  Lane came;
  came.result[0] = uint(__nvvm_vote_ballot_sync(mask, vote_of_lane));
  came.result[1] = mask;
  came.fill[0] = assay_lane_index();
  return came;
}

}  // namespace assay
