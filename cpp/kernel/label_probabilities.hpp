// Matrices of label probabilities: creation from columns or single scores, and row statistics.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace probox {

// out[row * columns + column] = float(columns[column][row]) / divisor, correctly rounded. Rows are processed in blocks,
// so that inputs and outputs stay in the L1 cache.
template <class T>
void rows_from_columns(const std::vector<const T*>& columns, std::size_t rows, float divisor, float* out, int threads) {
  constexpr std::size_t block = 64;
  const std::size_t width = columns.size();
  const auto blocks = static_cast<std::ptrdiff_t>((rows + block - 1) / block);
  constexpr std::ptrdiff_t share = 32;  // blocks per task
  for_each_index((blocks + share - 1) / share, threads, [&](int, std::ptrdiff_t piece) {
    std::vector<float> tile(width * block);
    for (std::ptrdiff_t at = piece * share; at < std::min(blocks, (piece + 1) * share); ++at) {
      const std::size_t first = static_cast<std::size_t>(at) * block;
      const std::size_t count = std::min(block, rows - first);
      for (std::size_t column = 0; column < width; ++column) {
        const T* values = columns[column] + first;
        float* to = tile.data() + column * block;
        for (std::size_t row = 0; row < count; ++row) to[row] = static_cast<float>(values[row]) / divisor;
      }
      for (std::size_t row = 0; row < count; ++row) {
        float* to = out + (first + row) * width;
        const float* from = tile.data() + row;
        for (std::size_t column = 0; column < width; ++column) to[column] = from[column * block];
      }
    }
  });
}

// A single score as label probabilities: its class has the score, the others share the remainder evenly.
inline void spread_evenly(double score, std::size_t label, float* out, std::size_t columns) {
  const double rest = columns > 1 ? (1.0 - score) / static_cast<double>(columns - 1) : 0.0;
  std::fill_n(out, columns, static_cast<float>(rest));
  out[label] = static_cast<float>(score);
}

// Detections with all label probabilities: their rows, ascending, and their values, concatenated.
struct GivenLabels {
  const std::int64_t* rows;
  std::size_t count;
  const float* values;
};

// The label matrix (rows x columns): given values where they exist, else evenly spread scores.
inline void fill_label_matrix(const double* scores, const std::int32_t* labels, std::size_t rows,
                              const GivenLabels& given, std::size_t columns, float* matrix, int threads) {
  constexpr std::size_t share = 4096;
  for_each_index(static_cast<std::ptrdiff_t>((rows + share - 1) / share), threads, [&](int, std::ptrdiff_t piece) {
    const std::size_t begin = static_cast<std::size_t>(piece) * share;
    const std::int64_t* last = given.rows + given.count;
    const std::int64_t* next = std::lower_bound(given.rows, last, static_cast<std::int64_t>(begin));
    for (std::size_t row = begin; row < std::min(rows, begin + share); ++row) {
      float* out = matrix + row * columns;
      if (next != last && *next == static_cast<std::int64_t>(row)) {
        std::copy_n(given.values + static_cast<std::size_t>(next - given.rows) * columns, columns, out);
        ++next;
      } else {
        spread_evenly(scores[row], static_cast<std::size_t>(labels[row]), out, columns);
      }
    }
  });
}

// Smallest value (at most 0), largest value (at least 0) and sum of each row; the sum is NaN or infinite if a value is.
struct RowRanges {
  std::vector<float> low, high;
  std::vector<double> total;
};

inline RowRanges row_ranges(const float* matrix, std::size_t rows, std::size_t columns) {
  RowRanges found{std::vector<float>(rows), std::vector<float>(rows), std::vector<double>(rows)};
  constexpr std::size_t lanes = 8;  // independent sums, which the compiler can vectorise
  for (std::size_t row = 0; row < rows; ++row) {
    const float* values = matrix + row * columns;
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
    found.low[row] = *std::min_element(lows.begin(), lows.end());
    found.high[row] = *std::max_element(highs.begin(), highs.end());
    found.total[row] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }
  return found;
}

}  // namespace probox
