// The pixels of one object or detection.
#pragma once

#include <algorithm>
#include <cstdint>

namespace probox {

// Pixels: an inclusive box, filled or with sorted runs y, x_begin, x_end. An empty mask has the box 0, 0, -1, -1.
struct Mask {
  int x0, y0, x1, y1;
  std::int64_t pixels;
  const std::int32_t* runs;
  std::int64_t count;  // 0: the box is filled
};

// The first run in this row or below it.
inline std::int64_t first_run_in(const Mask& m, int row) {
  std::int64_t low = 0, high = m.count;
  while (low < high) {
    const std::int64_t half = (low + high) / 2;
    if (m.runs[3 * half] < row)
      low = half + 1;
    else
      high = half;
  }
  return low;
}

// Number of the mask's pixels in x0..x1, y0..y1.
inline std::int64_t pixels_within(const Mask& m, int x0, int y0, int x1, int y1) {
  const int left = std::max(m.x0, x0), right = std::min(m.x1, x1);
  const int top = std::max(m.y0, y0), bottom = std::min(m.y1, y1);
  if (left > right || top > bottom) return 0;
  if (m.count == 0) return static_cast<std::int64_t>(right - left + 1) * (bottom - top + 1);
  if (left == m.x0 && right == m.x1 && top == m.y0 && bottom == m.y1) return m.pixels;
  std::int64_t inside = 0;
  for (std::int64_t i = first_run_in(m, top); i < m.count; ++i) {
    const std::int32_t* run = m.runs + 3 * i;
    if (run[0] > bottom) break;
    inside += std::max(0, std::min(run[2], right + 1) - std::max(run[1], left));
  }
  return inside;
}

// Number of pixels that are in both masks.
inline std::int64_t shared_pixels(const Mask& a, const Mask& b) {
  if (a.count == 0) return pixels_within(b, a.x0, a.y0, a.x1, a.y1);
  if (b.count == 0) return pixels_within(a, b.x0, b.y0, b.x1, b.y1);
  const int top = std::max(a.y0, b.y0), bottom = std::min(a.y1, b.y1);
  if (top > bottom || std::max(a.x0, b.x0) > std::min(a.x1, b.x1)) return 0;
  std::int64_t i = first_run_in(a, top), j = first_run_in(b, top), shared = 0;
  while (i < a.count && j < b.count) {
    const std::int32_t *one = a.runs + 3 * i, *other = b.runs + 3 * j;
    if (one[0] > bottom || other[0] > bottom) break;
    if (one[0] == other[0]) {
      shared += std::max(0, std::min(one[2], other[2]) - std::max(one[1], other[1]));
      one[2] < other[2] ? ++i : ++j;
    } else {
      one[0] < other[0] ? ++i : ++j;
    }
  }
  return shared;
}

}  // namespace probox
