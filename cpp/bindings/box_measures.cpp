// Box matching and precision: checks shapes, releases the GIL, hands arrays over.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "kernel/box_matching.hpp"
#include "kernel/box_precision.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

// Checks overlaps of `count` detections with `objects`; none if they are not given.
std::optional<probox::boxes::Overlaps> checked_overlaps(size_t count, size_t objects,
                                                        const std::optional<Column<double>>& areas,
                                                        const std::optional<Column<int64_t>>& offsets,
                                                        const std::optional<Column<int64_t>>& rows,
                                                        const std::optional<Column<double>>& ious) {
  if (!offsets) return std::nullopt;
  require(areas && rows && ious && areas->shape(0) == count && ious->shape(0) == rows->shape(0),
          "expected columns of overlaps of one length");
  require_offsets(*offsets, count, rows->shape(0), "expected ascending offsets from 0 to the number of overlaps");
  require_rows(*rows, objects, "expected rows of objects");
  for (size_t d = 0; d < count; ++d)
    for (int64_t p = offsets->data()[d] + 1; p < offsets->data()[d + 1]; ++p)
      require(rows->data()[p - 1] < rows->data()[p], "expected ascending objects of each detection");
  return probox::boxes::Overlaps{offsets->data(), rows->data(), ious->data(), areas->data()};
}

nb::dict match_boxes(Column<int64_t> image, Column<int32_t> label, Table<double> boxes, Table<double> extents,
                     Column<double> score, Column<bool> lenient, Column<int64_t> object_offsets,
                     Column<int32_t> object_labels, Table<double> object_boxes, Table<double> object_extents,
                     Column<double> object_areas, Column<bool> object_crowd, Column<double> iou_thresholds,
                     Table<double> area_ranges, int64_t max_detections, int threads,
                     std::optional<Column<double>> areas, std::optional<Column<int64_t>> overlap_offsets,
                     std::optional<Column<int64_t>> overlap_objects, std::optional<Column<double>> overlap_ious) {
  const size_t n = image.shape(0), m = object_labels.shape(0);
  require(label.shape(0) == n && boxes.shape(0) == n && extents.shape(0) == n && score.shape(0) == n &&
              lenient.shape(0) == n,
          "expected detection columns of one length");
  require(object_boxes.shape(0) == m && object_extents.shape(0) == m && object_areas.shape(0) == m &&
              object_crowd.shape(0) == m,
          "expected object columns of one length");
  require(boxes.shape(1) == 4 && extents.shape(1) == 2 && object_boxes.shape(1) == 4 && object_extents.shape(1) == 2,
          "expected boxes with 4 and extents with 2 columns");
  require(area_ranges.shape(1) == 2 && area_ranges.shape(0) >= 1, "expected area ranges as rows of low, high");
  require(iou_thresholds.shape(0) >= 1 && iou_thresholds.shape(0) <= probox::boxes::kMaxThresholds,
          "expected 1 to 16 IoU thresholds");
  const int thresholds = static_cast<int>(iou_thresholds.shape(0));
  require(std::is_sorted(iou_thresholds.data(), iou_thresholds.data() + thresholds),
          "expected ascending IoU thresholds");
  require(object_offsets.shape(0) >= 1, "expected one more offset than images");
  const int64_t images = static_cast<int64_t>(object_offsets.shape(0)) - 1;
  const int64_t* offsets = object_offsets.data();
  require_offsets(object_offsets, object_offsets.shape(0) - 1, m,
                  "expected ascending offsets from 0 to the number of objects");
  for (size_t d = 0; d < n; ++d) require(image.data()[d] < images, "expected rows of images");
  require_scores(score);
  require(max_detections >= 0, "expected a limit of detections of at least 0");
  volume(n, area_ranges.shape(0));

  const auto overlaps = checked_overlaps(n, m, areas, overlap_offsets, overlap_objects, overlap_ious);
  const probox::boxes::Found found{static_cast<int64_t>(n),        image.data(), label.data(),
                                   {boxes.data(), extents.data()}, score.data(), lenient.data(),
                                   overlaps ? &*overlaps : nullptr};
  const probox::boxes::Truth truth{images,
                                   offsets,
                                   object_labels.data(),
                                   {object_boxes.data(), object_extents.data()},
                                   object_areas.data(),
                                   object_crowd.data()};
  const int ranges = static_cast<int>(area_ranges.shape(0));
  const probox::boxes::Rules rules{thresholds, iou_thresholds.data(), ranges, area_ranges.data(), max_detections};
  auto matches = [&] {
    nb::gil_scoped_release release;
    probox::Stop stop(probox::check_python_signals);
    return probox::boxes::match_boxes(found, truth, rules, threads, stop);
  }();

  const size_t rows = matches.rows, columns = static_cast<size_t>(ranges);
  nb::dict out;
  out["image_rows"] = to_numpy(matches.image, {rows});
  out["labels"] = to_numpy(matches.label, {rows});
  out["ranks"] = to_numpy(matches.rank, {rows});
  out["numbers"] = to_numpy(matches.number, {rows});
  out["matched_objects"] = to_numpy(matches.object, {rows});
  out["scores"] = to_numpy(matches.score, {rows});
  out["ious"] = to_numpy(matches.iou, {rows, columns});
  out["matched"] = to_numpy(matches.matched, {rows, columns});
  out["ignored"] = to_numpy(matches.ignored, {rows, columns});
  return out;
}

nb::tuple score_order(Column<int32_t> label, Column<double> score, int64_t classes, int threads) {
  const size_t n = label.shape(0);
  require(score.shape(0) == n && classes >= 0, "expected label and score of one length");
  require_rows(label, static_cast<size_t>(classes), "expected labels that count in classes");
  require_scores(score);
  std::vector<int64_t> order(n), offsets(volume(static_cast<size_t>(classes) + 1));
  {
    nb::gil_scoped_release release;
    probox::boxes::score_order(static_cast<int64_t>(n), label.data(), score.data(), classes, threads, order.data(),
                               offsets.data());
  }
  return nb::make_tuple(to_numpy(std::move(order), {n}),
                        to_numpy(std::move(offsets), {static_cast<size_t>(classes) + 1}));
}

nb::tuple precision_at_recall(Column<int64_t> order, Column<int64_t> offsets, Column<double> score,
                              Column<int32_t> rank, Table<uint16_t> matched, Table<uint16_t> ignored,
                              Table<int64_t> objects, int thresholds, Column<double> recall_points,
                              Column<int64_t> limits, int threads) {
  // The order may contain the rows of selected classes only.
  const size_t n = score.shape(0), listed = order.shape(0), classes = objects.shape(0), ranges = objects.shape(1);
  require(rank.shape(0) == n && matched.shape(0) == n && ignored.shape(0) == n && matched.shape(1) == ranges &&
              ignored.shape(1) == ranges && offsets.shape(0) == classes + 1,
          "expected columns of one length");
  require(thresholds >= 1 && thresholds <= probox::boxes::kMaxThresholds, "expected 1 to 16 IoU thresholds");
  require_offsets(offsets, classes, listed, "expected ascending offsets from 0 to the number of rows");
  require_rows(order, n, "expected rows in order");
  require(recall_points.shape(0) < (1 << 20) && limits.shape(0) < (1 << 20), "expected fewer recalls and limits");
  const probox::boxes::Outcomes outcomes{order.data(),
                                         offsets.data(),
                                         score.data(),
                                         rank.data(),
                                         matched.data(),
                                         ignored.data(),
                                         objects.data(),
                                         static_cast<int64_t>(classes),
                                         static_cast<int>(ranges),
                                         thresholds};
  const size_t recalls = recall_points.shape(0), many = limits.shape(0), levels = static_cast<size_t>(thresholds);
  const probox::boxes::Points points{static_cast<int>(recalls), recall_points.data(), static_cast<int>(many),
                                     limits.data()};
  std::vector<double> precision(volume(levels, recalls, classes, ranges)), score_at(precision.size());
  std::vector<double> recall(volume(levels, classes, ranges, many));
  {
    nb::gil_scoped_release release;
    probox::boxes::precision_at_recall(outcomes, points, threads, precision.data(), score_at.data(), recall.data());
  }
  return nb::make_tuple(to_numpy(std::move(precision), {levels, recalls, classes, ranges}),
                        to_numpy(std::move(score_at), {levels, recalls, classes, ranges}),
                        to_numpy(std::move(recall), {levels, classes, ranges, many}));
}

}  // namespace

void bind_box_measures(nb::module_& m) {
  m.def("match_boxes", &match_boxes, nb::kw_only(), "image_rows"_a, "labels"_a, "boxes"_a, "extents"_a, "scores"_a,
        "lenient"_a, "object_offsets"_a, "object_labels"_a, "object_boxes"_a, "object_extents"_a, "object_areas"_a,
        "object_crowd"_a, "iou_thresholds"_a, "area_ranges"_a, "max_detections"_a, "threads"_a, "areas"_a = nb::none(),
        "overlap_offsets"_a = nb::none(), "overlap_objects"_a = nb::none(), "overlap_ious"_a = nb::none(),
        "Match detections with objects image by image and class by class, greedily from the highest score down: by IoU "
        "of "
        "boxes, or by given overlaps.");
  m.def("score_order", &score_order, "labels"_a, "scores"_a, "classes"_a, "threads"_a,
        "Return rows by class and descending score, ties in order, and the start of each class.");
  m.def("precision_at_recall", &precision_at_recall, nb::kw_only(), "order"_a, "offsets"_a, "scores"_a, "ranks"_a,
        "matched"_a, "ignored"_a, "objects"_a, "thresholds"_a, "recall_points"_a, "limits"_a, "threads"_a,
        "Return the highest precision at each recall or above, the score at that recall, and the final recalls.");
}
