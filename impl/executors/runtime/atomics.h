// atomic<T>: its fetch operations run over device and threadgroup memory. A float's compare-exchange compares bits, so that
// a loop over a NaN ends.
#pragma once

#include "simdgroup.h"

// OpenCL's own names for its atomic types.
#define atomic_int atomic_int_
#define atomic_uint atomic_uint_
#define atomic_float atomic_float_
#define atomic_bool atomic_bool_

namespace assay {

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
template <class T>
using word_t = typename word_of<T>::type;

}  // namespace assay

namespace metal {

enum memory_order : int { memory_order_relaxed = 0, memory_order_seq_cst = 5 };
enum thread_scope : int {
  thread_scope_thread = 0,
  thread_scope_simdgroup = 1,
  thread_scope_threadgroup = 2,
  thread_scope_device = 3
};

template <class T>
struct atomic {
  static_assert(is_same_v<T, int> || is_same_v<T, uint> || is_same_v<T, float> || is_same_v<T, bool>,
                "the host executor's atomics are of int, uint, float and bool");
  assay::word_t<T> word;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;

#define ASSAY_ATOMIC_READ_MODIFY_WRITE(space, name, result)                                            \
  template <class T>                                                                                   \
  METAL_FUNC T name(volatile space atomic<T>* a, plain<T> b, memory_order) {                           \
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
  METAL_FUNC T atomic_load_explicit(const volatile space atomic<T>* a, memory_order) {                 \
    return as_type<T>(__atomic_load_n(&a->word, __ATOMIC_RELAXED));                                    \
  }                                                                                                    \
  template <class T>                                                                                   \
  METAL_FUNC void atomic_store_explicit(volatile space atomic<T>* a, plain<T> v, memory_order) {       \
    __atomic_store_n(&a->word, as_type<assay::word_t<T>>(v), __ATOMIC_RELAXED);                        \
  }                                                                                                    \
  template <class T>                                                                                   \
  METAL_FUNC T atomic_exchange_explicit(volatile space atomic<T>* a, plain<T> v, memory_order) {       \
    return as_type<T>(__atomic_exchange_n(&a->word, as_type<assay::word_t<T>>(v), __ATOMIC_RELAXED));  \
  }                                                                                                    \
  template <class T>                                                                                   \
  METAL_FUNC bool atomic_compare_exchange_weak_explicit(volatile space atomic<T>* a, thread T* expected, plain<T> v, \
                                                        memory_order, memory_order) {                  \
    assay::word_t<T> want = as_type<assay::word_t<T>>(*expected);                                      \
    const bool done = __atomic_compare_exchange_n(&a->word, &want, as_type<assay::word_t<T>>(v), false, \
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED);                 \
    *expected = as_type<T>(want);                                                                      \
    return done;                                                                                       \
  }                                                                                                    \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_add_explicit, x + b)                              \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_sub_explicit, x - b)                              \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_max_explicit, max(x, b))                          \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_min_explicit, min(x, b))                          \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_and_explicit, x & b)                              \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_or_explicit, x | b)                               \
  ASSAY_ATOMIC_READ_MODIFY_WRITE(space, atomic_fetch_xor_explicit, x ^ b)
ASSAY_ATOMICS(device)
ASSAY_ATOMICS(threadgroup)
#undef ASSAY_ATOMICS
#undef ASSAY_ATOMIC_READ_MODIFY_WRITE

#ifdef ASSAY_CHECKED
METAL_FUNC void atomic_thread_fence(mem_flags flags, memory_order, thread_scope = thread_scope_device) {
  assay_fence(uint(flags));
}
#else
METAL_FUNC void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device) {}
#endif

}  // namespace metal
