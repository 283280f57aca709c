// Clustering of boxes for `probox.fusion.clustering`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>

#include "clustering.hpp"
#include "signals.hpp"

namespace nb = nanobind;

namespace {

using BoxArray = nb::ndarray<const double, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

static_assert(sizeof(probox::Box) == 4 * sizeof(double), "rows of a box array are read as boxes");

const probox::Box* as_boxes(const BoxArray& boxes) { return reinterpret_cast<const probox::Box*>(boxes.data()); }

Result to_numpy(std::vector<std::int64_t>&& values) {
  auto* kept = new std::vector<std::int64_t>(std::move(values));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<std::int64_t>*>(pointer); });
  return Result(kept->data(), {kept->size()}, owner);
}

void require(bool fits, const char* message) {
  if (!fits) throw std::invalid_argument(message);
}

void require_rows(const Rows& rows, std::size_t count, const char* message) {
  for (std::size_t k = 0; k < rows.size(); ++k)
    require(rows.data()[k] >= 0 && static_cast<std::size_t>(rows.data()[k]) < count, message);
}

Result cluster_sequentially(BoxArray boxes, double iou, std::optional<Rows> labels, std::optional<Matrix> label_probs,
                            double label_similarity) {
  const std::size_t count = boxes.shape(0);
  require(!labels || labels->size() == count, "labels must be one per box");
  require(!label_probs || label_probs->shape(0) == count, "label_probs must have one row per box");
  std::vector<std::int64_t> clusters;
  {
    nb::gil_scoped_release release;
    probox::Stop stop(probox::listen_to_python);
    clusters = probox::cluster_sequentially(as_boxes(boxes), count, iou, labels ? labels->data() : nullptr,
                                            label_probs ? label_probs->data() : nullptr,
                                            label_probs ? label_probs->shape(1) : 0, label_similarity, probox::Pulse{&stop});
  }
  return to_numpy(std::move(clusters));
}

Result suppress(BoxArray boxes, Rows groups, Rows order, double iou) {
  const std::size_t count = boxes.shape(0);
  require(groups.size() == count && order.size() == count, "groups and order must be one per box");
  require_rows(order, count, "order must hold rows of boxes");
  std::vector<std::int64_t> stands_for;
  {
    nb::gil_scoped_release release;
    probox::Stop stop(probox::listen_to_python);
    stands_for = probox::suppress(as_boxes(boxes), groups.data(), order.data(), count, iou, probox::Pulse{&stop});
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
    probox::Stop stop(probox::listen_to_python);
    members = probox::members_of_survivors(as_boxes(boxes), groups.data(), stands_for.data(), count, survivors.data(),
                                           survivors.size(), iou, probox::Pulse{&stop});
  }
  return nb::make_tuple(to_numpy(std::move(members.first)), to_numpy(std::move(members.second)));
}

}  // namespace

void bind_fusion(nb::module_& m) {
  m.def("cluster_sequentially", &cluster_sequentially, nb::arg("boxes"), nb::arg("iou"),
        nb::arg("labels") = nb::none(), nb::arg("label_probs") = nb::none(), nb::arg("label_similarity") = 0.0,
        "Return the cluster of each box by the basic sequential algorithmic scheme.");
  m.def("suppress", &suppress, nb::arg("boxes"), nb::arg("groups"), nb::arg("order"), nb::arg("iou"),
        "Return, for each box, the row of the box that stands for it after non-maximum suppression.");
  m.def("members_of_survivors", &members_of_survivors, nb::arg("boxes"), nb::arg("groups"), nb::arg("stands_for"),
        nb::arg("survivors"), nb::arg("iou"),
        "Return clusters and rows of the suppressed boxes that overlap each survivor by more than `iou`.");
}
