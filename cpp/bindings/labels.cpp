// Label probabilities: matrices and listed classes, and row statistics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "kernel/label_probabilities.hpp"
#include "kernel/large_array.hpp"
#include "label_table.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

using Matrix = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::tuple ranges_of_rows(const LabelTable& labels) {
  RowRanges found;
  {
    nb::gil_scoped_release unlocked;
    labels.check();
    found = row_ranges(labels.view(), labels.rows);
  }
  return nb::make_tuple(to_numpy(std::move(found.low)), to_numpy(std::move(found.high)),
                        to_numpy(std::move(found.total)));
}

nb::object best_of_rows(const LabelTable& labels) {
  std::vector<std::int32_t> best;
  {
    nb::gil_scoped_release unlocked;
    labels.check();
    best = best_classes(labels.view(), labels.rows);
  }
  return to_numpy(std::move(best));
}

nb::object values_at(const LabelTable& labels, Column<std::int64_t> rows, Column<std::int64_t> columns) {
  require(rows.shape(0) == columns.shape(0), "one column per row");
  require_rows(rows, labels.rows, "row out of range");
  require_rows(columns, labels.columns(), "column out of range");
  std::vector<float> values(rows.shape(0));
  {
    nb::gil_scoped_release unlocked;
    labels.check();
    const LabelRows<float> view = labels.view();
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = view.at(static_cast<std::size_t>(rows(k)), static_cast<std::size_t>(columns(k)));
  }
  return to_numpy(std::move(values));
}

nb::object expanded(const LabelTable& labels) {
  LargeArray<float> matrix = make_large_array<float>(volume(labels.rows, labels.columns()));
  {
    nb::gil_scoped_release unlocked;
    labels.check();
    const LabelRows<float> view = labels.view();
    for (std::size_t row = 0; row < labels.rows; ++row) view.expand(row, matrix.get() + row * view.columns);
  }
  return to_numpy(std::move(matrix), {labels.rows, labels.columns()});
}

nb::object listed(Table<float> matrix, Column<bool> sharing, std::size_t most) {
  require(sharing.shape(0) == matrix.shape(1), "one flag per column");
  require(matrix.shape(1) < (std::size_t{1} << 31), "expected fewer classes");
  ListedRows out;
  bool few = false;
  {
    nb::gil_scoped_release unlocked;
    few = list_rows(matrix.data(), matrix.shape(0), matrix.shape(1), sharing.data(), most, out);
  }
  if (!few) return nb::none();
  return nb::make_tuple(to_numpy(std::move(out.offsets)), to_numpy(std::move(out.indices)),
                        to_numpy(std::move(out.values)), to_numpy(std::move(out.rest)));
}

nb::object rests(Column<double> scores, std::size_t columns) {
  std::vector<float> rest(scores.shape(0));
  for (std::size_t row = 0; row < rest.size(); ++row) rest[row] = even_rest(scores(row), columns);
  return to_numpy(std::move(rest));
}

template <class T>
void fill_rows(Matrix matrix, std::size_t first, const std::vector<Column<T>>& columns, float divisor, int threads) {
  require(reinterpret_cast<std::uintptr_t>(matrix.data()) % alignof(float) == 0, "expected an aligned matrix");
  std::vector<const T*> values;
  for (const Column<T>& column : columns) values.push_back(column.data());
  const std::size_t rows = columns.empty() ? 0 : columns.front().shape(0);
  const bool even =
      std::all_of(columns.begin(), columns.end(), [&](const auto& column) { return column.shape(0) == rows; });
  require(even && values.size() == matrix.shape(1) && first <= matrix.shape(0) && rows <= matrix.shape(0) - first,
          "columns must have equal lengths and fit the matrix");
  float* out = matrix.data() + first * matrix.shape(1);
  nb::gil_scoped_release unlocked;
  rows_from_columns(values, rows, divisor, out, threads);
}

}  // namespace

void bind_labels(nb::module_& m) {
  nb::class_<LabelTable>(m, "LabelTable", "Label probabilities: a matrix (no offsets), or the listed classes of rows.")
      .def(nb::init<std::size_t, Column<std::int64_t>, Column<std::int32_t>, Column<float>, Column<float>,
                    Column<bool>>(),
           nb::kw_only(), "rows"_a, "offsets"_a, "indices"_a, "values"_a, "rest"_a, "sharing"_a);
  m.def("row_ranges", &ranges_of_rows, "labels"_a,
        "Return the smallest value (at most 0), the largest (at least 0) and the sum of each row.");
  m.def("fill_rows_of_integers", &fill_rows<std::int32_t>, "matrix"_a.noconvert(), nb::kw_only(), "first"_a,
        "columns"_a, "divisor"_a, "threads"_a,
        "Fill rows, from `first` on, with columns of equal length divided by `divisor`.");
  m.def("fill_rows_of_floats", &fill_rows<float>, "matrix"_a.noconvert(), nb::kw_only(), "first"_a, "columns"_a,
        "divisor"_a, "threads"_a, "Fill rows, from `first` on, with columns of equal length divided by `divisor`.");
  m.def("best_labels", &best_of_rows, "labels"_a,
        "Return the most probable class of each row, the first among equals.");
  m.def("label_values", &values_at, "labels"_a, "rows"_a, "columns"_a, "Return the probabilities at rows and columns.");
  m.def("expand_labels", &expanded, "labels"_a, "Return all rows as a matrix.");
  m.def("list_labels", &listed, "matrix"_a, "sharing"_a, "most"_a,
        "Return the rows of a matrix as offsets, listed classes, their values and rests; None if these are more than\n"
        "`most` classes.");
  m.def("even_rests", &rests, "scores"_a, "columns"_a, "Return an equal part of each remainder for the other classes.");
}
