// Integral image of log P(x), for sums over many rectangles of one heatmap.
#pragma once

#include <cstddef>
#include <vector>

#include "loops.hpp"
#include "pixel_probability.hpp"
#include "scratch.hpp"

namespace probox {

// S(y, x), the sum over all pixels above row y and left of column x: a rectangle needs S at its four corners.
template <class T>
class LogIntegral {
 public:
  static constexpr std::size_t kMostPixels = std::size_t{1} << 22;  // 32 MB

  // Whether this is faster for these rectangles, whose fractions of the heatmap sum to `shares`. The constants are
  // measured nanoseconds: two logarithms per stored pixel and little per rectangle, against products over the pixels of
  // each rectangle, one logarithm of each kind, and more per rectangle.
  static bool is_faster(const Grid<T>& grid, std::size_t rectangles, double shares) {
    const double pixels = static_cast<double>(grid.x.size()) * grid.y.size();
    return pixels <= static_cast<double>(kMostPixels) &&
           5.0 * pixels + 60.0 * static_cast<double>(rectangles) <
               0.5 * pixels * shares + 300.0 * static_cast<double>(rectangles);
  }

  void build(const Grid<T>& grid, double epsilon, bool complement) {
    x_ = grid.x;
    y_ = grid.y;
    const int rows = y_.size(), columns = x_.size();
    stride_ = static_cast<std::size_t>(columns) + 1;
    make_room(sums_, (static_cast<std::size_t>(rows) + 1) * stride_);
    make_room(logs_, static_cast<std::size_t>(columns) + 2 * kPadding);
    for (std::size_t i = 0; i < stride_; ++i) sums_[i] = 0.0;
    for (int row = 0; row < rows; ++row) {
      map_loops<T>().logs(grid.at(row, 0), 1, columns, epsilon, complement, logs_.data());
      const double weight = pixels_of(y_, row);
      const double* above = sums_.data() + static_cast<std::size_t>(row) * stride_;
      double* out = sums_.data() + static_cast<std::size_t>(row + 1) * stride_;
      out[0] = 0.0;
      double sum = 0.0;
      for (int column = 0; column < columns; ++column) {
        sum += logs_[column] * (weight * pixels_of(x_, column));
        out[column + 1] = above[column + 1] + sum;
      }
    }
  }

  // Sum over pixels x0..x1, y0..y1, inclusive and within the support.
  double rectangle(int x0, int y0, int x1, int y1) const {
    if (x0 > x1 || y0 > y1) return 0.0;
    const Place left = place(x_, x0), right = place(x_, x1 + 1), top = place(y_, y0), bottom = place(y_, y1 + 1);
    return (at(bottom, right) - at(bottom, left)) - (at(top, right) - at(top, left));
  }

 private:
  // A position between entries: after `entry` of them, plus a fraction of the next one, which several pixels share.
  struct Place {
    int entry;
    double share;
  };

  static double pixels_of(const Axis& axis, int entry) {
    return axis.repeat && entry == axis.middle ? static_cast<double>(axis.repeat) : 1.0;
  }

  static Place place(const Axis& axis, int pixel) {
    const int offset = pixel - axis.first;
    if (!axis.repeat || offset <= axis.middle) return {offset, 0.0};
    if (offset >= axis.middle + axis.repeat) return {offset - axis.repeat + 1, 0.0};
    return {axis.middle, static_cast<double>(offset - axis.middle) / axis.repeat};
  }

  double at(const Place& y, const Place& x) const {
    const double* row = sums_.data() + static_cast<std::size_t>(y.entry) * stride_ + x.entry;
    const auto along = [&](const double* p) { return x.share > 0.0 ? p[0] + (p[1] - p[0]) * x.share : p[0]; };
    const double here = along(row);
    return y.share > 0.0 ? here + (along(row + stride_) - here) * y.share : here;
  }

  Axis x_, y_;
  std::size_t stride_ = 0;
  std::vector<double> sums_, logs_;
};

}  // namespace probox
