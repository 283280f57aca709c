// Row-major runs from COCO's polygons and run lengths, identical to the COCO API.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace probox {

// Limits for masks: a few bytes can describe a mask of a billion runs.
struct MaskBudget {
  std::int64_t runs, crossings;   // of edges with columns: of all masks together
  std::int64_t object_crossings;  // of one object
};

// Thrown if a mask exceeds its budget.
struct MaskTooLarge {};

// Pixels begin..end (exclusive) in column-major order.
struct Interval {
  std::int64_t begin;
  std::int64_t end;
};

// Rasterises one object at a time; reuses its buffers.
class Rasteriser {
 public:
  explicit Rasteriser(MaskBudget budget) : budget_(budget) {}

  // Starts an object in an image of this size.
  void start(std::int64_t height, std::int64_t width) {
    height_ = height;
    width_ = width;
    intervals_.clear();
    object_crossings_ = 0;
  }

  // Adds a polygon x0, y0, x1, y1, ...
  //
  // The COCO API scales a polygon by 5, walks along its edges pixel by pixel, keeps the crossings of the lines through
  // the columns' centres, and fills each column between alternate crossings. Here only those crossings are computed.
  void add_polygon(const double* xy, std::int64_t points) {
    crossings_.clear();
    corners_.resize(static_cast<std::size_t>(points) + 1);
    for (std::int64_t k = 0; k < points; ++k) {
      corners_[static_cast<std::size_t>(k)] = {scaled(xy[2 * k]), scaled(xy[2 * k + 1])};
    }
    corners_.back() = corners_.front();
    for (std::size_t k = 0; k + 1 < corners_.size(); ++k) add_edge(corners_[k], corners_[k + 1]);
    sort_crossings();
    const std::int64_t total = height_ * width_;
    for (std::size_t k = 0; k < sorted_.size(); k += 2) {
      const std::int64_t end = k + 1 < sorted_.size() ? sorted_[k + 1] : total;
      if (sorted_[k] < end) intervals_.push_back({sorted_[k], end});
    }
  }

  // Adds run lengths: pixels off, on, off, ... in column-major order, with the image's number of pixels as their sum.
  void add_counts(const double* counts, std::int64_t size) {
    std::int64_t at = 0;
    for (std::int64_t k = 0; k < size; ++k) {
      const auto length = static_cast<std::int64_t>(counts[k]);
      if (k % 2 == 1 && length > 0) intervals_.push_back({at, at + length});
      at += length;
    }
  }

  // Adds pixels begin..end (exclusive) in column-major order.
  void add_interval(std::int64_t begin, std::int64_t end) { intervals_.push_back({begin, end}); }

  // The union of everything added, as row-major runs.
  const std::vector<std::int32_t>& finish() {
    merge_intervals();
    transpose();
    budget_.runs -= static_cast<std::int64_t>(swept_.size());
    return runs_;
  }

 private:
  struct Corner {
    std::int64_t x;
    std::int64_t y;
  };
  struct Crossing {
    std::int64_t column;
    std::int64_t row;  // the first pixel at or below the crossing
  };
  struct Run {
    std::int32_t y;
    std::int32_t begin;
    std::int32_t end;
  };

  static constexpr std::int64_t scale = 5;

  static std::int64_t scaled(double value) {
    return static_cast<std::int64_t>(static_cast<double>(scale) * value + .5);
  }

  // Stores the crossing of the edge from scaled column 5 x + 2 to the next: there pixel column x toggles.
  void add_edge(Corner a, Corner b) {
    const std::int64_t dx = std::abs(b.x - a.x);
    const std::int64_t dy = std::abs(b.y - a.y);
    const bool flat = dx >= dy;
    if (dx == 0) return;
    if (flat ? a.x > b.x : a.y > b.y) std::swap(a, b);
    const double slope = flat ? static_cast<double>(b.y - a.y) / static_cast<double>(dx)
                              : static_cast<double>(b.x - a.x) / static_cast<double>(dy);
    const std::int64_t left = std::min(a.x, b.x);
    const std::int64_t right = std::max(a.x, b.x);
    std::int64_t column = left <= 2 ? 0 : (left - 2 + scale - 1) / scale;
    const std::int64_t last = std::min(width_ - 1, (right - 1 - 2 >= 0) ? (right - 3) / scale : std::int64_t{-1});
    if (column > last) return;
    object_crossings_ += last - column + 1;
    budget_.crossings -= last - column + 1;
    if (object_crossings_ > budget_.object_crossings || budget_.crossings < 0) throw MaskTooLarge{};
    for (; column <= last; ++column) {
      const std::int64_t here = column * scale + 2;
      std::int64_t y;
      if (flat) {
        const std::int64_t t = here - a.x;
        const auto at = [&](std::int64_t step) {
          return static_cast<std::int64_t>(static_cast<double>(a.y) + slope * static_cast<double>(step) + .5);
        };
        y = std::min(at(t), at(t + 1));
      } else {
        y = a.y + step_before(a, dy, slope, here);
      }
      crossings_.push_back({column, pixel_row(y)});
    }
  }

  // Steep edges are traversed along y. Returns the last step before the crossing between columns `here` and `here` + 1.
  static std::int64_t step_before(const Corner& a, std::int64_t dy, double slope, std::int64_t here) {
    const auto column_at = [&](std::int64_t step) {
      return static_cast<std::int64_t>(static_cast<double>(a.x) + slope * static_cast<double>(step) + .5);
    };
    const auto passed = [&](std::int64_t step) { return slope > 0 ? column_at(step) > here : column_at(step) <= here; };
    const double guess = (static_cast<double>(here) + .5 - static_cast<double>(a.x)) / slope;
    auto step = static_cast<std::int64_t>(std::min(std::max(guess, 0.0), static_cast<double>(dy)));
    while (step > 0 && passed(step)) --step;
    while (step < dy && !passed(step + 1)) ++step;
    return step;
  }

  // The first pixel row whose centre is at or below scaled row `y`: (y + 1/2) / 5 - 1/2 rounded up, in the image.
  std::int64_t pixel_row(std::int64_t y) const { return y <= 2 ? 0 : std::min((y + 2) / scale, height_); }

  // Sorts crossings in column-major order. Columns have few crossings: count them, then sort within columns.
  void sort_crossings() {
    sorted_.resize(crossings_.size());
    if (crossings_.empty()) return;
    std::int64_t low = crossings_.front().column;
    std::int64_t high = low;
    for (const Crossing& crossing : crossings_) {
      low = std::min(low, crossing.column);
      high = std::max(high, crossing.column);
    }
    place_.assign(static_cast<std::size_t>(high - low) + 2, 0);
    for (const Crossing& crossing : crossings_) ++place_[static_cast<std::size_t>(crossing.column - low) + 1];
    for (std::size_t k = 1; k < place_.size(); ++k) place_[k] += place_[k - 1];
    for (const Crossing& crossing : crossings_) {
      sorted_[place_[static_cast<std::size_t>(crossing.column - low)]++] = crossing.column * height_ + crossing.row;
    }
    // `place_` now contains the end of each column.
    std::size_t begin = 0;
    for (std::int64_t column = low; column <= high; ++column) {
      const std::size_t end = place_[static_cast<std::size_t>(column - low)];
      if (end - begin == 2) {
        if (sorted_[begin + 1] < sorted_[begin]) std::swap(sorted_[begin], sorted_[begin + 1]);
      } else {
        std::sort(sorted_.begin() + static_cast<std::ptrdiff_t>(begin),
                  sorted_.begin() + static_cast<std::ptrdiff_t>(end));
      }
      begin = end;
    }
  }

  void merge_intervals() {
    const auto before = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
    if (!std::is_sorted(intervals_.begin(), intervals_.end(), before)) {
      std::sort(intervals_.begin(), intervals_.end(), before);
    }
    std::size_t kept = 0;
    for (const Interval& interval : intervals_) {
      if (kept > 0 && interval.begin <= intervals_[kept - 1].end) {
        intervals_[kept - 1].end = std::max(intervals_[kept - 1].end, interval.end);
      } else {
        intervals_[kept++] = interval;
      }
    }
    intervals_.resize(kept);
  }

  // Sweeps the columns from left to right. A row whose pixel turns on starts a run, one whose pixel turns off ends it;
  // runs are ordered by column, so a counting sort by row finishes the order.
  void transpose() {
    runs_.clear();
    swept_.clear();
    if (intervals_.empty()) return;
    previous_.clear();
    const std::int64_t first_column = intervals_.front().begin / height_;
    const std::int64_t last_column = (intervals_.back().end - 1) / height_;
    run_start_.resize(static_cast<std::size_t>(height_));
    std::size_t next = 0;
    std::int64_t taken = intervals_.front().begin;
    for (std::int64_t column = first_column; column <= last_column + 1; ++column) {
      current_.clear();
      const std::int64_t top = column * height_;
      const std::int64_t bottom = top + height_;
      while (next < intervals_.size() && std::max(taken, intervals_[next].begin) < bottom) {
        const std::int64_t begin = std::max(std::max(taken, intervals_[next].begin), top);
        const std::int64_t end = std::min(intervals_[next].end, bottom);
        current_.push_back({begin - top, end - top});
        taken = end;
        if (end == intervals_[next].end) ++next;
        if (end == bottom) break;
      }
      each_difference(current_, previous_, [&](std::int64_t y) { run_start_[static_cast<std::size_t>(y)] = column; });
      each_difference(previous_, current_, [&](std::int64_t y) {
        if (static_cast<std::int64_t>(swept_.size()) >= budget_.runs) throw MaskTooLarge{};
        swept_.push_back({static_cast<std::int32_t>(y),
                          static_cast<std::int32_t>(run_start_[static_cast<std::size_t>(y)]),
                          static_cast<std::int32_t>(column)});
      });
      previous_.swap(current_);
      pass_over_equal_columns(next, taken, column);
    }
    order_by_row();
  }

  // Skips columns that equal this one, if it is empty or full: there may be a million of them.
  void pass_over_equal_columns(std::size_t& next, std::int64_t& taken, std::int64_t& column) {
    if (next == intervals_.size()) return;
    const std::int64_t begin = std::max(taken, intervals_[next].begin);
    if (previous_.empty()) {
      column = std::max(column, begin / height_ - 1);
    } else if (begin == (column + 1) * height_ && previous_.front().begin == 0 && previous_.front().end == height_) {
      column = std::max(column, intervals_[next].end / height_ - 1);
      taken = (column + 1) * height_;
      if (taken == intervals_[next].end) ++next;
    }
  }

  // Calls `act` for every row in `a` that is not in `b`.
  template <class Act>
  static void each_difference(const std::vector<Interval>& a, const std::vector<Interval>& b, Act&& act) {
    std::size_t k = 0;
    for (const Interval& interval : a) {
      std::int64_t y = interval.begin;
      while (k > 0 && b[k - 1].end > y) --k;
      while (k < b.size() && b[k].end <= y) ++k;
      while (y < interval.end) {
        if (k == b.size() || b[k].begin >= interval.end) {
          for (; y < interval.end; ++y) act(y);
        } else {
          for (; y < b[k].begin; ++y) act(y);
          y = std::max(y, b[k].end);
          ++k;
        }
      }
    }
  }

  void order_by_row() {
    std::int32_t low = std::numeric_limits<std::int32_t>::max();
    std::int32_t high = -1;
    for (const Run& run : swept_) {
      low = std::min(low, run.y);
      high = std::max(high, run.y);
    }
    place_.assign(static_cast<std::size_t>(high - low) + 2, 0);
    for (const Run& run : swept_) ++place_[static_cast<std::size_t>(run.y - low) + 1];
    for (std::size_t k = 1; k < place_.size(); ++k) place_[k] += place_[k - 1];
    runs_.resize(swept_.size() * 3);
    for (const Run& run : swept_) {
      const std::size_t at = 3 * place_[static_cast<std::size_t>(run.y - low)]++;
      runs_[at] = run.y;
      runs_[at + 1] = run.begin;
      runs_[at + 2] = run.end;
    }
  }

  MaskBudget budget_;
  std::int64_t object_crossings_ = 0;
  std::int64_t height_ = 0;
  std::int64_t width_ = 0;
  std::vector<Corner> corners_;
  std::vector<Crossing> crossings_;
  std::vector<std::int64_t> sorted_;
  std::vector<Interval> intervals_;
  std::vector<Interval> current_;
  std::vector<Interval> previous_;
  std::vector<std::int64_t> run_start_;
  std::vector<Run> swept_;
  std::vector<std::size_t> place_;
  std::vector<std::int32_t> runs_;
};

}  // namespace probox
