// Metal's vectors. Arithmetic ones are clang's ext vectors, with their swizzles; vectors of bfloat and of bool are structs,
// whose elements are read and written one by one or by an index.
#pragma once

#include "bfloat.h"

namespace assay {

template <int N>
struct bfloat_vector;
template <int N>
struct bool_vector;

template <class T, int N>
struct vector_of {
  typedef T type __attribute__((ext_vector_type(N)));
};
template <int N>
struct vector_of<bfloat, N> {
  typedef bfloat_vector<N> type;
};
template <int N>
struct vector_of<bool, N> {
  typedef bool_vector<N> type;
};

// The vectors of clang alone, in a form that templates deduce from.
template <class T, int N>
using native = T __attribute__((ext_vector_type(N)));

template <class T>
struct vector_traits {
  typedef T element;
  static constexpr __constant int size = 1;
  static constexpr __constant bool is_vector = false;
  static constexpr __constant bool is_native = false;
};
template <class T, int N, bool native = true>
struct traits_of_vector {
  typedef T element;
  static constexpr __constant int size = N;
  static constexpr __constant bool is_vector = true;
  static constexpr __constant bool is_native = native;
};
template <class T, int N>
struct vector_traits<T __attribute__((ext_vector_type(N)))> : traits_of_vector<T, N> {};
template <int N>
struct vector_traits<bfloat_vector<N>> : traits_of_vector<bfloat, N, false> {};
template <int N>
struct vector_traits<bool_vector<N>> : traits_of_vector<bool, N, false> {};

template <class V>
using element_t = typename vector_traits<V>::element;
template <class V>
using if_vector = metal::enable_if_t<vector_traits<V>::is_native, int>;
template <class V>
using if_float_vector =
    metal::enable_if_t<vector_traits<V>::is_native && metal::is_same_v<element_t<V>, float>, int>;
template <class V>
using if_any_vector = metal::enable_if_t<vector_traits<V>::is_vector, int>;

// One operator for every space but constant: what a function returns lies in none of them.
#define ASSAY_INDICES(T)                                                     \
  T& operator[](int i) { return *((T*)&this->x + i); }                       \
  constexpr T operator[](int i) const { return *((const T*)&this->x + i); }  \
  constexpr T operator[](int i) const __constant { return *((const __constant T*)&this->x + i); }

template <>
struct __attribute__((aligned(4))) bfloat_vector<2> {
  bfloat x, y;
  ASSAY_INDICES(bfloat)
};
template <>
struct __attribute__((aligned(8))) bfloat_vector<3> {
  bfloat x, y, z, padding;
  ASSAY_INDICES(bfloat)
};
template <>
struct __attribute__((aligned(8))) bfloat_vector<4> {
  bfloat x, y, z, w;
  ASSAY_INDICES(bfloat)
};

// A comparison of vectors is a vector of integers, 1 or 0, which converts to one of bool.
#define ASSAY_BOOL_VECTOR(n, members, ...)                                                                     \
  template <>                                                                                                  \
  struct __attribute__((aligned(n == 3 ? 4 : n))) bool_vector<n> {                                             \
    bool members;                                                                                              \
    bool_vector() = default;                                                                                   \
    constexpr bool_vector(const bool_vector&) = default;                                                       \
    template <class V, if_vector<V> = 0>                                                                       \
    bool_vector(V v) : bool_vector() {                                                                         \
      static_assert(vector_traits<V>::size == n, "a vector is made of one of the same size");                  \
      for (int i = 0; i < n; i++) (&this->x)[i] = v[i] != 0;                                                   \
    }                                                                                                          \
    __VA_ARGS__                                                                                                \
    ASSAY_INDICES(bool)                                                                                        \
  };
#define ASSAY_LIST(...) __VA_ARGS__
ASSAY_BOOL_VECTOR(2, ASSAY_LIST(x, y), constexpr bool_vector(bool a, bool b) : x(a), y(b) {})
ASSAY_BOOL_VECTOR(3, ASSAY_LIST(x, y, z), constexpr bool_vector(bool a, bool b, bool c) : x(a), y(b), z(c) {})
ASSAY_BOOL_VECTOR(4, ASSAY_LIST(x, y, z, w),
                  constexpr bool_vector(bool a, bool b, bool c, bool d) : x(a), y(b), z(c), w(d) {})
#undef ASSAY_BOOL_VECTOR
#undef ASSAY_INDICES

template <class V>
METAL_FUNC element_t<V> get(V v, int i) {
  if constexpr (!vector_traits<V>::is_vector)
    return v;
  else if constexpr (!vector_traits<V>::is_native)
    return (&v.x)[i];
  else
    return v[i];
}

template <class V>
METAL_FUNC void put(__private V& v, int i, element_t<V> e) {
  if constexpr (!vector_traits<V>::is_native)
    (&v.x)[i] = e;
  else
    v[i] = e;
}

template <class V, class A>
METAL_FUNC int append(__private V& v, int at, A a) {
  for (int i = 0; i < vector_traits<A>::size; i++) put(v, at++, static_cast<element_t<V>>(get(a, i)));
  return at;
}

template <class V, class A>
METAL_FUNC V construct(A a) {
  if constexpr (metal::is_same_v<V, A>) {
    return a;
  } else if constexpr (vector_traits<A>::is_vector) {
    V v;
    static_assert(vector_traits<A>::size == vector_traits<V>::size, "a vector is made of one of the same size");
    append(v, 0, a);
    return v;
  } else if constexpr (!metal::is_arithmetic_v<A> && __is_convertible(A, V)) {
    // A class that converts to this vector, such as MLX's complex numbers.
    return static_cast<V>(a);
  } else {
    V v;
    for (int i = 0; i < vector_traits<V>::size; i++) put(v, i, static_cast<element_t<V>>(a));
    return v;
  }
}

template <class V, class A, class B, class... More>
METAL_FUNC V construct(A a, B b, More... more) {
  static_assert(vector_traits<A>::size + vector_traits<B>::size + (0 + ... + vector_traits<More>::size) ==
                    vector_traits<V>::size,
                "the parts of a vector add up to its size");
  V v;
  int at = append(v, 0, a);
  at = append(v, at, b);
  ((at = append(v, at, more)), ...);
  return v;
}

// `Name(...)` where Name is an alias: a vector is constructed, anything else as it stands.
template <class T, class... A>
METAL_FUNC T make(A... a) {
  if constexpr (!vector_traits<T>::is_vector)
    return T(a...);
  else if constexpr (sizeof...(A) == 0)
    return T{};
  else
    return construct<T>(a...);
}

// `f({x, y})`: a list in the place of a vector's argument, which clang takes for a class alone.
template <class... A>
struct braced_list;
template <class A, class B>
struct braced_list<A, B> {
  A a;
  B b;
  template <class V, class = metal::enable_if_t<(vector_traits<V>::is_native && vector_traits<V>::size == 2)>>
  operator V() const { return construct<V>(a, b); }
  template <class V, class = metal::enable_if_t<__is_class(V)>, class = decltype(V{A(), B()})>
  operator V() const { return V{a, b}; }
};
template <class A, class B, class C>
struct braced_list<A, B, C> {
  A a;
  B b;
  C c;
  template <class V, class = metal::enable_if_t<(vector_traits<V>::is_native && vector_traits<V>::size == 3)>>
  operator V() const { return construct<V>(a, b, c); }
  template <class V, class = metal::enable_if_t<__is_class(V)>, class = decltype(V{A(), B(), C()})>
  operator V() const { return V{a, b, c}; }
};
template <class A, class B, class C, class D>
struct braced_list<A, B, C, D> {
  A a;
  B b;
  C c;
  D d;
  template <class V, class = metal::enable_if_t<(vector_traits<V>::is_native && vector_traits<V>::size == 4)>>
  operator V() const { return construct<V>(a, b, c, d); }
  template <class V, class = metal::enable_if_t<__is_class(V)>, class = decltype(V{A(), B(), C(), D()})>
  operator V() const { return V{a, b, c, d}; }
};
template <class... A>
METAL_FUNC braced_list<A...> braced(A... a) {
  return {a...};
}

#define ASSAY_BFLOAT_VECTOR(op)                                                                    \
  template <int N>                                                                                 \
  METAL_FUNC bfloat_vector<N> operator op(bfloat_vector<N> a, bfloat_vector<N> b) {                \
    for (int i = 0; i < N; i++) (&a.x)[i] = (&a.x)[i] op (&b.x)[i];                                \
    return a;                                                                                      \
  }                                                                                                \
  template <int N>                                                                                 \
  METAL_FUNC bfloat_vector<N> operator op(bfloat_vector<N> a, bfloat b) {                          \
    return a op construct<bfloat_vector<N>>(b);                                                    \
  }                                                                                                \
  template <int N>                                                                                 \
  METAL_FUNC bfloat_vector<N> operator op(bfloat a, bfloat_vector<N> b) {                          \
    return construct<bfloat_vector<N>>(a) op b;                                                    \
  }                                                                                                \
  template <int N, class B>                                                                        \
  METAL_FUNC __private bfloat_vector<N>& operator op##=(__private bfloat_vector<N>& a, B b) {      \
    return a = a op b;                                                                             \
  }
ASSAY_BFLOAT_VECTOR(+)
ASSAY_BFLOAT_VECTOR(-)
ASSAY_BFLOAT_VECTOR(*)
ASSAY_BFLOAT_VECTOR(/)
#undef ASSAY_BFLOAT_VECTOR
template <int N>
METAL_FUNC bfloat_vector<N> operator-(bfloat_vector<N> a) {
  for (int i = 0; i < N; i++) (&a.x)[i] = -(&a.x)[i];
  return a;
}
#define ASSAY_BFLOAT_COMPARISON(op)                                                                \
  template <int N>                                                                                 \
  METAL_FUNC bool_vector<N> operator op(bfloat_vector<N> a, bfloat_vector<N> b) {                  \
    bool_vector<N> r;                                                                              \
    for (int i = 0; i < N; i++) (&r.x)[i] = (&a.x)[i] op (&b.x)[i];                                \
    return r;                                                                                      \
  }
ASSAY_BFLOAT_COMPARISON(<)
ASSAY_BFLOAT_COMPARISON(>)
ASSAY_BFLOAT_COMPARISON(<=)
ASSAY_BFLOAT_COMPARISON(>=)
ASSAY_BFLOAT_COMPARISON(==)
ASSAY_BFLOAT_COMPARISON(!=)
#undef ASSAY_BFLOAT_COMPARISON

#define ASSAY_BOOL_VECTOR(op)                                                                      \
  template <int N>                                                                                 \
  METAL_FUNC bool_vector<N> operator op(bool_vector<N> a, bool_vector<N> b) {                      \
    for (int i = 0; i < N; i++) (&a.x)[i] = (&a.x)[i] op (&b.x)[i];                                \
    return a;                                                                                      \
  }                                                                                                \
  template <int N, class V, if_vector<V> = 0>                                                      \
  METAL_FUNC bool_vector<N> operator op(bool_vector<N> a, V b) {                                   \
    return a op bool_vector<N>(b);                                                                 \
  }                                                                                                \
  template <int N, class V, if_vector<V> = 0>                                                      \
  METAL_FUNC bool_vector<N> operator op(V a, bool_vector<N> b) {                                   \
    return bool_vector<N>(a) op b;                                                                 \
  }
ASSAY_BOOL_VECTOR(&)
ASSAY_BOOL_VECTOR(|)
ASSAY_BOOL_VECTOR(^)
ASSAY_BOOL_VECTOR(&&)
ASSAY_BOOL_VECTOR(||)
ASSAY_BOOL_VECTOR(==)
ASSAY_BOOL_VECTOR(!=)
#undef ASSAY_BOOL_VECTOR
template <int N>
METAL_FUNC bool_vector<N> operator!(bool_vector<N> a) {
  for (int i = 0; i < N; i++) (&a.x)[i] = !(&a.x)[i];
  return a;
}

}  // namespace assay

namespace metal {

template <class T, int N>
using vec = typename assay::vector_of<T, N>::type;

template <class T, int N, class... A>
METAL_FUNC vec<T, N> make_vec(A... a) {
  return assay::make<vec<T, N>>(a...);
}

}  // namespace metal

#define ASSAY_VECTOR(type, n)                      \
  typedef metal::vec<type, n> type##n;             \
  namespace metal {                                \
  using ::type##n;                                 \
  template <class... A>                            \
  METAL_FUNC type##n make_##type##n(A... a) {      \
    return make_vec<type, n>(a...);                \
  }                                                \
  }
#define ASSAY_VECTORS(type) ASSAY_VECTOR(type, 2) ASSAY_VECTOR(type, 3) ASSAY_VECTOR(type, 4)
ASSAY_VECTORS(char)
ASSAY_VECTORS(uchar)
ASSAY_VECTORS(short)
ASSAY_VECTORS(ushort)
ASSAY_VECTORS(int)
ASSAY_VECTORS(uint)
ASSAY_VECTORS(long)
ASSAY_VECTORS(ulong)
ASSAY_VECTORS(half)
ASSAY_VECTORS(float)
ASSAY_VECTORS(bfloat)
ASSAY_VECTORS(bool)
#undef ASSAY_VECTORS
#undef ASSAY_VECTOR

namespace metal {
using ::bfloat;
using ::uchar;
using ::uint;
using ::ulong;
using ::ushort;
typedef half float16;
}  // namespace metal
