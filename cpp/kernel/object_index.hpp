// Index of the objects of an image that a rectangle may intersect.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mask.hpp"

namespace probox {

namespace detail {

// Sets of objects as bit masks, along one axis that is divided into buckets of equal length.
class BucketSets {
 public:
  static constexpr int kBuckets = 64;

  // Object o extends from first(o) to last(o), both within 0..size-1.
  template <class First, class Last>
  void build(std::size_t objects, int size, First&& first, Last&& last) {
    words_ = (objects + 63) / 64;
    end_ = size - 1;
    shift_ = 0;
    while (end_ >> shift_ >= kBuckets) ++shift_;
    const std::size_t buckets = static_cast<std::size_t>(end_ >> shift_) + 1;
    begun_.assign(buckets * words_, 0);
    ahead_.assign(buckets * words_, 0);
    for (std::size_t o = 0; o < objects; ++o) {
      const std::uint64_t bit = std::uint64_t{1} << (o % 64);
      begun_[bucket(first(o)) * words_ + o / 64] |= bit;
      ahead_[bucket(last(o)) * words_ + o / 64] |= bit;
    }
    for (std::size_t k = words_; k < begun_.size(); ++k) begun_[k] |= begun_[k - words_];
    for (std::size_t k = ahead_.size(); k-- > words_;) ahead_[k - words_] |= ahead_[k];
  }

  std::size_t words() const { return words_; }
  // Objects that begin in the bucket of this pixel or before it.
  const std::uint64_t* begun(int pixel) const { return begun_.data() + bucket(pixel) * words_; }
  // Objects that end in the bucket of this pixel or after it.
  const std::uint64_t* ahead(int pixel) const { return ahead_.data() + bucket(pixel) * words_; }

 private:
  std::size_t bucket(int pixel) const { return static_cast<std::size_t>(std::clamp(pixel, 0, end_) >> shift_); }

  int end_ = 0, shift_ = 0;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> begun_, ahead_;  // buckets x words
};

inline int lowest_bit(std::uint64_t bits) {
#if defined(__GNUC__)
  return __builtin_ctzll(bits);
#else
  int at = 0;
  for (; (bits & 1) == 0; bits >>= 1) ++at;
  return at;
#endif
}

}  // namespace detail

// Finds the objects of images, one image at a time; reuses its memory.
//
// An object intersects a rectangle if, on both axes, it begins before the rectangle ends and ends after the rectangle
// begins. The intersection of these four sets is computed for 64 objects at a time and is in the order of objects.
class ObjectIndex {
 public:
  // Indexes the objects of an image for this number of detections.
  void build(const std::vector<Mask>& masks, int width, int height, std::int64_t detections) {
    const std::size_t count = masks.size();
    sorted_ = count >= kFewObjects && detections >= kFewDetections;
    every_.resize(count);
    for (std::size_t o = 0; o < count; ++o) every_[o] = static_cast<int>(o);
    if (!sorted_) return;
    across_.build(count, width, [&](std::size_t o) { return masks[o].x0; }, [&](std::size_t o) { return masks[o].x1; });
    down_.build(count, height, [&](std::size_t o) { return masks[o].y0; }, [&](std::size_t o) { return masks[o].y1; });
  }

  // Every object, ascending.
  const std::vector<int>& every() const { return every_; }

  // All objects whose boxes intersect x0..x1, y0..y1, and possibly others, ascending. Valid until the next call.
  const std::vector<int>& near(int x0, int y0, int x1, int y1) {
    if (!sorted_) return every_;
    near_.clear();
    if (x0 > x1 || y0 > y1) return near_;
    const std::uint64_t *left = across_.begun(x1), *right = across_.ahead(x0);
    const std::uint64_t *above = down_.begun(y1), *below = down_.ahead(y0);
    for (std::size_t w = 0; w < across_.words(); ++w)
      for (std::uint64_t bits = left[w] & right[w] & above[w] & below[w]; bits != 0; bits &= bits - 1)
        near_.push_back(static_cast<int>(64 * w) + detail::lowest_bit(bits));
    return near_;
  }

 private:
  // Below these numbers a linear search is as fast as the index.
  static constexpr std::size_t kFewObjects = 16;
  static constexpr std::int64_t kFewDetections = 8;

  bool sorted_ = false;
  detail::BucketSets across_, down_;
  std::vector<int> every_, near_;
};

}  // namespace probox
