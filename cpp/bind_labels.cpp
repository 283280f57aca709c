// Label probabilities: a matrix of them from columns or from single scores, and one look at it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coco_results.hpp"
#include "rows.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace probox;

namespace {

// Smallest value (at most 0), largest value (at least 0) and sum of each row; the sum is NaN or infinite where a value is.
nb::tuple row_ranges(nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu> matrix) {
  const std::size_t rows = matrix.shape(0);
  const std::size_t columns = matrix.shape(1);
  std::vector<float> low(rows), high(rows);
  std::vector<double> total(rows);
  {
    nb::gil_scoped_release unlocked;
    constexpr std::size_t lanes = 8;  // independent sums, so that the compiler may work on them side by side
    for (std::size_t row = 0; row < rows; ++row) {
      const float* values = matrix.data() + row * columns;
      std::array<float, lanes> lows{}, highs{};
      std::array<double, lanes> sums{};
      std::size_t column = 0;
      for (; column + lanes <= columns; column += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          const float value = values[column + lane];
          lows[lane] = value < lows[lane] ? value : lows[lane];
          highs[lane] = value > highs[lane] ? value : highs[lane];
          sums[lane] += static_cast<double>(value);
        }
      }
      for (std::size_t lane = 0; column < columns; ++column, ++lane) {
        const float value = values[column];
        lows[lane] = value < lows[lane] ? value : lows[lane];
        highs[lane] = value > highs[lane] ? value : highs[lane];
        sums[lane] += static_cast<double>(value);
      }
      low[row] = *std::min_element(lows.begin(), lows.end());
      high[row] = *std::max_element(highs.begin(), highs.end());
      total[row] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    }
  }
  return nb::make_tuple(to_numpy(std::move(low)), to_numpy(std::move(high)), to_numpy(std::move(total)));
}

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Fills rows of a matrix, from row `first` on, with columns of equal length divided by `divisor`.
template <class T>
void fill_rows(Matrix matrix, std::size_t first, const nb::list& columns, float divisor, int threads) {
  std::vector<Column<T>> kept;
  std::vector<const T*> values;
  for (nb::handle column : columns) {
    kept.push_back(nb::cast<Column<T>>(column));
    values.push_back(kept.back().data());
  }
  const std::size_t rows = kept.empty() ? 0 : kept.front().shape(0);
  const bool even = std::all_of(kept.begin(), kept.end(), [&](const auto& column) { return column.shape(0) == rows; });
  if (!even || values.size() != matrix.shape(1) || first > matrix.shape(0) || rows > matrix.shape(0) - first) {
    throw nb::value_error("columns must have equal lengths and fit the matrix");
  }
  float* out = matrix.data() + first * matrix.shape(1);
  nb::gil_scoped_release unlocked;
  rows_from_columns(values, rows, divisor, out, threads);
}

// Label probabilities of single scores, as the reader of COCO results makes them.
nb::object spread_scores(Column<double> scores, Column<std::int32_t> labels, std::size_t columns, int threads) {
  const std::size_t rows = scores.shape(0);
  if (labels.shape(0) != rows) throw nb::value_error("one label per score");
  for (std::size_t row = 0; row < rows; ++row) {
    const auto label = static_cast<std::int64_t>(labels.data()[row]);
    if (columns > 0 && (label < 0 || label >= static_cast<std::int64_t>(columns))) {
      throw nb::value_error("labels must count in columns");
    }
  }
  LargeArray<float> matrix = make_large_array<float>(rows * columns);
  if (columns > 0) {
    nb::gil_scoped_release unlocked;
    constexpr std::size_t share = 4096;
    for_each_index(static_cast<std::ptrdiff_t>((rows + share - 1) / share), threads, [&](int, std::ptrdiff_t piece) {
      const std::size_t begin = static_cast<std::size_t>(piece) * share;
      for (std::size_t row = begin; row < std::min(rows, begin + share); ++row) {
        coco::spread_evenly(scores.data()[row], static_cast<std::size_t>(labels.data()[row]),
                            matrix.get() + row * columns, columns);
      }
    });
  }
  return to_numpy(std::move(matrix), {rows, columns});
}

}  // namespace

void bind_labels(nb::module_& m) {
  m.def("row_ranges", &row_ranges, nb::arg("matrix"));
  m.def("fill_rows_of_integers", &fill_rows<std::int32_t>, nb::arg("matrix"), nb::arg("first"), nb::arg("columns"),
        nb::arg("divisor"), nb::arg("threads"));
  m.def("fill_rows_of_floats", &fill_rows<float>, nb::arg("matrix"), nb::arg("first"), nb::arg("columns"),
        nb::arg("divisor"), nb::arg("threads"));
  m.def("spread_scores", &spread_scores, nb::arg("scores"), nb::arg("labels"), nb::arg("columns"), nb::arg("threads"));
}
