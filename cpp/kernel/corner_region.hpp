// Region of interest of a Gaussian corner: the pixels in which its distribution is computed.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "gaussian.hpp"
#include "settings.hpp"

namespace probox {

// A Gaussian in the plane. A variance, or the determinant, may be slightly negative due to rounding.
struct Gaussian {
  double x, y, xx, xy, yy;

  double sigma_x() const { return std::sqrt(std::max(xx, 0.0)); }
  double sigma_y() const { return std::sqrt(std::max(yy, 0.0)); }
};

// Inclusive pixel ranges; empty if a range is.
struct Region {
  int x0 = 0, y0 = 0, x1 = -1, y1 = -1;
  bool empty() const { return x1 < x0 || y1 < y0; }
};

constexpr double kEdge = 1e-14;  // a pixel's far corner is evaluated this much before it, which decides ties

inline int truncate(double value, int size) {
  return static_cast<int>(std::clamp(value, -2.0, static_cast<double>(size) + 1.0));
}

// The smallest squared Mahalanobis distance to the mean of lattice points low..high on a line with one axis fixed at
// `fixed`. `a`, `b`, `c` are the inverse covariance's entries for (fixed, fixed), (fixed, free), (free, free). Without
// positive curvature the minimum is at an end of the line.
inline double nearest_on_line(double fixed, double mean_free, int low, int high, double a, double b, double c) {
  const auto squared = [&](double free) {
    const double d = free - mean_free;
    return a * fixed * fixed + 2 * b * fixed * d + c * d * d;
  };
  if (!(c > 0.0)) return std::min(squared(low), squared(high));
  const double best = mean_free - b * fixed / c;
  const double below = std::clamp(std::floor(best), static_cast<double>(low), static_cast<double>(high));
  return std::min(squared(below), squared(std::min(below + 1.0, static_cast<double>(high))));
}

// Number of standard deviations below the mean beyond which a Gaussian has less mass than the minimum probability.
// Nearer values may be above it; farther ones are 0. The margin is for rounding.
inline double least_deviation(double min_probability) {
  const double mass = min_probability - 1e-6;
  if (!(mass > 0.0)) return -std::numeric_limits<double>::infinity();
  double low = -40.0, high = 0.0;
  if (mass >= 0.5) return high;
  for (int i = 0; i < 60; ++i) (normal_cdf((low + high) / 2) < mass ? low : high) = (low + high) / 2;
  return low;
}

// The region without its first columns and rows of zeros, left of or above which there is less mass than the minimum
// probability. A region that starts at the image's edge is unchanged, because mass is removed at the edge.
inline Region without_zeros(Region r, const Gaussian& g, double deviation) {
  const auto later = [&](int first, int last, double mean, double sigma) {
    if (first == 0 || !(sigma > 0.0)) return first;
    const double begin = std::ceil(mean + deviation * sigma - 1.0 - 1e-6);  // a pixel ends one after it begins
    return begin > first ? static_cast<int>(std::min(begin, static_cast<double>(last))) : first;
  };
  r.x0 = later(r.x0, r.x1, g.x, g.sigma_x());
  r.y0 = later(r.y0, r.y1, g.y, g.sigma_y());
  return r;
}

// The pixels in which a corner's distribution is computed. Outside them the map is constant along rows or columns.
inline Region region_of_interest(const Gaussian& g, int width, int height, const Settings& s) {
  const double reach = s.reach_sigmas;
  const double sx = g.sigma_x(), sy = g.sigma_y();
  Region r;
  // Far from 0 kEdge is below the rounding error: then a corner without variance on a pixel's border belongs to the
  // pixel before.
  const auto begin = [&](double low) { return s.region_of_interest || low - kEdge < low ? low : std::ceil(low) - 1.0; };
  r.x0 = truncate(std::max(begin(g.x - reach * sx), 0.0), width);
  r.y0 = truncate(std::max(begin(g.y - reach * sy), 0.0), height);
  r.x1 = truncate(std::min(g.x + reach * sx, width - 1.0), width);
  r.y1 = truncate(std::min(g.y + reach * sy, height - 1.0), height);
  const double determinant = g.xx * g.yy - g.xy * g.xy;
  if (r.empty() || !s.region_of_interest || !(std::abs(determinant) >= s.min_determinant)) return r;

  // A pixel above or left of the mean is tested by its near corner, which is the next lattice point.
  const double a = g.yy / determinant, b = -g.xy / determinant, c = g.xx / determinant;
  const double limit = s.mahalanobis * s.mahalanobis;
  const int column = std::clamp(truncate(g.x - r.x0, width), 0, r.x1 - r.x0);
  const int row = std::clamp(truncate(g.y - r.y0, height), 0, r.y1 - r.y0);
  const int shift_x = 0 < column && column < width - 1, shift_y = 0 < row && row < height - 1;
  const auto column_kept = [&](int i) {
    const double dx = r.x0 + i + (i < column ? shift_x : 0) - g.x;
    return nearest_on_line(dx, g.y, r.y0 + shift_y, r.y1, a, b, c) <= limit;
  };
  const auto row_kept = [&](int j) {
    const double dy = r.y0 + j + (j < row ? shift_y : 0) - g.y;
    return nearest_on_line(dy, g.x, r.x0 + shift_x, r.x1, c, b, a) <= limit;
  };
  int first_column = 0, last_column = r.x1 - r.x0, first_row = 0, last_row = r.y1 - r.y0;
  if (determinant > 0.0 && sx > 0.0 && sy > 0.0) {
    // The distance of a line in standard deviations is a lower bound, so lines beyond the limit are skipped.
    const double reach_x = s.mahalanobis * sx * (1 + 1e-9) + 1e-6, reach_y = s.mahalanobis * sy * (1 + 1e-9) + 1e-6;
    first_column = std::clamp(truncate(g.x - reach_x - r.x0 - 1.0, width), 0, column);
    last_column = std::clamp(truncate(g.x + reach_x - r.x0 + 1.0, width), column, last_column);
    first_row = std::clamp(truncate(g.y - reach_y - r.y0 - 1.0, height), 0, row);
    last_row = std::clamp(truncate(g.y + reach_y - r.y0 + 1.0, height), row, last_row);
  }
  while (first_column < column && !column_kept(first_column)) ++first_column;
  while (last_column > column && !column_kept(last_column)) --last_column;
  while (first_row < row && !row_kept(first_row)) ++first_row;
  while (last_row > row && !row_kept(last_row)) --last_row;
  return {r.x0 + first_column, r.y0 + first_row, r.x0 + last_column, r.y0 + last_row};
}

}  // namespace probox
