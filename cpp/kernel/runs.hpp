// The pixels of many objects as row-major runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace probox {

// Masks of many objects, in the layout of probox.tables.masks.Masks. An empty mask has 0 pixels and box 0, 0, -1,
// -1.
struct RunTable {
  std::vector<std::int32_t> boxes;  // x0, y0, x1, y1, inclusive
  std::vector<std::int64_t> pixels;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> runs;  // y, x_begin, x_end; none for a mask that fills its box

  void add_box(std::int32_t x0, std::int32_t y0, std::int32_t x1, std::int32_t y1) {
    boxes.insert(boxes.end(), {x0, y0, x1, y1});
    pixels.push_back((std::int64_t{x1} - x0 + 1) * (std::int64_t{y1} - y0 + 1));
    offsets.push_back(offsets.back());
  }

  void add_empty() {
    boxes.insert(boxes.end(), {0, 0, -1, -1});
    pixels.push_back(0);
    offsets.push_back(offsets.back());
  }

  // Adds runs sorted by row, then column, not adjacent.
  void add_runs(const std::vector<std::int32_t>& object_runs) {
    if (object_runs.empty()) return add_empty();
    std::int32_t x0 = object_runs[1];
    std::int32_t x1 = object_runs[2] - 1;
    std::int64_t count = 0;
    for (std::size_t k = 0; k < object_runs.size(); k += 3) {
      x0 = std::min(x0, object_runs[k + 1]);
      x1 = std::max(x1, object_runs[k + 2] - 1);
      count += object_runs[k + 2] - object_runs[k + 1];
    }
    const std::int32_t y0 = object_runs[0];
    const std::int32_t y1 = object_runs[object_runs.size() - 3];
    add_box(x0, y0, x1, y1);
    if (count == pixels.back()) return;
    pixels.back() = count;
    runs.insert(runs.end(), object_runs.begin(), object_runs.end());
    offsets.back() += static_cast<std::int64_t>(object_runs.size() / 3);
  }
};

// The runs of the pixels of an image with each of these values, in one pass. Returns nothing above
// `max_runs`.
template <class T>
std::optional<RunTable> label_runs(const T* image, std::size_t height, std::size_t width, const std::int64_t* values,
                                   std::size_t count, std::int64_t max_runs) {
  static_assert(sizeof(T) <= 2, "every value has an entry in a table");
  std::vector<std::int32_t> object_of(65536, -1);
  for (std::size_t k = 0; k < count; ++k) {
    if (values[k] >= 0 && values[k] < 65536)
      object_of[static_cast<std::size_t>(values[k])] = static_cast<std::int32_t>(k);
  }
  std::int64_t left = max_runs;
  std::vector<std::vector<std::int32_t>> runs(count);
  for (std::size_t y = 0; y < height; ++y) {
    const T* row = image + y * width;
    for (std::size_t x = 0; x < width;) {
      const T value = row[x];
      const std::size_t begin = x;
      do ++x;
      while (x < width && row[x] == value);
      const std::int32_t object = object_of[value];
      if (object < 0) continue;
      if (--left < 0) return std::nullopt;
      std::vector<std::int32_t>& found = runs[static_cast<std::size_t>(object)];
      found.insert(found.end(),
                   {static_cast<std::int32_t>(y), static_cast<std::int32_t>(begin), static_cast<std::int32_t>(x)});
    }
  }
  RunTable table;
  for (auto& object_runs : runs) {
    table.add_runs(object_runs);
    std::vector<std::int32_t>().swap(object_runs);
  }
  return table;
}

}  // namespace probox
