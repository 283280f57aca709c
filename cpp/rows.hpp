// Columns of numbers into rows of floats.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "parallel.hpp"

namespace probox {

// out[row * columns + column] = float(columns[column][row]) / divisor, correctly rounded. A few rows at a time, so that
// what is read and what is written both stay in the nearest cache.
template <class T>
void rows_from_columns(const std::vector<const T*>& columns, std::size_t rows, float divisor, float* out, int threads) {
  constexpr std::size_t block = 64;
  const std::size_t width = columns.size();
  const auto blocks = static_cast<std::ptrdiff_t>((rows + block - 1) / block);
  constexpr std::ptrdiff_t share = 32;  // blocks that a thread takes at once
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

}  // namespace probox
