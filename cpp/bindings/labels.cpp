// Label probabilities: a matrix from columns or single scores, and its row statistics.
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
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

using Matrix = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::tuple ranges_of_rows(Table<float> matrix) {
  RowRanges found;
  {
    nb::gil_scoped_release unlocked;
    found = row_ranges(matrix.data(), matrix.shape(0), matrix.shape(1));
  }
  return nb::make_tuple(to_numpy(std::move(found.low)), to_numpy(std::move(found.high)),
                        to_numpy(std::move(found.total)));
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

nb::object filled(const Column<double>& scores, const Column<std::int32_t>& labels, std::size_t columns,
                  const GivenLabels& given, int threads) {
  const std::size_t rows = scores.shape(0);
  require(labels.shape(0) == rows, "one label per score");
  if (columns > 0) require_rows(labels, columns, "labels must count in columns");
  LargeArray<float> matrix = make_large_array<float>(volume(rows, columns));
  if (columns > 0) {
    nb::gil_scoped_release unlocked;
    fill_label_matrix(scores.data(), labels.data(), rows, given, columns, matrix.get(), threads);
  }
  return to_numpy(std::move(matrix), {rows, columns});
}

nb::object spread_scores(Column<double> scores, Column<std::int32_t> labels, std::size_t columns, int threads) {
  return filled(scores, labels, columns, {nullptr, 0, nullptr}, threads);
}

nb::object label_matrix(Column<double> scores, Column<std::int32_t> labels, std::size_t columns,
                        Column<std::int64_t> given_rows, Column<float> given, int threads) {
  const std::int64_t* rows = given_rows.data();
  const std::size_t count = given_rows.shape(0);
  require(given.shape(0) == volume(count, columns), "one probability per given row and column");
  require_rows(given_rows, scores.shape(0), "expected rows of scores");
  for (std::size_t k = 1; k < count; ++k) require(rows[k - 1] < rows[k], "expected ascending rows");
  return filled(scores, labels, columns, {rows, count, given.data()}, threads);
}

}  // namespace

void bind_labels(nb::module_& m) {
  m.def("row_ranges", &ranges_of_rows, "matrix"_a,
        "Return the smallest value (at most 0), the largest (at least 0) and the sum of each row.");
  m.def("fill_rows_of_integers", &fill_rows<std::int32_t>, "matrix"_a.noconvert(), nb::kw_only(), "first"_a, "columns"_a,
        "divisor"_a, "threads"_a, "Fill rows, from `first` on, with columns of equal length divided by `divisor`.");
  m.def("fill_rows_of_floats", &fill_rows<float>, "matrix"_a.noconvert(), nb::kw_only(), "first"_a, "columns"_a, "divisor"_a,
        "threads"_a, "Fill rows, from `first` on, with columns of equal length divided by `divisor`.");
  m.def("spread_scores", &spread_scores, "scores"_a, "labels"_a, "columns"_a, "threads"_a,
        "Return label probabilities: the label gets the score, and the others share the remainder evenly.");
  m.def("label_matrix", &label_matrix, nb::kw_only(), "scores"_a, "labels"_a, "columns"_a, "given_rows"_a, "given"_a,
        "threads"_a, "Return label probabilities: the given ones for the given rows, else those of spread_scores.");
}
