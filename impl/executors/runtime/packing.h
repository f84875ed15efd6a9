// Conversions between vectors of float or half and normalised integers packed in a word, rounded to nearest even.
#pragma once

#include "integer.h"
#include "packed.h"

namespace assay {

// A float in [0, 1] or [-1, 1] as an integer of `bits` bits; NaN counts as 0.
METAL_FUNC uint to_unorm(float x, uint bits) {
  return uint(__builtin_rintf(smaller(larger(x, 0.0f), 1.0f) * float((1u << bits) - 1u)));
}
METAL_FUNC uint to_snorm(float x, uint bits) {
  const float held = is_nan(x) ? 0.0f : smaller(larger(x, -1.0f), 1.0f);
  return uint(int(__builtin_rintf(held * float((1u << (bits - 1)) - 1u)))) & ((1u << bits) - 1u);
}
METAL_FUNC float from_unorm(uint u, uint bits) { return float(u & ((1u << bits) - 1u)) / float((1u << bits) - 1u); }
METAL_FUNC float from_snorm(uint u, uint bits) {
  const int i = int(u << (32 - bits)) >> (32 - bits);
  return larger(float(i) / float((1u << (bits - 1)) - 1u), -1.0f);
}

template <class V, bool is_signed>
METAL_FUNC uint pack_norm(V v, uint bits) {
  uint r = 0;
  for (int i = 0; i < vector_traits<V>::size; i++)
    r |= (is_signed ? to_snorm(float(v[i]), bits) : to_unorm(float(v[i]), bits)) << (uint(i) * bits);
  return r;
}
template <class V, bool is_signed>
METAL_FUNC V unpack_norm(uint u, uint bits) {
  V v;
  for (int i = 0; i < vector_traits<V>::size; i++) {
    const uint part = u >> (uint(i) * bits);
    v[i] = static_cast<element_t<V>>(is_signed ? from_snorm(part, bits) : from_unorm(part, bits));
  }
  return v;
}

}  // namespace assay

namespace metal {

#define ASSAY_PACK(T, n, name, Result, bits)                                                                   \
  METAL_FUNC Result pack_##T##_to_unorm##name(T##n v) { return Result(assay::pack_norm<T##n, false>(v, bits)); } \
  METAL_FUNC Result pack_##T##_to_snorm##name(T##n v) { return Result(assay::pack_norm<T##n, true>(v, bits)); }
ASSAY_PACK(float, 4, 4x8, uint, 8)
ASSAY_PACK(float, 2, 2x16, uint, 16)
ASSAY_PACK(half, 4, 4x8, uint, 8)
ASSAY_PACK(half, 2, 2x16, uint, 16)
#undef ASSAY_PACK
#define ASSAY_UNPACK(T, n, name, bits)                                                                         \
  METAL_FUNC T##n unpack_unorm##name##_to_##T(uint u) { return assay::unpack_norm<T##n, false>(u, bits); }     \
  METAL_FUNC T##n unpack_snorm##name##_to_##T(uint u) { return assay::unpack_norm<T##n, true>(u, bits); }
ASSAY_UNPACK(float, 4, 4x8, 8)
ASSAY_UNPACK(float, 2, 2x16, 16)
ASSAY_UNPACK(half, 4, 4x8, 8)
ASSAY_UNPACK(half, 2, 2x16, 16)
#undef ASSAY_UNPACK

// Ten bits for each of three components and two for the last; five, six and five bits.
METAL_FUNC uint pack_float_to_unorm10a2(float4 v) {
  return assay::to_unorm(v.x, 10) | assay::to_unorm(v.y, 10) << 10 | assay::to_unorm(v.z, 10) << 20 |
         assay::to_unorm(v.w, 2) << 30;
}
METAL_FUNC float4 unpack_unorm10a2_to_float(uint u) {
  return float4{assay::from_unorm(u, 10), assay::from_unorm(u >> 10, 10), assay::from_unorm(u >> 20, 10),
                assay::from_unorm(u >> 30, 2)};
}
METAL_FUNC ushort pack_float_to_unorm565(float3 v) {
  return ushort(assay::to_unorm(v.z, 5) | assay::to_unorm(v.y, 6) << 5 | assay::to_unorm(v.x, 5) << 11);
}
METAL_FUNC float3 unpack_unorm565_to_float(ushort u) {
  return float3{assay::from_unorm(u >> 11, 5), assay::from_unorm(u >> 5, 6), assay::from_unorm(u, 5)};
}

}  // namespace metal
