// Sums of logarithms of P(x) over pixels: the foreground and background loss of a pair.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "log_integral.hpp"
#include "loops.hpp"
#include "mask.hpp"
#include "pixel_probability.hpp"

namespace probox {

// Sums over parts of one heatmap of log(P + e), or log(1 - P + e) for the complement.
template <class T>
class LogSums {
 public:
  // Sets the heatmap; `many`: whether many sums of it are needed.
  void prepare(const Grid<T>& grid, double epsilon, bool many) {
    grid_ = grid;
    epsilon_ = epsilon;
    many_ = many;
    for (bool& there : there_) there = false;
    for (bool& there : pixels_there_) there = false;
    for (bool& there : integral_there_) there = false;
  }

  // Sum over pixels x0..x1, y0..y1, inclusive and within the support.
  double rectangle(int x0, int y0, int x1, int y1, bool complement) {
    if (many_) return integral(complement).rectangle(x0, y0, x1, y1);
    const double shared = collect(x0, y0, x1, y1, complement);
    return shared + blocks(complement);
  }

  double everywhere(bool complement) {
    return rectangle(grid_.x.first, grid_.y.first, grid_.x.last, grid_.y.last, complement);
  }

  // Sum over the support outside x0..x1, y0..y1, which may extend beyond it.
  double outside(int x0, int y0, int x1, int y1, bool complement) {
    const Axis &x = grid_.x, &y = grid_.y;
    x0 = std::max(x0, x.first);
    x1 = std::min(x1, x.last);
    y0 = std::max(y0, y.first);
    y1 = std::min(y1, y.last);
    if (x0 > x1 || y0 > y1) return everywhere(complement);
    if (many_) return everywhere(complement) - rectangle(x0, y0, x1, y1, complement);
    const double shared = collect(x.first, y.first, x.last, y0 - 1, complement) +
                          collect(x.first, y1 + 1, x.last, y.last, complement) +
                          collect(x.first, y0, x0 - 1, y1, complement) + collect(x1 + 1, y0, x.last, y1, complement);
    return shared + blocks(complement);
  }

  // Sum over the mask's pixels within the support.
  double mask(const Mask& m, bool complement) {
    const Axis &x = grid_.x, &y = grid_.y;
    const int x0 = std::max(m.x0, x.first), x1 = std::min(m.x1, x.last);
    const int y0 = std::max(m.y0, y.first), y1 = std::min(m.y1, y.last);
    if (x0 > x1 || y0 > y1) return 0.0;
    if (m.count == 0) return rectangle(x0, y0, x1, y1, complement);
    if (many_) {
      const LogIntegral<T>& sums = integral(complement);
      double sum = 0.0;
      for (std::int64_t i = first_run_in(m, y0), end = first_run_in(m, y1 + 1); i < end; ++i) {
        const std::int32_t* run = m.runs + 3 * i;
        sum += sums.rectangle(std::max(run[1], x0), run[0], std::min(run[2] - 1, x1), run[0]);
      }
      return sum;
    }
    const Span columns = span(x, x0, x1), rows = span(y, y0, y1);
    double sum = 0.0;
    for (const Range& part : {rows.low, rows.high}) {
      if (part.begin >= part.end) continue;
      const int top = y.pixel(part.begin), height = part.end - part.begin;
      const std::int64_t begin = first_run_in(m, top), end = first_run_in(m, top + height);
      for (const Range& side : {columns.low, columns.high})
        if (side.begin < side.end)
          sum += map_loops<T>().log_sum_runs(grid_.at(part.begin, side.begin), grid_.stride, x.pixel(side.begin), top,
                                             height, side.end - side.begin, m.runs + 3 * begin, end - begin, epsilon_,
                                             complement);
      if (columns.shared) sum += along_shared_column(m, begin, end, complement);
    }
    if (rows.shared) {
      const std::int64_t begin = first_run_in(m, std::max(y0, y.first + y.middle));
      const std::int64_t end = first_run_in(m, std::min(y1 + 1, y.first + y.middle + y.repeat));
      if (begin < end) {
        const double* up_to = shared_pixels(complement);
        for (std::int64_t i = begin; i < end; ++i) {
          const int from = std::max(m.runs[3 * i + 1], x.first), to = std::min(m.runs[3 * i + 2], x.last + 1);
          if (from < to) sum += up_to[to - x.first] - up_to[from - x.first];
        }
      }
    }
    return sum;
  }

 private:
  struct Range {
    int begin, end;
  };
  // Entries of a pixel range on an axis: those before the shared one, pixels that share it, entries after it.
  struct Span {
    Range low, high;
    int shared;
  };

  // Collects the blocks of a rectangle with separately stored pixels; returns the sum over those that share entries.
  double collect(int x0, int y0, int x1, int y1, bool complement) {
    if (x0 > x1 || y0 > y1) return 0.0;
    const Span columns = span(grid_.x, x0, x1), rows = span(grid_.y, y0, y1);
    double sum = 0.0;
    for (const Range& part : {rows.low, rows.high}) {
      if (part.begin >= part.end) continue;
      for (const Range& side : {columns.low, columns.high})
        if (side.begin < side.end)
          blocks_[block_count_++] = {grid_.at(part.begin, side.begin), part.end - part.begin, side.end - side.begin};
      if (columns.shared) sum += columns.shared * difference(shared_column(complement), part);
    }
    if (rows.shared) sum += rows.shared * along_shared_row(x0, x1, complement);
    return sum;
  }

  // The sum over the collected blocks.
  double blocks(bool complement) {
    const int count = std::exchange(block_count_, 0);
    return count > 0 ? map_loops<T>().log_sum_blocks(blocks_, count, grid_.stride, epsilon_, complement) : 0.0;
  }

  static Span span(const Axis& axis, int from, int to) {
    const int begin = from - axis.first, end = to - axis.first + 1;
    if (!axis.repeat) return {{begin, end}, {0, 0}, 0};
    const int after = axis.middle + axis.repeat;
    const int skip = axis.repeat - 1;
    return {{begin, std::min(end, axis.middle)},
            {std::max(begin, after) - skip, std::max(end, after) - skip},
            std::max(0, std::min(end, after) - std::max(begin, axis.middle))};
  }

  const LogIntegral<T>& integral(bool complement) {
    LogIntegral<T>& sums = integrals_[complement ? 1 : 0];
    if (!std::exchange(integral_there_[complement ? 1 : 0], true)) sums.build(grid_, epsilon_, complement);
    return sums;
  }

  // Cumulative sums of the logarithms along the shared row or column, computed on first use.
  const std::vector<double>& shared_row(bool complement) {
    std::vector<double>& sums = shared_[complement ? 1 : 0];
    if (!std::exchange(there_[complement ? 1 : 0], true))
      prefix(sums, grid_.at(grid_.y.middle, 0), 1, grid_.x, complement);
    return sums;
  }
  // The same along the shared row by pixel: entry i is the sum over the support's first i pixels.
  const double* shared_pixels(bool complement) {
    std::vector<double>& sums = pixels_[complement ? 1 : 0];
    if (!std::exchange(pixels_there_[complement ? 1 : 0], true)) {
      const std::vector<double>& entries = shared_row(complement);
      const Axis& x = grid_.x;
      const int n = x.last - x.first + 1, before = x.repeat ? x.middle : n;
      make_room(sums, static_cast<std::size_t>(n) + 1);
      std::copy(entries.begin(), entries.begin() + before + 1, sums.begin());
      if (x.repeat) {
        const double each = entries[before + 1] - entries[before];
        for (int i = 1; i <= x.repeat; ++i) sums[before + i] = entries[before] + i * each;
        const double more = (x.repeat - 1) * each;
        for (int i = before + x.repeat + 1; i <= n; ++i) sums[i] = entries[i - x.repeat + 1] + more;
      }
    }
    return sums.data();
  }
  const std::vector<double>& shared_column(bool complement) {
    std::vector<double>& sums = shared_[complement ? 3 : 2];
    if (!std::exchange(there_[complement ? 3 : 2], true))
      prefix(sums, grid_.at(0, grid_.x.middle), grid_.stride, grid_.y, complement);
    return sums;
  }

  void prefix(std::vector<double>& sums, const T* values, std::size_t step, const Axis& axis, bool complement) {
    const int n = axis.size();
    make_room(sums, static_cast<std::size_t>(n) + 1 + 2 * kPadding);
    sums[0] = 0.0;
    map_loops<T>().logs(values, step, n, epsilon_, complement, sums.data() + 1);
    for (int i = 1; i <= n; ++i) sums[i] += sums[i - 1];
  }

  static double difference(const std::vector<double>& sums, const Range& range) {
    return sums[range.end] - sums[range.begin];
  }

  double along_shared_row(int x0, int x1, bool complement) {
    const std::vector<double>& sums = shared_row(complement);
    const Span columns = span(grid_.x, x0, x1);
    double sum = 0.0;
    if (columns.low.begin < columns.low.end) sum += difference(sums, columns.low);
    if (columns.high.begin < columns.high.end) sum += difference(sums, columns.high);
    if (columns.shared) sum += columns.shared * (sums[grid_.x.middle + 1] - sums[grid_.x.middle]);
    return sum;
  }

  double along_shared_column(const Mask& m, std::int64_t begin, std::int64_t end, bool complement) {
    const std::vector<double>& sums = shared_column(complement);
    const int from = grid_.x.first + grid_.x.middle, to = from + grid_.x.repeat;
    double sum = 0.0;
    for (std::int64_t i = begin; i < end; ++i) {
      const int width = std::min(m.runs[3 * i + 2], to) - std::max(m.runs[3 * i + 1], from);
      if (width <= 0) continue;
      const int offset = m.runs[3 * i] - grid_.y.first;
      const int row = offset - (grid_.y.repeat && offset > grid_.y.middle ? grid_.y.repeat - 1 : 0);
      sum += width * (sums[row + 1] - sums[row]);
    }
    return sum;
  }

  Grid<T> grid_;
  double epsilon_ = 0.0;
  PixelBlock<T> blocks_[16];  // four of each of four rectangles
  int block_count_ = 0;
  std::vector<double> shared_[4];  // rows of both kinds, columns of both kinds
  bool there_[4] = {};
  std::vector<double> pixels_[2];
  bool pixels_there_[2] = {};
  bool many_ = false;
  LogIntegral<T> integrals_[2];
  bool integral_there_[2] = {};
};

}  // namespace probox
