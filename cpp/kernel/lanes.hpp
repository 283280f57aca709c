// Operations on eight numbers at a time, for any vector size. Only for files that are compiled for one instruction set:
// PROBOX_VECTOR_BYTES is its vector size, 0 for plain loops. (Compilers without vector types always use plain loops.)
//
// An operation processes each of the eight lanes separately and rounds as the scalar one, so results are bit-identical
// for every size. (Products and sums must not be contracted: the build sets -ffp-contract=off.)
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__GNUC__)
#define PROBOX_INLINE inline __attribute__((always_inline))
#else
#define PROBOX_INLINE inline
#endif
// Unrolls a loop over parts that should stay in registers.
#if defined(__clang__)
#define PROBOX_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define PROBOX_UNROLL _Pragma("GCC unroll 8")
#else
#define PROBOX_UNROLL
#endif

// Internal linkage: the linker must not merge machine code of different instruction sets.
namespace {

constexpr int kLanes = 8;

}  // namespace

#if defined(__GNUC__) && PROBOX_VECTOR_BYTES > 0
#include "lanes_vector.inl"
#else
#include "lanes_plain.inl"
#endif

namespace {

PROBOX_INLINE Doubles operator+(const Doubles& a, double x) { return a + filled(x); }
PROBOX_INLINE Doubles operator-(const Doubles& a, double x) { return a - filled(x); }
PROBOX_INLINE Doubles operator*(const Doubles& a, double x) { return a * filled(x); }
PROBOX_INLINE Floats operator+(const Floats& a, float x) { return a + filled(x); }
PROBOX_INLINE Floats operator-(const Floats& a, float x) { return a - filled(x); }
PROBOX_INLINE Floats operator*(const Floats& a, float x) { return a * filled(x); }

// The vector type for a scalar type.
template <class T>
struct LanesOf;
template <>
struct LanesOf<double> {
  static PROBOX_INLINE Doubles from(const Doubles& a) { return a; }
};
template <>
struct LanesOf<float> {
  static PROBOX_INLINE Floats from(const Doubles& a) { return to_floats(a); }
};

}  // namespace
