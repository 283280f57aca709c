// Label probabilities: the rows of a table, their creation from columns of a file, and row statistics.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// Label probabilities of detections, `columns` per row: a matrix, or the listed classes of each row. Of the classes
// that a row does not list, those that share the row's rest have that value, the others 0.
template <class T>
struct LabelRows {
  std::size_t columns;
  const T* values;                        // the matrix, or the values of listed classes
  const std::int64_t* offsets = nullptr;  // of the listed classes of each row; null for a matrix
  const std::int32_t* indices = nullptr;  // listed classes, ascending within a row
  const T* rest = nullptr;                // of each row
  const bool* sharing = nullptr;          // of each class

  T at(std::size_t row, std::size_t column) const {
    if (offsets == nullptr) return values[row * columns + column];
    const std::int32_t *begin = indices + offsets[row], *end = indices + offsets[row + 1];
    const std::int32_t* found = std::lower_bound(begin, end, static_cast<std::int32_t>(column));
    if (found != end && static_cast<std::size_t>(*found) == column) return values[found - indices];
    return sharing[column] ? rest[row] : T{0};
  }

  void expand(std::size_t row, T* out) const {
    if (offsets == nullptr) {
      std::copy_n(values + row * columns, columns, out);
      return;
    }
    for (std::size_t column = 0; column < columns; ++column) out[column] = sharing[column] ? rest[row] : T{0};
    for (std::int64_t k = offsets[row]; k < offsets[row + 1]; ++k) out[indices[k]] = values[k];
  }

  // Calls `visit` with the probabilities of a row in the order of classes; zeros may be left out.
  template <class Visit>
  void for_each(std::size_t row, const Visit& visit) const {
    if (offsets == nullptr) {
      for (std::size_t column = 0; column < columns; ++column) visit(values[row * columns + column]);
      return;
    }
    std::size_t column = 0;
    const auto others = [&](std::size_t end) {
      for (; rest[row] != T{0} && column < end; ++column)
        if (sharing[column]) visit(rest[row]);
    };
    for (std::int64_t k = offsets[row]; k < offsets[row + 1]; ++k) {
      others(static_cast<std::size_t>(indices[k]));
      visit(values[k]);
      column = static_cast<std::size_t>(indices[k]) + 1;
    }
    others(columns);
  }
};

// The probability of each other class of a detection with one score: an equal part of the remainder.
inline float even_rest(double score, std::size_t columns) {
  return columns > 1 ? static_cast<float>((1.0 - score) / static_cast<double>(columns - 1)) : 0.0f;
}

// Rows of a matrix as listed classes and rests.
struct ListedRows {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> indices;
  std::vector<float> values, rest;
};

// Returns whether at most `most` classes have to be listed. A row's rest is the value of most of its classes that share
// it, if there is one; every class with other bits is listed.
inline bool list_rows(const float* matrix, std::size_t rows, std::size_t columns, const bool* sharing, std::size_t most,
                      ListedRows& out) {
  const auto same = [](float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  for (std::size_t row = 0; row < rows; ++row) {
    const float* values = matrix + row * columns;
    float rest = 0.0f;
    std::size_t lead = 0;  // of the majority vote (Boyer and Moore, 1981)
    for (std::size_t column = 0; column < columns; ++column) {
      if (!sharing[column]) continue;
      if (lead == 0) rest = values[column];
      lead = lead == 0 || same(rest, values[column]) ? lead + 1 : lead - 1;
    }
    for (std::size_t column = 0; column < columns; ++column)
      if (!same(values[column], sharing[column] ? rest : 0.0f)) {
        out.indices.push_back(static_cast<std::int32_t>(column));
        out.values.push_back(values[column]);
      }
    if (out.indices.size() > most) return false;
    out.rest.push_back(rest);
    out.offsets.push_back(static_cast<std::int64_t>(out.indices.size()));
  }
  return true;
}

// The most probable class of each row, the first among equals; NaN counts as the largest value.
inline std::vector<std::int32_t> best_classes(const LabelRows<float>& labels, std::size_t rows) {
  std::vector<std::int32_t> best(rows, 0);
  const auto above = [](float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); };
  std::vector<float> expanded(labels.columns);
  for (std::size_t row = 0; row < rows && labels.columns > 0; ++row) {
    if (labels.offsets != nullptr) {
      // Usually a listed class is above all others, however many there are.
      std::int64_t first = labels.offsets[row];
      for (std::int64_t k = first; k < labels.offsets[row + 1]; ++k)
        if (above(labels.values[k], labels.values[first])) first = k;
      if (first < labels.offsets[row + 1] && labels.values[first] > std::max(labels.rest[row], 0.0f)) {
        best[row] = labels.indices[first];
        continue;
      }
    }
    labels.expand(row, expanded.data());
    std::size_t first = 0;
    for (std::size_t column = 1; column < labels.columns; ++column)
      if (above(expanded[column], expanded[first])) first = column;
    best[row] = static_cast<std::int32_t>(first);
  }
  return best;
}

// Smallest value (at most 0), largest value (at least 0) and sum of each row; the sum is NaN or infinite if a value is.
struct RowRanges {
  std::vector<float> low, high;
  std::vector<double> total;
};

inline RowRanges ranges_of_listed(const LabelRows<float>& labels, std::size_t rows) {
  RowRanges found{std::vector<float>(rows), std::vector<float>(rows), std::vector<double>(rows)};
  const auto sharing = std::count(labels.sharing, labels.sharing + labels.columns, true);
  for (std::size_t row = 0; row < rows; ++row) {
    float low = 0.0f, high = 0.0f;
    double total = 0.0;
    std::int64_t others = sharing;
    for (std::int64_t k = labels.offsets[row]; k < labels.offsets[row + 1]; ++k) {
      low = std::min(low, labels.values[k]);
      high = std::max(high, labels.values[k]);
      total += static_cast<double>(labels.values[k]);
      others -= labels.sharing[labels.indices[k]] ? 1 : 0;
    }
    const float rest = others > 0 ? labels.rest[row] : 0.0f;
    found.low[row] = std::min(low, rest);
    found.high[row] = std::max(high, rest);
    found.total[row] = total + static_cast<double>(others) * static_cast<double>(rest);
  }
  return found;
}

inline RowRanges row_ranges(const LabelRows<float>& labels, std::size_t rows) {
  if (labels.offsets != nullptr) return ranges_of_listed(labels, rows);
  const float* matrix = labels.values;
  const std::size_t columns = labels.columns;
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
