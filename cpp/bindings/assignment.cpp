// Assignment of pairs.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "arrays.hpp"
#include "kernel/large_array.hpp"
#include "kernel/pair_assignment.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

nb::object assign_pairs(Column<std::int64_t> offsets, Column<std::int64_t> detection, Column<std::int64_t> object,
                        Column<double> quality, bool greedy, int threads) {
  const std::size_t n = detection.shape(0), images = offsets.shape(0) ? offsets.shape(0) - 1 : 0;
  require(object.shape(0) == n && quality.shape(0) == n, "pair columns differ in length");
  for (std::size_t k = 0; k < n; ++k)
    // Sums of larger values may overflow.
    require(quality.data()[k] >= 0.0 && quality.data()[k] <= 1e100, "qualities must be finite, from 0 to 1e100");
  require_offsets(offsets, images, n, "offsets");
  LargeArray<bool> matched = make_large_array<bool>(n);
  std::fill_n(matched.get(), n, false);
  {
    nb::gil_scoped_release release;
    Stop stop(check_python_signals);
    assign_images({detection.data(), object.data(), quality.data()}, offsets.data(), images, greedy, threads, stop,
                  matched.get());
  }
  return to_numpy(std::move(matched), {n});
}

}  // namespace

void bind_assignment(nb::module_& m) {
  m.def("assign_pairs", &assign_pairs, nb::kw_only(), "offsets"_a, "detections"_a, "objects"_a, "qualities"_a,
        "greedy"_a, "threads"_a,
        "Return which pairs are matches; the pairs of image i are offsets[i]..offsets[i + 1].");
}
