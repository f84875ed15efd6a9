// Barriers, threadgroup arrays, and the operations across the lanes of a simdgroup or a quad.
//
// Every lane leaves its value in its letter box and waits; the last to arrive completes the operation for all. Where
// lanes diverge, those that wait at one call act together (convergence.py), the others are inactive.
#pragma once

#include "lanes.h"
#ifdef ASSAY_COUNTED
#include "kinds.h"
#endif

extern "C" {
assay::Lane* assay_lane();
uint assay_lane_index();
void* assay_arena();
void assay_simdgroup(int site, void (*complete)(assay::Lane*, uint));
void assay_barrier(int site);
uint assay_simd_order();
#ifdef ASSAY_COUNTED
void assay_operation(uint kind, uint mask);
#endif
#ifdef ASSAY_CHECKED
void assay_flagged_barrier(int site, uint flags);
void assay_flagged_simdgroup_barrier(int site, uint flags);
uint assay_garbage();
uint assay_windowless();
bool assay_garbage_varied();
void assay_fence(uint flags);
__attribute__((const)) void* assay_array(uint number);
#endif
}

namespace metal {

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

// Its own pattern, so that a wrong result can be traced.
template <class T>
METAL_FUNC T patterned(uint word) {
  const ulong words = ulong(word) * 0x100000001ul, pattern[2] = {words, words};
  return take<T>(pattern);
}

// What a lane gets from one that is not there.
template <class T>
METAL_FUNC T garbage() {
#ifdef ASSAY_CHECKED
  return patterned<T>(assay_garbage());
#else
  return patterned<T>(0xdeadbeefu);
#endif
}

// What a lane gets by a window that Metal does not have.
template <class T>
METAL_FUNC T windowless() {
#ifdef ASSAY_CHECKED
  return patterned<T>(assay_windowless());
#else
  return patterned<T>(0xdeadbeefu);
#endif
}

// What a lane gets from a number that no lane has: its own value, as an open emulator of the M1's GPU does. The checker
// puts garbage in its place where it asks whether an output depends on it.
template <class T>
METAL_FUNC T nobody(T own) {
#ifdef ASSAY_CHECKED
  const T other = garbage<T>();
  if (assay_garbage_varied()) return other;
#endif
  return own;
}

// Sums and products are taken in the order that the launch asks for; what has one result in every order, in the first.
template <class Operation>
METAL_FUNC uint order() {
  if constexpr (metal::is_same_v<Operation, Sum> || metal::is_same_v<Operation, Product>)
    return assay_simd_order();
  else
    return kAscending;
}

// A member's address has a space of its own in clang, which the scheduler's functions know nothing of.
template <class A>
void complete(Lane* lanes, uint mask) {
#ifdef ASSAY_COUNTED
  assay_operation(kind_of<A>, mask);
#endif
  A::complete(lanes, mask);
}

template <class A, class T>
METAL_FUNC T collective(T v, uint argument, int site) {
  Lane* lane = assay_lane();
  leave(lane->value, v);
  lane->argument = argument;
  assay_simdgroup(site, &complete<A>);
  return take<T>(lane->result);
}

template <class A, class T>
METAL_FUNC T collective_fill(T v, T filling, uint argument, int site) {
  leave(assay_lane()->fill, filling);
  return collective<A>(v, argument, site);
}

// The whole letter box of each lane, and what comes back in it.
template <class A>
METAL_FUNC Lane exchanged(Lane own, int site) {
  Lane* lane = assay_lane();
  lane->value[0] = own.value[0], lane->value[1] = own.value[1];
  lane->fill[0] = own.fill[0], lane->fill[1] = own.fill[1];
  lane->argument = own.argument;
  assay_simdgroup(site, &complete<A>);
  return *lane;
}

METAL_FUNC Lane ballot(bool vote_of_lane, int site, uint argument = 0) {
  Lane own;
  own.argument = argument;
  own.value[0] = vote_of_lane;
  return exchanged<Vote>(own, site);
}

}  // namespace assay
