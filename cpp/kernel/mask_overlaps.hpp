// IoU of the masks of detections and objects, from their runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "mask.hpp"
#include "parallel.hpp"

namespace probox {

// Number of pixels in both masks.
inline std::int64_t shared_pixels(const Mask& a, const Mask& b) {
  if (b.count == 0) return pixels_within(a, b.x0, b.y0, b.x1, b.y1);
  if (a.count == 0) return pixels_within(b, a.x0, a.y0, a.x1, a.y1);
  const auto is_above = [](const Mask& mask, std::int64_t run, int y) { return mask.runs[3 * run] < y; };
  const int top = std::max(a.y0, b.y0);
  std::int64_t i = 0, j = 0, shared = 0;
  while (i < a.count && is_above(a, i, top)) ++i;
  while (j < b.count && is_above(b, j, top)) ++j;
  while (i < a.count && j < b.count) {
    const std::int32_t *p = a.runs + 3 * i, *q = b.runs + 3 * j;
    if (p[0] != q[0]) {
      ++(p[0] < q[0] ? i : j);
      continue;
    }
    shared += std::max(0, std::min(p[2], q[2]) - std::max(p[1], q[1]));
    ++(p[2] < q[2] ? i : j);
  }
  return shared;
}

// Masks with a label each, in the layout of probox.tables.masks.Masks.
struct LabelledMasks {
  const std::int32_t *label, *boxes;
  const std::int64_t *pixels, *offsets;
  const std::int32_t* runs;

  Mask mask(std::int64_t row) const {
    const std::int32_t* box = boxes + 4 * row;
    return {box[0], box[1], box[2], box[3], pixels[row], runs + 3 * offsets[row], offsets[row + 1] - offsets[row]};
  }
};

// Pairs of a detection and an object of the same image and class with overlapping boxes, by detection, then object.
struct MaskOverlaps {
  std::vector<std::int64_t> detections, objects;
  std::vector<double> ious;
};

// IoU of masks, or for a crowd the fraction of the detection inside it. The division is that of the COCO API, so values
// are bit-identical to it. `image[d]` is the image of detection d, -1 for none; the objects of image i are rows offsets[i]..offsets[i + 1].
inline MaskOverlaps mask_overlaps(std::int64_t count, const std::int64_t* image, const LabelledMasks& found,
                                  const std::int64_t* offsets, const LabelledMasks& truth, const bool* crowd,
                                  int threads, Stop& stop) {
  const auto visit = [&](std::int64_t d, auto&& use) {
    if (image[d] < 0) return;
    const Mask mine = found.mask(d);
    for (std::int64_t g = offsets[image[d]]; g < offsets[image[d] + 1]; ++g) {
      if (truth.label[g] != found.label[d]) continue;
      const Mask own = truth.mask(g);
      if (mine.x0 <= own.x1 && own.x0 <= mine.x1 && mine.y0 <= own.y1 && own.y0 <= mine.y1) use(g, mine, own);
    }
  };
  // Pairs are counted first, so that each thread writes to places of its own.
  std::vector<std::int64_t> begin(count + 1, 0);
  for_each_index(count, threads, stop, [&](int, std::int64_t d) {
    visit(d, [&](std::int64_t, const Mask&, const Mask&) { ++begin[d + 1]; });
  });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  const auto pairs = static_cast<std::size_t>(begin.back());
  MaskOverlaps out{std::vector<std::int64_t>(pairs), std::vector<std::int64_t>(pairs), std::vector<double>(pairs)};
  for_each_index(count, threads, stop, [&](int worker, std::int64_t d) {
    std::int64_t at = begin[d];
    visit(d, [&](std::int64_t g, const Mask& mine, const Mask& own) {
      stop.check(worker);
      const std::int64_t both = shared_pixels(mine, own);
      const std::int64_t either = crowd[g] ? mine.pixels : mine.pixels + own.pixels - both;
      out.detections[at] = d;
      out.objects[at] = g;
      out.ious[at++] = static_cast<double>(both) / static_cast<double>(either);
    });
  });
  return out;
}

}  // namespace probox
