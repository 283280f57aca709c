// IoU of masks: checks shapes, releases the GIL, hands arrays over.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "arrays.hpp"
#include "kernel/mask_overlaps.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

// Checks masks of `count` rows. Coordinates are limited so that numbers of pixels fit 64 bits and widths 32.
LabelledMasks checked_masks(const Column<std::int32_t>& labels, const Table<std::int32_t>& boxes,
                            const Column<std::int64_t>& pixels, const Column<std::int64_t>& offsets,
                            const Table<std::int32_t>& runs) {
  const std::size_t count = labels.shape(0);
  require(boxes.shape(0) == count && boxes.shape(1) == 4 && pixels.shape(0) == count && runs.shape(1) == 3,
          "expected columns of masks of one length");
  require_offsets(offsets, count, runs.shape(0), "expected ascending offsets from 0 to the number of runs");
  constexpr std::int32_t most = 1 << 30;
  for (std::size_t row = 0; row < count; ++row) {
    const std::int32_t* box = boxes.data() + 4 * row;
    require(box[0] >= 0 && box[1] >= 0 && box[2] >= -1 && box[3] >= -1 && box[2] < most && box[3] < most,
            "expected boxes of pixels from 0 to 2^30");
    require(pixels.data()[row] > 0 || box[2] < box[0] || box[3] < box[1], "expected an empty box of an empty mask");
  }
  for (std::size_t run = 0; run < runs.shape(0); ++run) {
    const std::int32_t* ends = runs.data() + 3 * run;
    require(0 <= ends[1] && ends[1] < ends[2] && ends[2] <= most, "expected runs of pixels from 0 to 2^30");
  }
  return {labels.data(), boxes.data(), pixels.data(), offsets.data(), runs.data()};
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
  const LabelledMasks found = checked_masks(labels, boxes, pixels, offsets, runs);
  const LabelledMasks truth =
      checked_masks(object_labels, object_boxes, object_pixels, object_run_offsets, object_runs);
  auto overlaps = [&] {
    nb::gil_scoped_release release;
    Stop stop(check_python_signals);
    return mask_overlaps(static_cast<std::int64_t>(count), image.data(), found, object_offsets.data(), truth,
                         object_crowd.data(), threads, stop);
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
