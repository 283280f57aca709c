// P(x in S), the probability that pixel x belongs to the detected object: the heatmap of a detection.
//
// It is stored as a small grid: repeated rows and columns are stored once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "corner_map.hpp"

namespace probox {

// One axis of a grid: pixels first..last of the image, of which a range in the middle may share one entry.
struct Axis {
  int first = 0, last = -1;
  int middle = 0;  // the shared entry; equal to size() without one
  int repeat = 0;  // number of pixels that share it; 0 without one

  int size() const { return last - first + 1 - (repeat ? repeat - 1 : 0); }
  // The pixel of an entry (the first one of the shared entry).
  int pixel(int entry) const { return first + entry + (entry > middle && repeat ? repeat - 1 : 0); }
  // The entry of a pixel.
  int entry(int pixel) const {
    const int offset = pixel - first;
    if (!repeat || offset < middle) return offset;
    return offset < middle + repeat ? middle : offset - repeat + 1;
  }
};

inline Axis plain_axis(int first, int last) { return {first, last, last - first + 1, 0}; }

// The probabilities of a detection in its support; 0 elsewhere.
template <class T>
struct Grid {
  Axis x, y;
  const T* values = nullptr;
  std::size_t stride = 0;

  bool empty() const { return x.last < x.first || y.last < y.first; }
  const T* at(int row, int column) const { return values + row * stride + column; }
  // Writes the support's values into an image of this width, which contains zeros.
  void spread(double* image, int width) const {
    for (int row = y.first; row <= y.last; ++row)
      for (int column = x.first; column <= x.last; ++column)
        image[static_cast<std::size_t>(row) * width + column] = *at(y.entry(row), x.entry(column));
  }
};

// A stored heatmap, which is 0 outside a block of the image. Values have the scorer's precision.
struct HeatmapBlock {
  bool given = false;
  const void* values = nullptr;
  int x = 0, y = 0, width = 0, height = 0;
};

// A box with known sides: 1 inside, and a fraction on the pixels that its border crosses.
struct PlainAxis {
  Axis axis;
  double value[3];  // of the axis's entries
};

// Pixels ceil(low)..floor(high) are covered, one more on either side by the remaining fraction.
inline PlainAxis cover_axis(double low, double high, int size) {
  // Far outside the image the distance does not matter; clamping keeps whole numbers within int.
  low = std::clamp(low, -4.0, size + 4.0);
  high = std::clamp(high, -4.0, size + 4.0);
  const int first = static_cast<int>(std::ceil(low)), last = static_cast<int>(std::floor(high));
  PlainAxis result{};
  int entries = 0;
  const auto add = [&](int pixel, double value) {
    if (pixel < 0 || pixel >= size || value == 0.0) return;
    if (entries == 0) result.axis.first = pixel;
    result.axis.last = pixel;
    result.value[entries++] = value;
  };
  if (last < first) {
    // Both ends are within one pixel: the left fraction precedes the right one.
    add(first - 1, first - low);
    add(last + 1, high - last);
    result.axis.middle = result.axis.size();
    return result;
  }
  add(first - 1, first - low);
  const int begin = std::max(first, 0), end = std::min(last, size - 1);
  if (begin <= end) {
    result.axis.middle = entries;
    result.axis.repeat = end - begin + 1;
    add(begin, 1.0);
    result.axis.last = end;
  }
  add(last + 1, high - last);
  if (!result.axis.repeat) result.axis.middle = result.axis.size();
  return result;
}

// Builds the heatmap of one detection at a time in the same memory.
template <class T>
class HeatmapBuilder {
 public:
  Grid<T> plain(const double* box, int width, int height) {
    const PlainAxis x = cover_axis(box[0], box[2], width), y = cover_axis(box[1], box[3], height);
    Grid<T> grid;
    grid.x = x.axis;
    grid.y = y.axis;
    if (grid.empty()) return grid;
    make_room(values_, 9 + kPadding);
    for (int row = 0; row < grid.y.size(); ++row)
      for (int column = 0; column < grid.x.size(); ++column)
        values_[row * 3 + column] = static_cast<T>(y.value[row]) * static_cast<T>(x.value[column]);
    grid.values = values_.data();
    grid.stride = 3;
    return grid;
  }

  // Sets the two corners of a probabilistic box and returns its support: a grid without values.
  Grid<T> support(const double* box, const double* covariances, int width, int height, const Settings& s) {
    const double* c = covariances;
    top_left_ = {box[0], box[1], c[0], c[1], c[3]};
    bottom_right_ = {width - (box[2] + 1), height - (box[3] + 1), c[4], c[5], c[7]};
    first_ = region_of_interest(top_left_, width, height, s);
    second_ = region_of_interest(bottom_right_, width, height, s);
    Grid<T> grid;
    if (first_.empty() || second_.empty()) return grid;
    if (cut_ != s.min_probability) deviation_ = least_deviation(cut_ = s.min_probability);
    first_ = without_zeros(first_, top_left_, deviation_);
    second_ = without_zeros(second_, bottom_right_, deviation_);
    grid.x = join(first_.x0, first_.x1, width - 1 - second_.x1, width - 1 - second_.x0);
    grid.y = join(first_.y0, first_.y1, height - 1 - second_.y1, height - 1 - second_.y0);
    return grid;
  }

  // Fills in the values of the grid that `support` returned.
  void fill(Grid<T>& grid, int width, int height, const Settings& s) {
    const T cut = static_cast<T>(s.min_probability);
    const int columns = grid.x.size(), rows = grid.y.size();
    grid.stride = columns;
    make_room(values_, static_cast<std::size_t>(rows) * columns + kPadding);
    T* values = values_.data();
    grid.values = values;
    // If the corners' regions are disjoint and neither touches the image's edge, each map equals the product there,
    // because the other one is 1.
    const bool apart =
        grid.x.repeat && grid.y.repeat && first_.x0 > 0 && first_.y0 > 0 && second_.x0 > 0 && second_.y0 > 0;
    if (apart) {
      near_.prepare(top_left_, first_, false, width, height, s, scratch_, values, grid.stride);
      far_.prepare(bottom_right_, second_, true, width, height, s, scratch_,
                   values + (grid.y.middle + 1) * grid.stride + grid.x.middle, grid.stride);
      for (int row = 0; row < rows; ++row) complete(grid, row, cut, values + row * grid.stride);
    } else {
      near_.prepare(top_left_, first_, false, width, height, s, scratch_);
      far_.prepare(bottom_right_, second_, true, width, height, s, scratch_);
      for (int row = 0; row < rows; ++row) multiply(grid, row, cut, values + row * grid.stride);
    }
  }

  // A stored map, used as it is.
  Grid<T> given(const HeatmapBlock& block) {
    Grid<T> grid;
    grid.x = plain_axis(block.x, block.x + block.width - 1);
    grid.y = plain_axis(block.y, block.y + block.height - 1);
    if (grid.empty()) return grid;
    grid.stride = block.width;
    // Copied, because sums read slightly past the end of rows, which is foreign memory in the original.
    const std::size_t pixels = static_cast<std::size_t>(block.width) * block.height;
    const T* map = static_cast<const T*>(block.values);
    make_room(values_, pixels + kPadding);
    std::copy(map, map + pixels, values_.begin());
    grid.values = values_.data();
    return grid;
  }

 private:
  // The support along one axis: from the first corner's region to the second's, with shared pixels between them.
  static Axis join(int first_begin, int first_end, int second_begin, int second_end) {
    Axis axis = plain_axis(first_begin, second_end);
    if (axis.last < axis.first) return axis;
    if (first_end + 1 < second_begin) {
      axis.middle = first_end + 1 - first_begin;
      axis.repeat = second_begin - first_end - 1;
    }
    return axis;
  }

  // Completes a row of the grid that already contains both maps: fills the shared columns in its middle and those
  // beyond the maps.
  void complete(const Grid<T>& grid, int row, T cut, T* out) {
    const int middle = grid.x.middle, after = grid.x.size() - middle - 1;
    if (row < grid.y.middle) {
      map_loops<T>().scale_row(far_.beyond() + 1, out[middle], after, cut, out + middle + 1);
    } else if (row > grid.y.middle) {
      map_loops<T>().scale_row(near_.beyond(), out[middle], middle, cut, out);
    } else {
      std::copy(near_.beyond(), near_.beyond() + middle + 1, out);
      std::copy(far_.beyond() + 1, far_.beyond() + 1 + after, out + middle + 1);
    }
  }

  void multiply(const Grid<T>& grid, int row, T cut, T* out) {
    const int y = grid.y.pixel(row), x0 = grid.x.first, x1 = grid.x.last;
    const T* near = near_.row(y);
    const T* far = far_.row(y);
    const Region &a = near_.region(), &b = far_.region();
    const MapLoops<T>& loops = map_loops<T>();
    const int near_end = std::min(a.x1, x1);  // last pixel with a separate value in the near map
    const int alone = std::min(near_end, b.x0 - 1);
    if (x0 <= alone) loops.scale_row(near, far[0], alone - x0 + 1, cut, out);
    const int both = std::max(x0, b.x0);
    if (both <= near_end)
      loops.multiply_row(near + (both - a.x0), far + (both - b.x0 + 1), near_end - both + 1, cut, out + (both - x0));
    const T beyond = near[a.x1 - a.x0 + 1];
    int entry = near_end - x0 + 1;
    if (grid.x.repeat) {
      const T product = std::min(beyond * far[0], T(1));
      out[entry++] = product < cut ? T(0) : product;
    }
    const int rest = std::max(b.x0, near_end + 1);
    if (rest <= x1) loops.scale_row(far + (rest - b.x0 + 1), beyond, x1 - rest + 1, cut, out + entry);
  }

  double cut_ = -1.0, deviation_ = 0.0;  // the minimum probability, and its distance
  Gaussian top_left_{}, bottom_right_{};
  Region first_, second_;
  CornerMap<T> near_, far_;
  CornerScratch<T> scratch_;
  std::vector<T> values_;
};

// P(x in S) of every pixel of an image for one box, row by row, into `image`, which contains zeros. Without covariances
// the box has no uncertainty.
template <class T>
void heatmap_of_box(const double* box, const double* covariances, int width, int height, const Settings& s,
                    double* image) {
  HeatmapBuilder<T> builder;
  Grid<T> grid = covariances ? builder.support(box, covariances, width, height, s) : builder.plain(box, width, height);
  if (grid.empty()) return;
  if (grid.values == nullptr) builder.fill(grid, width, height, s);
  grid.spread(image, width);
}

}  // namespace probox
