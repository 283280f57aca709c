// The pixels of one object.
#pragma once

#include <algorithm>
#include <cstdint>

namespace probox {

// An object's pixels: an inclusive box, filled or with sorted runs y, x_begin, x_end.
struct Mask {
  int x0, y0, x1, y1;
  std::int64_t pixels;
  const std::int32_t* runs;
  std::int64_t count;  // 0: the box is filled
};

// Number of the mask's pixels in x0..x1, y0..y1.
inline std::int64_t pixels_within(const Mask& m, int x0, int y0, int x1, int y1) {
  const int left = std::max(m.x0, x0), right = std::min(m.x1, x1);
  const int top = std::max(m.y0, y0), bottom = std::min(m.y1, y1);
  if (left > right || top > bottom) return 0;
  if (m.count == 0) return static_cast<std::int64_t>(right - left + 1) * (bottom - top + 1);
  if (left == m.x0 && right == m.x1 && top == m.y0 && bottom == m.y1) return m.pixels;
  std::int64_t inside = 0;
  for (std::int64_t i = 0; i < m.count; ++i) {
    const std::int32_t* run = m.runs + 3 * i;
    if (run[0] < top) continue;
    if (run[0] > bottom) break;
    inside += std::max(0, std::min(run[2], right + 1) - std::max(run[1], left));
  }
  return inside;
}

}  // namespace probox
