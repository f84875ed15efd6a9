// atomic<T>: its fetch operations run over device and threadgroup memory. A float's compare-exchange exchanges where the
// bits are equal and tells whether the values are, as Metal's: over a NaN it never tells success.
#pragma once

#include "simdgroup.h"

// OpenCL's own names for its atomic types.
#define atomic_int atomic_int_
#define atomic_uint atomic_uint_
#define atomic_float atomic_float_
#define atomic_bool atomic_bool_
#define atomic_ulong atomic_ulong_

// In a counted launch an atomic is told by its name, and not seen as what this processor makes of it.
#ifdef ASSAY_COUNTED
extern "C" void assay_atomic(ulong address, uint bytes, uint kind);
#define ASSAY_TOLD(a, kind) assay_atomic(ulong(&a->word), sizeof(a->word), assay::kind)
#else
#define ASSAY_TOLD(a, kind)
#endif

namespace assay {

enum Atomic : uint {
  atomic_load_explicit, atomic_store_explicit, atomic_exchange_explicit, atomic_compare_exchange_weak_explicit,
  atomic_fetch_add_explicit, atomic_fetch_sub_explicit, atomic_fetch_max_explicit, atomic_fetch_min_explicit,
  atomic_fetch_and_explicit, atomic_fetch_or_explicit, atomic_fetch_xor_explicit, atomic_max_explicit, atomic_min_explicit
};

template <class T>
struct word_of {
  typedef T type;
};
template <>
struct word_of<float> {
  typedef uint type;
};
template <>
struct word_of<bool> {
  typedef uchar type;
};
template <>
struct word_of<ulong> {
  typedef ulong type;
};
template <class T>
using word_t = typename word_of<T>::type;

}  // namespace assay

namespace metal {

enum memory_order : int {
  memory_order_relaxed = 0,
  memory_order_acquire = 2,
  memory_order_release = 3,
  memory_order_acq_rel = 4,
  memory_order_seq_cst = 5
};
enum thread_scope : int {
  thread_scope_thread = 0,
  thread_scope_simdgroup = 1,
  thread_scope_threadgroup = 2,
  thread_scope_device = 3
};

template <class T>
struct atomic {
  static_assert(is_same_v<T, int> || is_same_v<T, uint> || is_same_v<T, float> || is_same_v<T, bool> ||
                    is_same_v<T, ulong>,
                "Metal's atomics are of int, uint, float, bool and ulong");
  assay::word_t<T> word;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;
typedef atomic<ulong> atomic_ulong;

template <class T>
constexpr __constant bool counts = is_same_v<T, int> || is_same_v<T, uint>;

// Every operation but a fence takes this order alone.
#define ASSAY_RELAXED(order) \
  __attribute__((diagnose_if(order != memory_order_relaxed, "Metal's atomics take memory_order_relaxed", "error")))
#define ASSAY_SMALL(T, name) static_assert(!is_same_v<T, ulong>, #name " is not for atomic_ulong: it has atomic_max_explicit and atomic_min_explicit")
typedef atomic<bool> atomic_bool;

#define ASSAY_ATOMIC_READ_MODIFY_WRITE(space, name, types, result)                                     \
  template <class T>                                                                                   \
  METAL_FUNC T name(volatile space atomic<T>* a, plain<T> b, memory_order order) ASSAY_RELAXED(order) { \
    static_assert(types, #name " is not for atomics of this type");                                    \
    ASSAY_TOLD(a, name);                                                                               \
    typedef assay::word_t<T> W;                                                                        \
    W before = __atomic_load_n(&a->word, __ATOMIC_RELAXED);                                            \
    for (;;) {                                                                                         \
      const T x = as_type<T>(before);                                                                  \
      const W after = as_type<W>(T(result));                                                           \
      if (__atomic_compare_exchange_n(&a->word, &before, after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) \
        return as_type<T>(before);                                                                     \
    }                                                                                                  \
  }

#define ASSAY_ATOMICS(space)                                                                           \
  template <class T>                                                                                   \
  METAL_FUNC T atomic_load_explicit(const volatile space atomic<T>* a, memory_order order) ASSAY_RELAXED(order) { \
    ASSAY_SMALL(T, atomic_load_explicit); ASSAY_TOLD(a, atomic_load_explicit);                         \
    return as_type<T>(__atomic_load_n(&a->word, __ATOMIC_RELAXED));                                    \
  }                                                                                                    \
  template <class T>                                                                                   \
  METAL_FUNC void atomic_store_explicit(volatile space atomic<T>* a, plain<T> v, memory_order order)   \
      ASSAY_RELAXED(order) {                                                                           \
    ASSAY_SMALL(T, atomic_store_explicit); ASSAY_TOLD(a, atomic_store_explicit);                       \
    __atomic_store_n(&a->word, as_type<assay::word_t<T>>(v), __ATOMIC_RELAXED);                        \
  }                                                                                                    \
  template <class T>                                                                                   \
  METAL_FUNC T atomic_exchange_explicit(volatile space atomic<T>* a, plain<T> v, memory_order order)   \
      ASSAY_RELAXED(order) {                                                                           \
    ASSAY_SMALL(T, atomic_exchange_explicit); ASSAY_TOLD(a, atomic_exchange_explicit);                 \
    return as_type<T>(__atomic_exchange_n(&a->word, as_type<assay::word_t<T>>(v), __ATOMIC_RELAXED));  \
  }                                                                                                    \
  template <class T>                                                                                   \
  METAL_FUNC bool atomic_compare_exchange_weak_explicit(volatile space atomic<T>* a, thread T* expected, plain<T> v, \
                                                        memory_order order, memory_order failed)       \
      ASSAY_RELAXED(order) ASSAY_RELAXED(failed) {                                                     \
    ASSAY_SMALL(T, atomic_compare_exchange_weak_explicit); ASSAY_TOLD(a, atomic_compare_exchange_weak_explicit); \
    assay::word_t<T> want = as_type<assay::word_t<T>>(*expected);                                      \
    __atomic_compare_exchange_n(&a->word, &want, as_type<assay::word_t<T>>(v), false, __ATOMIC_RELAXED,  \
                                __ATOMIC_RELAXED);                                                     \
    const T was = as_type<T>(want);                                                                    \
    const bool done = was == *expected;                                                                \
    *expected = was;                                                                                   \
    return done;                                                                                       \
  }                                                                                                    \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_add_explicit, (counts<T> || is_same_v<T, float>), x + b) \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_sub_explicit, (counts<T> || is_same_v<T, float>), x - b) \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_max_explicit, counts<T>, max(x, b)) \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_min_explicit, counts<T>, min(x, b)) \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_and_explicit, counts<T>, x & b) \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_or_explicit, counts<T>, x | b) \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_xor_explicit, counts<T>, x ^ b)
ASSAY_ATOMICS(device)
ASSAY_ATOMICS(threadgroup)
#undef ASSAY_ATOMICS
#undef ASSAY_SMALL

// Of 64 bits Metal has these two, in device memory, without a result.
#define ASSAY_ATOMIC_ULONG(name, better)                                                               \
  METAL_FUNC void name(volatile device atomic_ulong* a, ulong b, memory_order order) ASSAY_RELAXED(order) { \
    ASSAY_TOLD(a, name);                                                                               \
    ulong x = __atomic_load_n(&a->word, __ATOMIC_RELAXED);                                             \
    while (b better x && !__atomic_compare_exchange_n(&a->word, &x, b, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) { \
    }                                                                                                  \
  }
ASSAY_ATOMIC_ULONG(atomic_max_explicit, >)
ASSAY_ATOMIC_ULONG(atomic_min_explicit, <)
#undef ASSAY_ATOMIC_ULONG
#undef ASSAY_ATOMIC_READ_MODIFY_WRITE

#ifdef ASSAY_CHECKED
METAL_FUNC void atomic_thread_fence(mem_flags flags, memory_order, thread_scope = thread_scope_device) {
  assay_fence(uint(flags));
}
#else
METAL_FUNC void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device) {}
#endif

}  // namespace metal
