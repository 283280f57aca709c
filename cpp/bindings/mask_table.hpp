// Masks of many rows, as Python gives them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arrays.hpp"
#include "kernel/mask.hpp"

namespace probox {

// Masks by row; a mask without runs fills its box.
struct MaskTable {
  Table<std::int32_t> boxes;
  Column<std::int64_t> pixels, run_offsets;
  Table<std::int32_t> runs;

  MaskTable(Table<std::int32_t> boxes, Column<std::int64_t> pixels, Column<std::int64_t> run_offsets,
            Table<std::int32_t> runs)
      : boxes(boxes), pixels(pixels), run_offsets(run_offsets), runs(runs) {
    require(boxes.shape(0) == count() && boxes.shape(1) == 4, "mask_boxes do not fit mask_pixels");
    require(runs.shape(1) == 3, "runs need three columns");
  }

  std::size_t count() const { return pixels.shape(0); }

  // Contents are checked before each use, because Python may have changed them.
  void check_offsets() const { require_offsets(run_offsets, count(), runs.shape(0), "run_offsets"); }

  Mask operator[](std::int64_t row) const {
    const std::int32_t* b = boxes.data() + 4 * row;
    const std::int64_t first = run_offsets.data()[row], end = run_offsets.data()[row + 1];
    return {b[0], b[1], b[2], b[3], pixels.data()[row], runs.data() + 3 * first, end - first};
  }

  // Checks the masks of rows begin..end - 1 for an image of this size; masks may be empty if `allow_empty`.
  void check(std::int64_t begin, std::int64_t end, std::int32_t width, std::int32_t height, bool allow_empty) const {
    for (std::int64_t row = begin; row < end; ++row) check_mask((*this)[row], width, height, allow_empty);
  }

 private:
  static void check_mask(const Mask& m, std::int32_t width, std::int32_t height, bool allow_empty) {
    if (allow_empty && m.pixels == 0)
      return require(m.x0 == 0 && m.y0 == 0 && m.x1 == -1 && m.y1 == -1 && m.count == 0, "an empty mask has pixels");
    const std::int64_t box = (std::int64_t{m.x1} - m.x0 + 1) * (std::int64_t{m.y1} - m.y0 + 1);
    require(m.pixels > 0 && m.pixels <= box && 0 <= m.x0 && m.x0 <= m.x1 && m.x1 < width && 0 <= m.y0 && m.y0 <= m.y1 &&
                m.y1 < height,
            "a mask is empty or outside its image");
    for (std::int64_t r = 0; r < m.count; ++r) {
      const std::int32_t* run = m.runs + 3 * r;
      require(m.y0 <= run[0] && run[0] <= m.y1 && m.x0 <= run[1] && run[1] < run[2] && run[2] <= m.x1 + 1,
              "a run leaves its mask's box");
      // Runs are found by binary search over rows, which requires sorted runs.
      require(r == 0 || run[-3] <= run[0], "the runs of a mask are not sorted by row");
    }
  }
};

}  // namespace probox
