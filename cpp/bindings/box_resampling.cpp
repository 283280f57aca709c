// Box metrics of resampled images: checks shapes, releases the GIL, returns arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "kernel/box_resampling.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

probox::boxes::Weights weights_of(const Table<int64_t>& weights) {
  const int64_t* first = weights.data();
  const int64_t* last = first + volume(weights.shape(0), weights.shape(1));
  require(std::all_of(first, last, [](int64_t w) { return w >= 0 && w < (1 << 20); }),
          "expected weights from 0 to 2^20 - 1");  // copies of images are counted one by one
  return {static_cast<int64_t>(weights.shape(0)), static_cast<int64_t>(weights.shape(1)), first};
}

probox::boxes::ByClass by_class(const Column<int64_t>& order, const Column<int64_t>& offsets,
                                const Column<int32_t>& image, const Column<double>& score,
                                const Column<uint16_t>& right, const Column<uint16_t>& wrong,
                                const Column<int64_t>& object_offsets, const Column<int32_t>& object_images,
                                size_t images) {
  const size_t n = order.shape(0);
  require(image.shape(0) == n && score.shape(0) == n && right.shape(0) == n && wrong.shape(0) == n,
          "expected detection columns of one length");
  require(offsets.shape(0) >= 1, "expected one more offset than classes");
  const size_t classes = offsets.shape(0) - 1;
  require_offsets(offsets, classes, n, "expected ascending offsets from 0 to the number of rows");
  require_offsets(object_offsets, classes, object_images.shape(0),
                  "expected ascending offsets from 0 to the number of objects");
  require_rows(image, images, "expected rows of images");
  require_rows(object_images, images, "expected rows of images");
  require_rows(order, n, "expected rows in order");
  return {static_cast<int64_t>(classes),
          order.data(),
          offsets.data(),
          image.data(),
          score.data(),
          right.data(),
          wrong.data(),
          object_offsets.data(),
          object_images.data()};
}

nb::object resampled_precision(Column<int64_t> order, Column<int64_t> offsets, Column<int32_t> image,
                               Column<double> score, Column<uint16_t> right, Column<uint16_t> wrong,
                               Column<int64_t> object_offsets, Column<int32_t> object_images, Table<int64_t> weights,
                               int thresholds, Column<double> recall_points, int threads) {
  const auto in = by_class(order, offsets, image, score, right, wrong, object_offsets, object_images, weights.shape(1));
  const auto counts = weights_of(weights);
  require(thresholds >= 1 && thresholds <= probox::boxes::kMaxThresholds, "expected 1 to 16 IoU thresholds");
  const size_t replicates = weights.shape(0), levels = static_cast<size_t>(thresholds), classes = offsets.shape(0) - 1;
  std::vector<double> average(volume(replicates, levels, classes));
  if (!average.empty()) {
    nb::gil_scoped_release release;
    probox::Stop stop(probox::check_python_signals);
    probox::boxes::resampled_precision(in, counts, thresholds, static_cast<int>(recall_points.shape(0)),
                                       recall_points.data(), threads, stop, average.data());
  }
  return to_numpy(std::move(average), {replicates, levels, classes});
}

nb::object resampled_lrp(Column<int64_t> order, Column<int64_t> offsets, Column<int32_t> image, Column<double> score,
                         Column<uint16_t> right, Column<uint16_t> wrong, Column<int64_t> object_offsets,
                         Column<int32_t> object_images, Table<int64_t> weights, Column<double> errors,
                         Column<double> score_thresholds, double slack, int threads) {
  const auto in = by_class(order, offsets, image, score, right, wrong, object_offsets, object_images, weights.shape(1));
  const auto counts = weights_of(weights);
  require(errors.shape(0) == order.shape(0), "expected detection columns of one length");
  require(std::is_sorted(score_thresholds.data(), score_thresholds.data() + score_thresholds.shape(0)),
          "expected ascending score thresholds");
  const probox::boxes::LrpGrid grid{static_cast<int>(score_thresholds.shape(0)), score_thresholds.data(), errors.data(),
                                    slack};
  const size_t replicates = weights.shape(0), classes = offsets.shape(0) - 1;
  std::vector<double> optimum(volume(replicates, classes, 4));
  if (!optimum.empty()) {
    nb::gil_scoped_release release;
    probox::Stop stop(probox::check_python_signals);
    probox::boxes::resampled_lrp(in, counts, grid, threads, stop, optimum.data());
  }
  return to_numpy(std::move(optimum), {replicates, classes, 4});
}

}  // namespace

void bind_box_resampling(nb::module_& m) {
  m.def("resampled_precision", &resampled_precision, nb::kw_only(), "order"_a, "offsets"_a, "image_rows"_a, "scores"_a,
        "right"_a, "wrong"_a, "object_offsets"_a, "object_images"_a, "weights"_a, "thresholds"_a, "recall_points"_a,
        "threads"_a,
        "Return the average precision of each replicate, threshold and class, images counting by weights.");
  m.def("resampled_lrp", &resampled_lrp, nb::kw_only(), "order"_a, "offsets"_a, "image_rows"_a, "scores"_a, "right"_a,
        "wrong"_a, "object_offsets"_a, "object_images"_a, "weights"_a, "errors"_a, "score_thresholds"_a, "slack"_a,
        "threads"_a,
        "Return the lowest LRP and its components of each replicate and class, images counting by weights.");
}
