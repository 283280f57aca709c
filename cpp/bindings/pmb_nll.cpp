// PMB-NLL of images, and the ranking of assignments.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "kernel/k_best_assignment.hpp"
#include "kernel/pmb_nll.hpp"
#include "label_table.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

constexpr std::int64_t kMostAssignments = 10000;  // each stores its own solution

nb::tuple k_best_assignments(Table<double> costs, Column<double> alone, std::int64_t k) {
  const std::size_t rows = costs.shape(0), columns = costs.shape(1), cells = volume(rows, columns);
  require(alone.shape(0) == rows, "expected as many costs of rows alone as rows");
  require(rows < (1u << 30) && columns < (1u << 30), "expected fewer rows and columns");
  require(k >= 0 && k <= kMostAssignments, "expected k from 0 to 10,000");
  // Neither NaN nor -infinity is greater than -infinity.
  for (std::size_t i = 0; i < cells; ++i) require(costs.data()[i] > -HUGE_VAL, "expected no cost of NaN or -infinity");
  for (std::size_t i = 0; i < rows; ++i) require(alone.data()[i] > -HUGE_VAL, "expected no cost of NaN or -infinity");
  std::vector<std::int32_t> chosen;
  std::vector<double> totals;
  {
    nb::gil_scoped_release release;
    Stop stop(check_python_signals);
    AssignmentRanker ranker(CheckInterrupt{&stop});
    ranker.rank({static_cast<int>(rows), static_cast<int>(columns), costs.data(), alone.data()}, static_cast<int>(k));
    for (int a = 0; a < ranker.count(); ++a) {
      for (std::size_t row = 0; row < rows; ++row) chosen.push_back(ranker.column(a, static_cast<int>(row)));
      totals.push_back(ranker.total(a));
    }
  }
  const std::size_t count = totals.size();
  return nb::make_tuple(to_numpy(std::move(chosen), {count, rows}), to_numpy(std::move(totals)));
}

LabelRows<float> rows_of(const LabelTable& labels, std::size_t rows) {
  require(labels.rows == rows, "columns differ in length");
  labels.check();
  return labels.view();
}

LabelRows<double> rows_of(const Table<double>& matrix, std::size_t rows) {
  require(matrix.shape(0) == rows, "columns differ in length");
  return {matrix.shape(1), matrix.data()};
}

// Label probabilities are a table, or a matrix of double precision.
template <class T, class Given>
nb::object pmb_nll(Column<std::int64_t> offsets, Table<double> boxes, Array<double, 4> covariances,
                   const Given& label_probs, Column<std::int64_t> object_offsets, Table<double> object_boxes,
                   Column<std::int32_t> object_labels, Column<double> log_floors, double clutter,
                   double min_probability, double min_determinant, std::int64_t assignments, int threads) {
  const std::size_t n = boxes.shape(0), m = object_boxes.shape(0), images = log_floors.shape(0);
  const LabelRows<T> labels = rows_of(label_probs, n);
  require_offsets(offsets, images, n, "offsets");
  require_offsets(object_offsets, images, m, "object offsets");
  require(boxes.shape(1) == 4 && object_boxes.shape(1) == 4, "expected boxes with 4 columns");
  require(
      covariances.shape(0) == n && covariances.shape(1) == 2 && covariances.shape(2) == 2 && covariances.shape(3) == 2,
      "expected two 2 x 2 covariances for each box");
  require(object_labels.shape(0) == m, "columns differ in length");
  require_rows(object_labels, labels.columns, "expected labels that count in classes");
  for (std::size_t i = 0; i < images; ++i)
    require(log_floors.data()[i] < HUGE_VAL, "expected no floor of NaN or infinity");
  require(min_probability > 0.0 && min_probability <= 0.5, "expected a minimum probability up to 0.5");
  require(assignments >= 1 && assignments <= kMostAssignments, "expected 1 to 10,000 assignments");
  std::vector<double> numbers(volume(images, pmb::kNumbers));
  {
    nb::gil_scoped_release release;
    Stop stop(check_python_signals);
    const pmb::Found<T> found{offsets.data(), boxes.data(), covariances.data(), labels};
    const pmb::Truth truth{object_offsets.data(), object_boxes.data(), object_labels.data(), log_floors.data()};
    const pmb::Rules rules{clutter, min_probability, min_determinant, static_cast<int>(assignments)};
    pmb::measure_images(static_cast<std::ptrdiff_t>(images), found, truth, rules, threads, stop, numbers.data());
  }
  return to_numpy(std::move(numbers), {images, static_cast<std::size_t>(pmb::kNumbers)});
}

template <class T, class Given>
void bind(nb::module_& m) {
  m.def("pmb_nll", &pmb_nll<T, Given>, nb::kw_only(), "offsets"_a, "boxes"_a, "covariances"_a, "label_probs"_a,
        "object_offsets"_a, "object_boxes"_a, "object_labels"_a, "log_floors"_a, "clutter"_a, "min_probability"_a,
        "min_determinant"_a, "assignments"_a, "threads"_a,
        "Return for each image PMB-NLL; matched box, matched label, unmatched, missed and expected in the best\n"
        "assignment; the number of assignments summed; of objects missed; of those at the floor.");
}

}  // namespace

void bind_pmb_nll(nb::module_& m) {
  m.def("k_best_assignments", &k_best_assignments, "costs"_a, "alone"_a, "k"_a,
        "Return the columns assigned to rows in the k assignments of lowest cost, -1 for none, and their costs.");
  bind<float, LabelTable>(m);
  bind<double, Table<double>>(m);
}
