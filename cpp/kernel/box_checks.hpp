// A fast check of box columns that are usually valid.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace probox {

struct BoxLimits {
  double farthest;                     // of a corner from the origin
  double rounding, relative_rounding;  // of a stated size; the second is relative to the largest coordinate
};

// Whether all boxes x1, y1, x2, y2 are within the limits and not inverted, and all widths and heights fit them. NaN
// makes every comparison false.
inline bool boxes_are_valid(const double* boxes, const double* extents, std::size_t rows, const BoxLimits& limits) {
  bool valid = true;
  for (std::size_t row = 0; row < rows; ++row) {
    const double* box = boxes + 4 * row;
    const double* extent = extents + 2 * row;
    const double x1 = std::abs(box[0]), y1 = std::abs(box[1]), x2 = std::abs(box[2]), y2 = std::abs(box[3]);
    const double allowed = limits.rounding + limits.relative_rounding * std::max(std::max(x1, y1), std::max(x2, y2));
    const bool near =
        (x1 <= limits.farthest) & (y1 <= limits.farthest) & (x2 <= limits.farthest) & (y2 <= limits.farthest);
    const bool ordered = (box[0] <= box[2]) & (box[1] <= box[3]);
    const bool sizes =
        (extent[0] >= 0) & (extent[0] <= 2 * limits.farthest) & (extent[1] >= 0) & (extent[1] <= 2 * limits.farthest);
    const bool agree =
        (std::abs(extent[0] - (box[2] - box[0])) <= allowed) & (std::abs(extent[1] - (box[3] - box[1])) <= allowed);
    valid &= near & ordered & sizes & agree;
  }
  return valid;
}

}  // namespace probox
