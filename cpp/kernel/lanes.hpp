// Eight numbers at a time, whatever the machine's vectors hold. Only for files that are compiled for one instruction set:
// PROBOX_VECTOR_BYTES is the size of its vectors, 0 for plain loops. (Compilers without vector types always get those.)
//
// An operation treats each of the eight lanes alone and rounds as the scalar one does, so results are the same to the bit
// for every size. (Products and sums must not be contracted: the build says -ffp-contract=off.)
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__GNUC__)
#define PROBOX_INLINE inline __attribute__((always_inline))
#else
#define PROBOX_INLINE inline
#endif
// Before a loop over the parts of something that should stay in registers.
#if defined(__clang__)
#define PROBOX_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define PROBOX_UNROLL _Pragma("GCC unroll 8")
#else
#define PROBOX_UNROLL
#endif

// Everything here has internal linkage: the linker must not take one file's machine code for another's.
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

// The eight lanes of either kind, by the type of one.
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
