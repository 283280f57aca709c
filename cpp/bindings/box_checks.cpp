// The fast check of box columns.
#include <nanobind/nanobind.h>

#include "arrays.hpp"
#include "kernel/box_checks.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

bool all_valid(Table<double> boxes, Table<double> extents, double farthest, double rounding, double relative_rounding) {
  const std::size_t rows = boxes.shape(0);
  require(boxes.shape(1) == 4 && extents.shape(1) == 2 && extents.shape(0) == rows,
          "expected boxes with 4 and extents with 2 columns, of one length");
  nb::gil_scoped_release unlocked;
  return boxes_are_valid(boxes.data(), extents.data(), rows, {farthest, rounding, relative_rounding});
}

}  // namespace

void bind_box_checks(nb::module_& m) {
  m.def("boxes_are_valid", &all_valid, "boxes"_a, "extents"_a, nb::kw_only(), "farthest"_a, "rounding"_a,
        "relative_rounding"_a,
        "Return whether all corners are finite, near and in order, and all widths and heights fit them.");
}
