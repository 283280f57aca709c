// Implementations of the loops, included once by each loops_*.cpp after PROBOX_VECTOR_BYTES is set.
// Data is processed without the standard library except <cmath>, and everything has internal linkage: machine code of
// one instruction set must not be linked into another.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lanes.hpp"
#include "loops.hpp"

namespace {

using probox::kGroup;
using probox::kPadding;
static_assert(kPadding == kLanes, "callers pad their arrays by the number of lanes");
static_assert(kGroup == kLanes, "one lane for each integral of a group");

}  // namespace

// Parts in the order of their dependencies.
// clang-format off
#include "loops_arithmetic.inl"
#include "loops_products.inl"
#include "loops_rows.inl"
#include "loops_gaussian.inl"
// clang-format on

namespace {

template <class T>
constexpr probox::MapLoops<T> map_loops_here() {
  return {log_sum_blocks<T>, log_sum_runs<T>, logs<T>, multiply_row<T>, scale_row<T>, finish_row<T>, transpose<T>};
}

constexpr probox::Loops loops_here(const char* name) {
  return {name,
          map_loops_here<float>(),
          map_loops_here<double>(),
          normal_cdfs,
          tabulate,
          start_weights,
          next_moments,
          add_taps,
          plackett_row};
}

}  // namespace
