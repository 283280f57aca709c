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

// Pairs of a detection and an object of the same image and class with overlapping boxes, by detection, then object.
struct MaskOverlaps {
  std::vector<std::int64_t> detections, objects;
  std::vector<double> ious;
};

// IoU of masks, or for a crowd the fraction of the detection inside it. The division is that of the COCO API, so values
// are bit-identical to it. `found[d]` and `truth[g]` are masks. `image[d]` is the image of detection d, -1 for none;
// the objects of image i are rows offsets[i]..offsets[i + 1].
template <class Masks>
MaskOverlaps mask_overlaps(std::int64_t count, const std::int64_t* image, const Masks& found, const std::int32_t* label,
                           const std::int64_t* offsets, const Masks& truth, const std::int32_t* object_label,
                           const bool* crowd, int threads, Stop& stop) {
  const auto visit = [&](std::int64_t d, auto&& use) {
    if (image[d] < 0) return;
    const Mask mine = found[d];
    for (std::int64_t g = offsets[image[d]]; g < offsets[image[d] + 1]; ++g) {
      if (object_label[g] != label[d]) continue;
      const Mask own = truth[g];
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
