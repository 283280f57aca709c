// Inverse of the five row filters of PNG.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace probox::png {

// The neighbour (left, up, up-left) nearest to left + up - up-left.
inline std::uint8_t paeth(int left, int up, int corner) {
  const int estimate = left + up - corner;
  const int to_left = std::abs(estimate - left);
  const int to_up = std::abs(estimate - up);
  const int to_corner = std::abs(estimate - corner);
  if (to_left <= to_up && to_left <= to_corner) return static_cast<std::uint8_t>(left);
  return static_cast<std::uint8_t>(to_up <= to_corner ? up : corner);
}

// `source` contains rows of 1 + row_bytes, each starting with its filter type; `rows` receives row_bytes each; `above`
// is the row before the first.
inline bool unfilter(const std::uint8_t* source, std::uint8_t* rows, const std::uint8_t* above, std::size_t height,
                     std::size_t row_bytes, std::size_t pixel_bytes) {
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t filter = *source++;
    if (filter > 4) return false;
    if (filter == 0) std::copy_n(source, row_bytes, rows);
    for (std::size_t x = 0; filter != 0 && x < row_bytes; ++x) {
      const int left = x >= pixel_bytes ? rows[x - pixel_bytes] : 0;
      const int up = above[x];
      const int corner = x >= pixel_bytes ? above[x - pixel_bytes] : 0;
      int guess = 0;
      if (filter == 1) guess = left;
      if (filter == 2) guess = up;
      if (filter == 3) guess = (left + up) / 2;
      if (filter == 4) guess = paeth(left, up, corner);
      rows[x] = static_cast<std::uint8_t>(source[x] + guess);
    }
    source += row_bytes;
    above = rows;
    rows += row_bytes;
  }
  return true;
}

}  // namespace probox::png
