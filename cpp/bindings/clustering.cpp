// Clustering of boxes and NMS, for `probox.fusion.fuse`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "kernel/clustering.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using probox::require;
using probox::require_rows;
using probox::to_numpy;

namespace {

using BoxArray = probox::ArrayOf<double, nb::shape<-1, 4>>;
using Matrix = probox::Table<double>;
using Rows = probox::Column<std::int64_t>;

static_assert(sizeof(probox::Box) == 4 * sizeof(double), "rows of a box array are read as boxes");

const probox::Box* as_boxes(const BoxArray& boxes) { return reinterpret_cast<const probox::Box*>(boxes.data()); }

nb::object cluster_sequentially(BoxArray boxes, double iou, std::optional<Rows> labels,
                                std::optional<Matrix> label_probs, double label_similarity) {
  const std::size_t count = boxes.shape(0);
  require(!labels || labels->size() == count, "labels must be one per box");
  require(!label_probs || label_probs->shape(0) == count, "label_probs must have one row per box");
  std::vector<std::int64_t> clusters;
  {
    nb::gil_scoped_release release;
    probox::Stop stop(probox::check_python_signals);
    clusters = probox::cluster_sequentially(
        as_boxes(boxes), count, iou, labels ? labels->data() : nullptr, label_probs ? label_probs->data() : nullptr,
        label_probs ? label_probs->shape(1) : 0, label_similarity, probox::CheckInterrupt{&stop});
  }
  return to_numpy(std::move(clusters));
}

nb::object suppress(BoxArray boxes, Rows groups, Rows order, double iou) {
  const std::size_t count = boxes.shape(0);
  require(groups.size() == count && order.size() == count, "groups and order must be one per box");
  require_rows(order, count, "order must hold rows of boxes");
  std::vector<std::int64_t> stands_for;
  {
    nb::gil_scoped_release release;
    probox::Stop stop(probox::check_python_signals);
    stands_for =
        probox::suppress(as_boxes(boxes), groups.data(), order.data(), count, iou, probox::CheckInterrupt{&stop});
  }
  return to_numpy(std::move(stands_for));
}

nb::tuple members_of_survivors(BoxArray boxes, Rows groups, Rows stands_for, Rows survivors, double iou) {
  const std::size_t count = boxes.shape(0);
  require(groups.size() == count && stands_for.size() == count, "groups and stands_for must be one per box");
  require_rows(survivors, count, "survivors must hold rows of boxes");
  std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> members;
  {
    nb::gil_scoped_release release;
    probox::Stop stop(probox::check_python_signals);
    members = probox::members_of_survivors(as_boxes(boxes), groups.data(), stands_for.data(), count, survivors.data(),
                                           survivors.size(), iou, probox::CheckInterrupt{&stop});
  }
  return nb::make_tuple(to_numpy(std::move(members.first)), to_numpy(std::move(members.second)));
}

}  // namespace

void bind_clustering(nb::module_& m) {
  m.def("cluster_sequentially", &cluster_sequentially, "boxes"_a, "iou"_a, nb::kw_only(), "labels"_a = nb::none(),
        "label_probs"_a = nb::none(), "label_similarity"_a = 0.0,
        "Return the cluster of each box by the basic sequential algorithmic scheme.");
  m.def("suppress", &suppress, "boxes"_a, "groups"_a, "order"_a, "iou"_a,
        "Return, for each box, the row of its survivor after non-maximum suppression.");
  m.def("members_of_survivors", &members_of_survivors, nb::kw_only(), "boxes"_a, "groups"_a, "stands_for"_a,
        "survivors"_a, "iou"_a,
        "Return clusters and rows of the suppressed boxes that overlap each survivor by more than `iou`.");
}
