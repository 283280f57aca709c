// IoU of masks: checks shapes, releases the GIL, hands arrays over.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "arrays.hpp"
#include "kernel/mask_overlaps.hpp"
#include "mask_table.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

// Checks masks of `count` rows. Coordinates are limited so that numbers of pixels fit 64 bits and widths 32.
void check_masks(const MaskTable& masks, std::size_t count) {
  constexpr std::int32_t most = 1 << 30;
  require(masks.count() == count, "expected columns of masks of one length");
  masks.check_offsets();
  masks.check(0, static_cast<std::int64_t>(count), most, most, true);
}

nb::tuple overlaps_of_masks(Column<std::int64_t> image, Column<std::int32_t> labels, Table<std::int32_t> boxes,
                            Column<std::int64_t> pixels, Column<std::int64_t> offsets, Table<std::int32_t> runs,
                            Column<std::int64_t> object_offsets, Column<std::int32_t> object_labels,
                            Column<bool> object_crowd, Table<std::int32_t> object_boxes,
                            Column<std::int64_t> object_pixels, Column<std::int64_t> object_run_offsets,
                            Table<std::int32_t> object_runs, int threads) {
  const std::size_t count = image.shape(0), objects = object_labels.shape(0);
  require(labels.shape(0) == count && object_crowd.shape(0) == objects, "expected columns of one length");
  require(object_offsets.shape(0) >= 1, "expected one more offset than images");
  const std::size_t images = object_offsets.shape(0) - 1;
  require_offsets(object_offsets, images, objects, "expected ascending offsets from 0 to the number of objects");
  for (std::size_t d = 0; d < count; ++d)
    require(image.data()[d] < static_cast<std::int64_t>(images), "expected rows of images");
  const MaskTable found(boxes, pixels, offsets, runs);
  const MaskTable truth(object_boxes, object_pixels, object_run_offsets, object_runs);
  check_masks(found, count);
  check_masks(truth, objects);
  auto overlaps = [&] {
    nb::gil_scoped_release release;
    Stop stop(check_python_signals);
    return mask_overlaps(static_cast<std::int64_t>(count), image.data(), found, labels.data(), object_offsets.data(),
                         truth, object_labels.data(), object_crowd.data(), threads, stop);
  }();
  return nb::make_tuple(to_numpy(std::move(overlaps.detections)), to_numpy(std::move(overlaps.objects)),
                        to_numpy(std::move(overlaps.ious)));
}

}  // namespace

void bind_mask_overlaps(nb::module_& m) {
  m.def("mask_overlaps", &overlaps_of_masks, nb::kw_only(), "image_rows"_a, "labels"_a, "boxes"_a, "pixels"_a,
        "offsets"_a, "runs"_a, "object_offsets"_a, "object_labels"_a, "object_crowd"_a, "object_boxes"_a,
        "object_pixels"_a, "object_run_offsets"_a, "object_runs"_a, "threads"_a,
        "Return detections, objects and IoU of masks of the same image and class whose boxes overlap.");
}
