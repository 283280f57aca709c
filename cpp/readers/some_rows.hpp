// Values of some detections of a file only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "json_reader.hpp"
#include "large_column.hpp"

namespace probox {

// The rows with a value, and their concatenated values.
template <class T>
struct SomeRows {
  LargeColumn<std::int64_t> rows;
  LargeColumn<T> values;

  // Expands to all rows and moves the values out; rows without a value get zeros.
  LargeColumn<T> spread(std::size_t count, std::size_t width) && {
    if (rows.size() == count) return std::move(values);
    LargeColumn<T> all(count * width, T{});
    for (std::size_t k = 0; k < rows.size(); ++k) {
      std::copy_n(values.data() + k * width, width, all.data() + static_cast<std::size_t>(rows[k]) * width);
    }
    return all;
  }
};

// Reads the covariances of the two corners, [[[xx, xy], [xy, yy]], [[xx, xy], [xy, yy]]].
inline void read_covariances(json::Reader& in, double* out) {
  in.fixed_list(2, [&](int corner) { in.fixed_list(2, [&](int row) { in.numbers(out + 4 * corner + 2 * row, 2); }); });
}

}  // namespace probox
