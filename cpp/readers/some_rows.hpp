// Numbers that only some detections of a file have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "json_reader.hpp"

namespace probox {

// Which rows have them, and their values one after the other.
template <class T>
struct SomeRows {
  std::vector<std::int64_t> rows;
  std::vector<T> values;

  // Spread over all rows; those without a value get zeros.
  std::vector<T> spread(std::size_t count, std::size_t width) const {
    std::vector<T> all(count * width);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      std::copy_n(values.data() + k * width, width, all.data() + static_cast<std::size_t>(rows[k]) * width);
    }
    return all;
  }
};

// Read the covariances of the two corners, [[[xx, xy], [xy, yy]], [[xx, xy], [xy, yy]]].
inline void read_covariances(json::Reader& in, double* out) {
  in.fixed_list(2, [&](int corner) {
    in.fixed_list(2, [&](int row) { in.numbers(out + 4 * corner + 2 * row, 2); });
  });
}

}  // namespace probox
