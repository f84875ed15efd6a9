// Metal's scalar types, address spaces and type traits. The language is C++ for OpenCL, whose address spaces are Metal's.
#pragma once

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
#pragma OPENCL EXTENSION __cl_clang_bitfields : enable

#define device __global
// What lies in the constant space is constant.
#define constant const __constant
#define threadgroup __local
#define thread __private
#define METAL_FUNC inline __attribute__((always_inline))
#define __METAL__ 1
#define __METAL_VERSION__ 320
#define __HAVE_BFLOAT__ 1

// Names that are free in Metal and keywords in OpenCL.
#define global global_
#define local local_
#define generic generic_
#define pipe pipe_
#define kernel kernel_
#define read_only read_only_
#define write_only write_only_
#define read_write read_write_

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef half float16_t;

static_assert(sizeof(long) == 8, "Metal's long has 64 bits");

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define MAXFLOAT 0x1.fffffep+127f
#define FLT_MAX 0x1.fffffep+127f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f
#define HALF_MAX 65504.0h
#define HALF_MIN 0x1p-14h
#define INT_MAX 0x7fffffff
#define INT_MIN (-0x7fffffff - 1)
#define UINT_MAX 0xffffffffu
#define SHRT_MAX 0x7fff
#define USHRT_MAX 0xffff
#define UCHAR_MAX 0xff
#define M_PI_F 3.14159265358979323846264338327950288f
#define M_PI_2_F 1.57079632679489661923132169163975144f
#define M_PI_4_F 0.785398163397448309615660845819875721f
#define M_1_PI_F 0.318309886183790671537767526745028724f
#define M_2_PI_F 0.636619772367581343075535053490057448f
#define M_2_SQRTPI_F 1.12837916709551257389615890312154517f
#define M_SQRT2_F 1.41421356237309504880168872420969808f
#define M_SQRT1_2_F 0.707106781186547524400844362104849039f
#define M_E_F 2.71828182845904523536028747135266250f
#define M_LOG2E_F 1.44269504088896340735992468100189214f
#define M_LOG10E_F 0.434294481903251827651128918916605082f
#define M_LN2_F 0.693147180559945309417232121458176568f
#define M_LN10_F 2.30258509299404568401799145468436421f

namespace metal {

template <class T, T v>
struct integral_constant {
  static constexpr __constant T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return v; }
};
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;

template <bool c, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool c, class T = void>
using enable_if_t = typename enable_if<c, T>::type;

template <bool c, class A, class B>
struct conditional {
  typedef A type;
};
template <class A, class B>
struct conditional<false, A, B> {
  typedef B type;
};
template <bool c, class A, class B>
using conditional_t = typename conditional<c, A, B>::type;

template <class A, class B>
constexpr __constant bool is_same_v = __is_same(A, B);
template <class A, class B>
struct is_same : integral_constant<bool, __is_same(A, B)> {};
template <class A, class B>
constexpr __constant bool is_convertible_v = __is_convertible(A, B);
template <class A, class B>
struct is_convertible : integral_constant<bool, __is_convertible(A, B)> {};

template <class T>
struct remove_reference {
  typedef __remove_reference_t(T) type;
};
template <class T>
using remove_reference_t = __remove_reference_t(T);
template <class T>
using remove_cv_t = __remove_cv(T);
template <class T>
using remove_const_t = __remove_const(T);
template <class T>
using remove_volatile_t = __remove_volatile(T);
template <class T>
using decay_t = __decay(T);
template <class T>
struct remove_addrspace {
  typedef T type;
};
#define ASSAY_SPACE(space)              \
  template <class T>                    \
  struct remove_addrspace<space T> {    \
    typedef T type;                     \
  };                                    \
  template <class T>                    \
  struct remove_addrspace<const space T> { \
    typedef const T type;               \
  };
ASSAY_SPACE(__global)
ASSAY_SPACE(__constant)
ASSAY_SPACE(__local)
ASSAY_SPACE(__private)
ASSAY_SPACE(__generic)
#undef ASSAY_SPACE
template <class T>
using remove_addrspace_t = typename remove_addrspace<T>::type;
template <class T>
using underlying_type_t = __underlying_type(T);
template <class T>
using make_unsigned_t = __make_unsigned(T);
template <class T>
using make_signed_t = __make_signed(T);

template <bool b>
using bool_constant = integral_constant<bool, b>;
template <class... B>
struct _disjunction : bool_constant<(false || ... || B::value)> {};
template <class... B>
struct _conjunction : bool_constant<(true && ... && B::value)> {};
template <class B>
struct _negation : bool_constant<!B::value> {};
template <class... B>
using disjunction = _disjunction<B...>;
template <class... B>
using conjunction = _conjunction<B...>;
template <class B>
using negation = _negation<B>;

#define ASSAY_TRAIT(name, test)                  \
  template <class T>                             \
  constexpr __constant bool name##_v = test(T);  \
  template <class T>                             \
  struct name : bool_constant<test(T)> {};
ASSAY_TRAIT(is_integral, __is_integral)
ASSAY_TRAIT(is_signed, __is_signed)
ASSAY_TRAIT(is_unsigned, __is_unsigned)
ASSAY_TRAIT(is_const, __is_const)
ASSAY_TRAIT(is_volatile, __is_volatile)
ASSAY_TRAIT(is_pointer, __is_pointer)
ASSAY_TRAIT(is_reference, __is_reference)
ASSAY_TRAIT(is_array, __is_array)
ASSAY_TRAIT(is_enum, __is_enum)
ASSAY_TRAIT(is_class, __is_class)
ASSAY_TRAIT(is_union, __is_union)
ASSAY_TRAIT(is_void, __is_void)
ASSAY_TRAIT(is_function, __is_function)
ASSAY_TRAIT(is_trivially_copyable, __is_trivially_copyable)
#undef ASSAY_TRAIT
template <class A, class B>
constexpr __constant bool is_base_of_v = __is_base_of(A, B);

// bfloat, a class here, is added where it is defined.
template <class T>
constexpr __constant bool is_floating_point_v = __is_floating_point(T);
template <class T>
struct is_floating_point : bool_constant<is_floating_point_v<T>> {};
template <class T>
constexpr __constant bool is_arithmetic_v = __is_integral(T) || is_floating_point_v<T>;
template <class T>
struct is_arithmetic : bool_constant<is_arithmetic_v<T>> {};
template <class T>
constexpr __constant bool is_scalar_v = is_arithmetic_v<T> || __is_enum(T) || __is_pointer(T);

template <class T>
constexpr __constant bool is_trivial_v = __is_trivially_copyable(T);
template <class T>
T declval();

template <class T, size_t N>
struct array {
  T elements[N];
  constexpr T& operator[](size_t i) { return elements[i]; }
  constexpr const T& operator[](size_t i) const { return elements[i]; }
  constexpr size_t size() const { return N; }
  const __constant T& operator[](size_t i) const __constant { return elements[i]; }
  constexpr size_t size() const __constant { return N; }
};

// A value that is the same in every thread; here it is a value.
template <class T>
using uniform = T;
template <class T>
constexpr T make_uniform(T v) {
  return v;
}
template <class T>
constexpr bool is_uniform(T) {
  return true;
}

// A parameter that takes no part in deduction.
template <class T>
struct type_identity {
  typedef T type;
};
template <class T>
using plain = typename type_identity<T>::type;

}  // namespace metal

namespace assay {

// How far a pointer goes: an integer, or a class that stands for one.
template <class T>
METAL_FUNC constexpr auto step(T by) {
  if constexpr (__is_integral(T))
    return by;
  else
    return static_cast<typename T::value_type>(by);
}

template <class T, class Tag>
struct lacking {
  operator T() const __constant { return Tag::get(); }
};
template <class T, class Tag>
METAL_FUNC T value(const __constant lacking<T, Tag>&) {
  return Tag::get();
}

}  // namespace assay

// A function constant is a constant where its value was given (by `#define ASSAY_FUNCTION_CONSTANT_<index> , value`, see
// translation.py), and an error where code that is kept needs it otherwise.
#define ASSAY_FUNCTION_CONSTANT(type, name, index) ASSAY_GIVEN_OR_NOT(type, name, index, ASSAY_FUNCTION_CONSTANT_##index)
#define ASSAY_GIVEN_OR_NOT(type, name, index, ...) \
  ASSAY_THIRD(__VA_ARGS__, ASSAY_GIVEN, ASSAY_NOT_GIVEN)(type, name, index, __VA_ARGS__)
#define ASSAY_THIRD(first, second, third, ...) third
#define ASSAY_GIVEN(type, name, index, nothing, value) \
  static constexpr __constant type name = value;       \
  static constexpr __constant bool assay_given_##name = true
#define ASSAY_NOT_GIVEN(type, name, index, ...)                                                                    \
  type assay_missing_##name()                                                                                      \
      __attribute__((error("function constant " #index " (" #name ") has no value: give it one, see docs/language.md"))); \
  struct assay_tag_##name {                                                                                        \
    static type get() { return assay_missing_##name(); }                                                           \
  };                                                                                                               \
  static constexpr __constant assay::lacking<type, assay_tag_##name> name = {};                                    \
  static constexpr __constant bool assay_given_##name = false
#define is_function_constant_defined(name) assay_given_##name

// A cast that keeps the bits.
template <class To, class From>
METAL_FUNC constexpr To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs two types of one size");
  return __builtin_bit_cast(To, from);
}
