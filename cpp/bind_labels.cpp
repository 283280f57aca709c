// Label probabilities: one look at a matrix of them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

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

}  // namespace

void bind_labels(nb::module_& m) { m.def("row_ranges", &row_ranges, nb::arg("matrix")); }
