// Optimal LRP of every class and area range.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "kernel/optimal_lrp.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

nb::object optima(Column<std::int64_t> order, Column<std::int64_t> offsets, Column<double> scores,
                  Table<std::uint16_t> matched, Table<std::uint16_t> ignored, Table<double> ious,
                  Table<std::int64_t> objects, double slack, Column<double> thresholds) {
  const std::size_t n = order.shape(0), classes = objects.shape(0), ranges = objects.shape(1);
  require(scores.shape(0) == n && matched.shape(0) == n && ignored.shape(0) == n && ious.shape(0) == n &&
              matched.shape(1) == ranges && ignored.shape(1) == ranges && ious.shape(1) == ranges,
          "expected columns of one length");
  require_offsets(offsets, classes, n, "offsets of classes");
  require(std::is_sorted(thresholds.data(), thresholds.data() + thresholds.shape(0)), "expected ascending thresholds");
  require_rows(order, n, "expected rows in order");
  constexpr std::size_t parts = 5;
  std::vector<double> values(volume(parts, classes, ranges));
  {
    nb::gil_scoped_release release;
    for (std::size_t c = 0; c < classes; ++c) {
      const std::int64_t begin = offsets.data()[c];
      const LrpDetections found{order.data() + begin,
                                static_cast<std::size_t>(offsets.data()[c + 1] - begin),
                                scores.data(),
                                matched.data(),
                                ignored.data(),
                                ious.data(),
                                ranges};
      for (std::size_t a = 0; a < ranges; ++a) {
        const LrpOptimum best =
            optimal_lrp(found, a, objects.data()[c * ranges + a], slack, thresholds.data(), thresholds.shape(0));
        double* out = values.data() + c * ranges + a;
        for (const double value : {best.lrp, best.loc, best.fp, best.fn, best.score}) {
          *out = value;
          out += classes * ranges;
        }
      }
    }
  }
  return to_numpy(std::move(values), {parts, classes, ranges});
}

}  // namespace

void bind_optimal_lrp(nb::module_& m) {
  m.def("optimal_lrp", &optima, nb::kw_only(), "order"_a, "offsets"_a, "scores"_a, "matched"_a, "ignored"_a, "ious"_a,
        "objects"_a, "slack"_a, "thresholds"_a,
        "Return optimal LRP, its three components and the threshold that attains it: 5 x classes x area ranges.");
}
