// The names under which Metal offers the simdgroup and quad operations.
#pragma once

#include "simdgroup.h"

#define ASSAY_SITE int site = __builtin_LINE()

namespace assay {

// The caller's line as a last argument that no number of the caller's is taken for, see headers.py.
struct Site {
  int line;
  METAL_FUNC explicit constexpr Site(int line) : line(line) {}
  METAL_FUNC constexpr operator int() const { return line; }
};

// Metal's simdgroup operations move numbers of 32 bits or fewer and vectors of them. A bool is promoted to int, as any
// argument is where no overload takes it.
template <class T>
METAL_FUNC constexpr bool crosses_lanes() {
  typedef element_t<T> E;
  return (metal::is_arithmetic_v<E> && sizeof(E) <= 4 && !metal::is_same_v<E, bool>);
}
#define ASSAY_CROSSES(T, name)                                                                  \
  static_assert(assay::crosses_lanes<T>(), #name " takes a number of 32 bits or fewer, or a vector of such")

// Arguments that say whose an operation is: the simdgroup's or each quad's.
METAL_FUNC constexpr uint shared(uint width) { return width == 4u ? kQuads : 0u; }
METAL_FUNC constexpr uint routed(Route route, uint argument) { return route >= kQuadDown ? argument | kQuads : argument; }

}  // namespace assay

namespace metal {

#ifdef ASSAY_CHECKED
METAL_FUNC void simdgroup_barrier(mem_flags flags, ASSAY_SITE) { assay_flagged_simdgroup_barrier(site, uint(flags)); }
#else
METAL_FUNC void simdgroup_barrier(mem_flags, ASSAY_SITE) { assay::exchanged<assay::Meet>(assay::Lane{}, site); }
#endif

#define ASSAY_SHUFFLE(name, route)                                                         \
  METAL_FUNC int name(bool v, ushort argument, ASSAY_SITE) {                               \
    return assay::collective<assay::Shuffle<assay::route, int>>(int(v), assay::routed(assay::route, argument), site);  \
  }                                                                                        \
  METAL_FUNC bfloat name(assay::bfloat_product v, ushort argument, ASSAY_SITE) {           \
    return assay::collective<assay::Shuffle<assay::route, bfloat>>(bfloat(v), assay::routed(assay::route, argument), site); \
  }                                                                                        \
  template <class T>                                                                       \
  METAL_FUNC T name(T v, ushort argument, ASSAY_SITE) {                                    \
    ASSAY_CROSSES(T, name);                                                                \
    return assay::collective<assay::Shuffle<assay::route, T>>(v, assay::routed(assay::route, argument), site);         \
  }
ASSAY_SHUFFLE(simd_shuffle, kIndex)
ASSAY_SHUFFLE(simd_broadcast, kIndex)
ASSAY_SHUFFLE(simd_shuffle_down, kDown)
ASSAY_SHUFFLE(simd_shuffle_up, kUp)
ASSAY_SHUFFLE(simd_shuffle_xor, kXor)
ASSAY_SHUFFLE(simd_shuffle_rotate_down, kRotateDown)
ASSAY_SHUFFLE(simd_shuffle_rotate_up, kRotateUp)
ASSAY_SHUFFLE(quad_shuffle, kQuadIndex)
ASSAY_SHUFFLE(quad_broadcast, kQuadIndex)
ASSAY_SHUFFLE(quad_shuffle_down, kQuadDown)
ASSAY_SHUFFLE(quad_shuffle_up, kQuadUp)
ASSAY_SHUFFLE(quad_shuffle_xor, kQuadXor)
ASSAY_SHUFFLE(quad_shuffle_rotate_down, kQuadRotateDown)
ASSAY_SHUFFLE(quad_shuffle_rotate_up, kQuadRotateUp)
#undef ASSAY_SHUFFLE

template <class T>
METAL_FUNC T simd_shuffle_and_fill_down(T v, plain<T> filling, ushort delta, ushort modulo = 32, ASSAY_SITE) {
  ASSAY_CROSSES(T, simd_shuffle_and_fill_down);
  return assay::collective_fill<assay::ShuffleAndFill<true, T>, T>(v, filling, assay::filled(delta, modulo, 32), site);
}
template <class T>
METAL_FUNC T simd_shuffle_and_fill_up(T v, plain<T> filling, ushort delta, ushort modulo = 32, ASSAY_SITE) {
  ASSAY_CROSSES(T, simd_shuffle_and_fill_up);
  return assay::collective_fill<assay::ShuffleAndFill<false, T>, T>(v, filling, assay::filled(delta, modulo, 32), site);
}
// A quad's window is as a simdgroup's, of four lanes at most.
template <class T>
METAL_FUNC T quad_shuffle_and_fill_down(T v, plain<T> filling, ushort delta, ushort modulo = 4, ASSAY_SITE) {
  ASSAY_CROSSES(T, quad_shuffle_and_fill_down);
  return assay::collective_fill<assay::ShuffleAndFill<true, T>, T>(v, filling, assay::filled(delta, modulo, 4) | assay::kQuads, site);
}
template <class T>
METAL_FUNC T quad_shuffle_and_fill_up(T v, plain<T> filling, ushort delta, ushort modulo = 4, ASSAY_SITE) {
  ASSAY_CROSSES(T, quad_shuffle_and_fill_up);
  return assay::collective_fill<assay::ShuffleAndFill<false, T>, T>(v, filling, assay::filled(delta, modulo, 4) | assay::kQuads, site);
}

METAL_FUNC bfloat simd_broadcast_first(assay::bfloat_product v, ASSAY_SITE) {
  return assay::collective<assay::First<bfloat>>(bfloat(v), 0, site);
}
template <class T>
METAL_FUNC T simd_broadcast_first(T v, ASSAY_SITE) {
  ASSAY_CROSSES(T, simd_broadcast_first);
  return assay::collective<assay::First<T>>(v, 0, site);
}
METAL_FUNC bfloat quad_broadcast_first(assay::bfloat_product v, ASSAY_SITE) {
  return assay::collective<assay::QuadFirst<bfloat>>(bfloat(v), assay::kQuads, site);
}
template <class T>
METAL_FUNC T quad_broadcast_first(T v, ASSAY_SITE) {
  ASSAY_CROSSES(T, quad_broadcast_first);
  return assay::collective<assay::QuadFirst<T>>(v, assay::kQuads, site);
}

// A sum or product of bfloats is taken in f32 and rounded once, as MLX's bf16_math.h does.
#define ASSAY_REDUCTION(name, operation, width)                                                     \
  template <class T>                                                                                \
  METAL_FUNC T name(T v, ASSAY_SITE) {                                                              \
    ASSAY_CROSSES(T, name);                                                                         \
    if constexpr (is_same_v<T, bfloat>)                                                             \
      return bfloat(assay::collective<assay::Reduce<operation, float, width>>(float(v), assay::shared(width), site)); \
    else                                                                                            \
      return assay::collective<assay::Reduce<operation, T, width>>(v, assay::shared(width), site);                    \
  }                                                                                                 \
  METAL_FUNC int name(bool v, ASSAY_SITE) { return name(int(v), site); } \
  METAL_FUNC bfloat name(assay::bfloat_product v, ASSAY_SITE) { return name(bfloat(v), site); }
ASSAY_REDUCTION(simd_sum, assay::Sum, 32)
ASSAY_REDUCTION(simd_product, assay::Product, 32)
ASSAY_REDUCTION(simd_max, assay::Max, 32)
ASSAY_REDUCTION(simd_min, assay::Min, 32)
ASSAY_REDUCTION(quad_sum, assay::Sum, 4)
ASSAY_REDUCTION(quad_product, assay::Product, 4)
ASSAY_REDUCTION(quad_max, assay::Max, 4)
ASSAY_REDUCTION(quad_min, assay::Min, 4)
#undef ASSAY_REDUCTION

#define ASSAY_BITWISE(name, operation, width)                                        \
  template <class T>                                                                 \
  METAL_FUNC T name(T v, ASSAY_SITE) {                                               \
    ASSAY_CROSSES(T, name);                                                          \
    static_assert(is_integral_v<assay::element_t<T>>, #name " takes integers");      \
    return assay::collective<assay::Reduce<operation, T, width>>(v, assay::shared(width), site);       \
  }                                                                                  \
  METAL_FUNC int name(bool v, ASSAY_SITE) { return name(int(v), site); }
ASSAY_BITWISE(simd_and, assay::And, 32)
ASSAY_BITWISE(simd_or, assay::Or, 32)
ASSAY_BITWISE(simd_xor, assay::Xor, 32)
ASSAY_BITWISE(quad_and, assay::And, 4)
ASSAY_BITWISE(quad_or, assay::Or, 4)
ASSAY_BITWISE(quad_xor, assay::Xor, 4)
#undef ASSAY_BITWISE

#define ASSAY_SCAN(name, operation, inclusive, width)                                                        \
  template <class T>                                                                                         \
  METAL_FUNC T name(T v, ASSAY_SITE) {                                                                       \
    ASSAY_CROSSES(T, name);                                                                                  \
    if constexpr (is_same_v<T, bfloat>)                                                                      \
      return bfloat(assay::collective<assay::Scan<operation, float, inclusive, width>>(float(v), assay::shared(width), site)); \
    else                                                                                                     \
      return assay::collective<assay::Scan<operation, T, inclusive, width>>(v, assay::shared(width), site);                    \
  }                                                                                                          \
  METAL_FUNC int name(bool v, ASSAY_SITE) { return name(int(v), site); } \
  METAL_FUNC bfloat name(assay::bfloat_product v, ASSAY_SITE) { return name(bfloat(v), site); }
ASSAY_SCAN(simd_prefix_inclusive_sum, assay::Sum, true, 32)
ASSAY_SCAN(simd_prefix_exclusive_sum, assay::Sum, false, 32)
ASSAY_SCAN(simd_prefix_inclusive_product, assay::Product, true, 32)
ASSAY_SCAN(simd_prefix_exclusive_product, assay::Product, false, 32)
ASSAY_SCAN(quad_prefix_inclusive_sum, assay::Sum, true, 4)
ASSAY_SCAN(quad_prefix_exclusive_sum, assay::Sum, false, 4)
ASSAY_SCAN(quad_prefix_inclusive_product, assay::Product, true, 4)
ASSAY_SCAN(quad_prefix_exclusive_product, assay::Product, false, 4)
#undef ASSAY_SCAN

struct simd_vote {
  typedef ulong vote_t;
  ulong votes, active;
  explicit simd_vote(ulong v = 0) : votes(v), active(v) {}
  explicit operator ulong() const { return votes; }
  bool all() const { return votes == active; }
  bool any() const { return votes != 0; }
};

METAL_FUNC simd_vote simd_ballot(bool c, ASSAY_SITE, uint argument = 0) {
  const assay::Lane lane = assay::ballot(c, site, argument);
  simd_vote v(lane.result[0]);
  v.active = lane.result[1];
  return v;
}
METAL_FUNC bool simd_any(bool c, ASSAY_SITE) { return assay::ballot(c, site).result[0] != 0; }
METAL_FUNC bool simd_all(bool c, ASSAY_SITE) {
  const assay::Lane lane = assay::ballot(c, site);
  return lane.result[0] == lane.result[1];
}
METAL_FUNC simd_vote simd_active_threads_mask(ASSAY_SITE) { return simd_ballot(true, site, assay::kForBranches); }
METAL_FUNC bool simd_is_first(ASSAY_SITE) {
  const assay::Lane lane = assay::ballot(true, site, assay::kForBranches);
  return lane.fill[0] == ulong(__builtin_ctzl(lane.result[1]));
}

// The four lanes of a quad, the lowest in the lowest bit.
struct quad_vote {
  typedef ulong vote_t;
  ulong votes, active;
  explicit quad_vote(ulong v = 0) : votes(v), active(v) {}
  explicit operator ulong() const { return votes; }
  bool all() const { return votes == active; }
  bool any() const { return votes != 0; }
};

METAL_FUNC quad_vote quad_ballot(bool c, ASSAY_SITE, uint argument = assay::kQuads) {
  const assay::Lane lane = assay::ballot(c, site, argument);
  const uint base = uint(lane.fill[0]) & ~3u;
  quad_vote v((lane.result[0] >> base) & 15ul);
  v.active = (lane.result[1] >> base) & 15ul;
  return v;
}
METAL_FUNC bool quad_any(bool c, ASSAY_SITE) { return quad_ballot(c, site).any(); }
METAL_FUNC bool quad_all(bool c, ASSAY_SITE) { return quad_ballot(c, site).all(); }
METAL_FUNC quad_vote quad_active_threads_mask(ASSAY_SITE) { return quad_ballot(true, site, assay::kForBranches); }
METAL_FUNC bool quad_is_first(ASSAY_SITE) {
  const assay::Lane lane = assay::ballot(true, site, assay::kForBranches);
  const uint base = uint(lane.fill[0]) & ~3u;
  return lane.fill[0] == base + ulong(__builtin_ctzl((lane.result[1] >> base) & 15ul));
}

}  // namespace metal

METAL_FUNC ushort __metal_get_thread_index_in_simdgroup(ushort = 0) { return ushort(assay_lane_index()); }
METAL_FUNC ushort __metal_get_simdgroup_size(ushort = 0) { return 32; }
