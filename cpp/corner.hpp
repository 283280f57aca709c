// The map of one Gaussian corner: how likely it lies in the image, left of and above each pixel's far corner.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gaussian.hpp"
#include "settings.hpp"
#include "simd.hpp"

namespace probox {

// A Gaussian in the plane. Rounding may have left a variance, or the determinant, a little below 0.
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

constexpr double kEdge = 1e-14;  // a pixel's far corner is read this much before it, which decides ties

inline int truncate(double value, int size) {
  return static_cast<int>(std::clamp(value, -2.0, static_cast<double>(size) + 1.0));
}

// Where lattice values low..high, one axis fixed at `fixed`, come nearest to the mean: the smallest squared
// Mahalanobis distance of that line. `a`, `b`, `c` are the inverse covariance's entries for (fixed, fixed),
// (fixed, free), (free, free). Without curvature upwards the line's ends are the nearest.
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

// The pixels in which a corner's distribution is computed. Outside them the map is constant along rows or columns.
inline Region region_of_interest(const Gaussian& g, int width, int height, const Settings& s) {
  const double reach = s.region_of_interest ? s.rough_sigmas : 9.5;  // Phi(-9.5) is 1e-21: nothing to the equations
  const double sx = g.sigma_x(), sy = g.sigma_y();
  Region r;
  // Far from 0 kEdge is rounded away: then a corner without variance on a pixel's border counts for the pixel before.
  const auto begin = [&](double low) {
    return s.region_of_interest || low - kEdge < low ? low : std::ceil(low) - 1.0;
  };
  r.x0 = truncate(std::max(begin(g.x - reach * sx), 0.0), width);
  r.y0 = truncate(std::max(begin(g.y - reach * sy), 0.0), height);
  r.x1 = truncate(std::min(g.x + reach * sx, width - 1.0), width);
  r.y1 = truncate(std::min(g.y + reach * sy, height - 1.0), height);
  const double determinant = g.xx * g.yy - g.xy * g.xy;
  if (r.empty() || !s.region_of_interest || !(std::abs(determinant) >= s.min_determinant)) return r;

  // A pixel above or left of the mean counts by its near corner, which is the next lattice point.
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
  while (first_column < column && !column_kept(first_column)) ++first_column;
  while (last_column > column && !column_kept(last_column)) --last_column;
  while (first_row < row && !row_kept(first_row)) ++first_row;
  while (last_row > row && !row_kept(last_row)) --last_row;
  return {r.x0 + first_column, r.y0 + first_row, r.x0 + last_column, r.y0 + last_row};
}

// The map in its region, with one more row and column for everything beyond: the last row and column again,
// and 1 where both are passed.
//
// For the bottom-right corner everything is computed in the image turned by half a turn and stored turned back, so
// that rows and columns run with the image's: then the extra column is the first one and the extra row too.
template <class T>
struct CornerMap {
  Region region;  // in the image, after turning back
  bool turned = false;
  int stride = 0;
  std::vector<T> values;

  // The row of values for image row y, which must not lie on the map's zero side.
  const T* row(int y) const {
    const int rows = region.y1 - region.y0 + 1;
    const int index = turned ? (y < region.y0 ? 0 : y - region.y0 + 1) : std::min(y - region.y0, rows);
    return values.data() + static_cast<std::size_t>(index) * stride;
  }
};

// Makes room for n values; never shrinks, so that reused memory is not cleared again and again.
template <class T>
void make_room(std::vector<T>& values, std::size_t n) {
  if (values.size() < n) values.resize(n);
}

// Reusable memory for the computation of corner maps.
template <class T>
struct CornerScratch {
  std::vector<double> across, marginal, value, table, matrix, turned;
  std::vector<T> above;
};

namespace detail {

// Rows of F(h, k) on a lattice of pixels for a correlated Gaussian, one after the other:
//   F(h, k') = F(h, k) + int_k^k' phi(v) Phi((h - rho v) / s) dv,   s = sqrt(1 - rho^2).
// The integral is a Gauss-Legendre sum over v. Along a row the arguments of Phi are equidistant, so Phi and its
// derivatives are tabulated on a grid that divides that distance, and Phi at an argument d beside a point t of the grid
// is its Taylor series there:
//   Phi(t + d) = sum_k Phi^(k)(t) d^k / k!.
// Only d depends on v, so all nodes near t share one sum: a row is a dozen rows of the table times a dozen weights.
// Columns where Phi is 0 or 1 cost nothing, or one addition. Accurate to about 1e-10.
class LatticeRows {
 public:
  static constexpr double kLowest = -6.7;     // Phi(-6.7) is 1e-11: where the integral over v starts
  static constexpr double kSaturated = 6.5;   // beyond, Phi is 0 or 1 to 4e-11
  static constexpr double kFinest = 0.4;      // no wider step on the grid
  static constexpr double kWidest = 0.6;      // no wider range of arguments that share a sum
  static constexpr double kTolerance = 1e-11;
  static constexpr double kWidestSigma = 16384.0;  // in pixels: the table grows with it, to some 25 MB

  // Whether rows can be had this way; beyond these bounds the table, or the number of parts, would grow too large.
  static bool suits(double sx, double sy, double rho) {
    return rho != 0.0 && std::min(sx, sy) >= 0.05 && std::max(sx, sy) <= kWidestSigma && 1.0 - std::abs(rho) >= 5e-4;
  }

  // The lattice's columns are first_h, first_h + step_h, ...; its rows, but for the first, `step_k` apart.
  template <class T>
  LatticeRows(CornerScratch<T>& scratch, double first_h, double step_h, int columns, double step_k, double rho)
      : table_(scratch.table), sum_(scratch.value), s_(std::sqrt((1.0 - rho) * (1.0 + rho))), slope_(-rho / s_),
        first_(first_h / s_), step_(step_h / s_), columns_(columns) {
    phases_ = std::max(1, static_cast<int>(std::ceil(step_ / kFinest)));
    fine_ = step_ / phases_;
    per_step_ = 1.0 / step_;
    per_fine_ = 1.0 / fine_;
    low_ = -kSaturated - fine_;
    length_ = static_cast<int>((2 * kSaturated + 3 * fine_) / step_) + 2 + kPadding;
    points_ = phases_ * length_;
    span_ = std::min(std::abs(slope_) * step_k, kWidest);
    terms_ = terms_for(span_);
    // The first step is a long one; it pays to let more of it share a sum, with a longer series.
    most_terms_ = terms_for(kWidest);
    tabulate(scratch.across);
    sum_.assign(columns + kPadding, 0.0);
    // As long as every column is saturated the integral is known: Phi(v), or nothing.
    const double last = first_ + step_ * (columns - 1);
    known_until_ = slope_ < 0 ? (kSaturated - first_) / slope_ : (-kSaturated - last) / slope_;
  }

  // Moves on to k; afterwards row() is F(h_i, k).
  void advance(double k) {
    const double to = std::min(k, -kLowest), known = std::min(to, known_until_);
    if (known > at_) {
      if (slope_ < 0) std::fill(sum_.begin(), sum_.end(), NormalTable::get().cdf(known));
      at_ = known;
    }
    if (to <= at_) return;
    const double length = to - at_, z = length / s_, spread = length * std::abs(slope_);
    const bool long_step = spread > span_ * 1.001;
    const int parts = std::max({1, static_cast<int>(std::ceil(z / 2.0)),
                                long_step ? static_cast<int>(std::ceil(spread / kWidest)) : 1});
    const double y = z / parts, half = length / parts / 2;
    const Quadrature& rule = quadrature(y <= 0.09 ? 3 : y <= 0.3 ? 4 : y <= 0.6 ? 5 : y <= 1.0 ? 6 : y <= 1.5 ? 7 : 8);
    for (int part = 0; part < parts; ++part)
      add_part(rule, at_ + half * (2 * part + 1), half, long_step ? most_terms_ : terms_);
    at_ = to;
  }

  // F(h_i, k) for the k that was last advanced to.
  const double* row() const { return sum_.data(); }

 private:
  // How many terms of the series are needed when arguments of this span share a sum.
  int terms_for(double span) const {
    // |Phi^(k)| stays below 0.4 sqrt((k - 1)!): the first term left out bounds the error.
    const double d = (fine_ + span) / 2;
    double term = 0.4 * d;
    int terms = 2;
    for (; terms < kPowers; ++terms) {
      term *= d / terms * std::sqrt(terms - 1.0);
      if (term < kTolerance) break;
    }
    return terms;
  }

  void tabulate(std::vector<double>& arguments) {
    make_room(table_, static_cast<std::size_t>(most_terms_) * points_);
    make_room(arguments, points_);
    for (int phase = 0, p = 0; phase < phases_; ++phase)
      for (int i = 0; i < length_; ++i, ++p) arguments[p] = low_ + (phase + static_cast<double>(i) * phases_) * fine_;
    normal_rows(arguments.data(), points_, NormalTable::get().entries(), NormalTable::kSteps, NormalTable::kReach,
                table_.data(), table_.data() + points_);
    hermite_rows(arguments.data(), points_, most_terms_, table_.data());
  }

  // Adds the integral over middle - half .. middle + half.
  void add_part(const Quadrature& rule, double middle, double half, int terms) {
    const double argument = first_ + slope_ * middle;
    const double skipped = (-kSaturated - argument) * per_step_;
    const int begin = skipped > 0.0 ? static_cast<int>(std::min(skipped, 1e9)) + 1 : 0;
    if (begin >= columns_) return;
    // From `begin` on in whole blocks; what a block holds beyond the last column of interest is 1 in the table too.
    int end = static_cast<int>((kSaturated - argument) * per_step_) + 1;
    end = end <= begin ? begin : std::min(begin + (end - begin + kPadding - 1) / kPadding * kPadding, columns_);
    const double at_begin = argument + begin * step_;
    const int nearest = static_cast<int>((at_begin - low_) * per_fine_ + 0.5);
    double moments[kPowers];
    gaussian_moments(rule.node.data(), rule.weight.data(), middle, half, at_begin - (low_ + nearest * fine_), slope_,
                     begin < end ? terms : 1, moments);
    const double* source = table_.data() + (nearest % phases_) * length_ + nearest / phases_;
    add_taps(sum_.data() + begin, end - begin, columns_ - begin, source, points_, moments, terms);
  }

  std::vector<double>& table_;
  std::vector<double>& sum_;
  double s_, slope_, first_, step_;
  int columns_;
  double per_step_ = 0.0, per_fine_ = 0.0, fine_ = 0.0, low_ = 0.0, span_ = 0.0, known_until_ = 0.0, at_ = kLowest;
  int phases_ = 1, length_ = 0, points_ = 0, terms_ = 2, most_terms_ = 2;
};

inline double standardised(double point, double mean, double sigma) {
  if (sigma > 0.0) return (point - mean) / sigma;
  return point >= mean ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

// F(h_i, k_j) as a matrix, row by row. Steps go along the axis with fewer of them.
template <class T>
const double* lattice_matrix(CornerScratch<T>& scratch, double first_h, double step_h, int columns, double first_k,
                             double step_k, int rows, double rho) {
  const bool by_row = rows <= columns;
  const int steps = by_row ? rows : columns, width = by_row ? columns : rows;
  make_room(scratch.matrix, static_cast<std::size_t>(steps) * width);
  LatticeRows lattice(scratch, by_row ? first_h : first_k, by_row ? step_h : step_k, width, by_row ? step_k : step_h,
                      rho);
  for (int i = 0; i < steps; ++i) {
    lattice.advance((by_row ? first_k : first_h) + i * (by_row ? step_k : step_h));
    std::copy(lattice.row(), lattice.row() + width, scratch.matrix.data() + static_cast<std::size_t>(i) * width);
  }
  if (by_row) return scratch.matrix.data();
  make_room(scratch.turned, static_cast<std::size_t>(steps) * width);
  transpose(scratch.matrix.data(), steps, width, scratch.turned.data());
  return scratch.turned.data();
}

}  // namespace detail

// Computes the corner's map in `region`. `g` is given in the turned image if `turned`.
template <class T>
void fill_corner_map(const Gaussian& g, const Region& region, bool turned, int width, int height, const Settings& s,
                     CornerScratch<T>& scratch, CornerMap<T>& map) {
  const int columns = region.x1 - region.x0 + 1, rows = region.y1 - region.y0 + 1;
  const bool at_left = region.x0 == 0, at_top = region.y0 == 0;
  const double sx = g.sigma_x(), sy = g.sigma_y();
  const double rho = sx > 0 && sy > 0 ? std::clamp(g.xy / (sx * sy), -1.0, 1.0) : 0.0;
  const auto h_at = [&](int x) { return detail::standardised((x + 1) - kEdge, g.x, sx); };
  const auto k_at = [&](int y) { return detail::standardised((y + 1) - kEdge, g.y, sy); };

  map.turned = turned;
  map.stride = columns + 1;
  make_room(map.values, static_cast<std::size_t>(rows + 1) * map.stride);
  map.region = turned ? Region{width - 1 - region.x1, height - 1 - region.y1, width - 1 - region.x0,
                               height - 1 - region.y0}
                      : region;
  const T cut = static_cast<T>(s.min_probability);

  // A row goes in with its values, the mass left of the image, and what stands in the column beyond the region.
  double origin = 0.0;
  const T* above = nullptr;
  const auto store = [&](int index, const double* value, double left, double beyond) {
    T* out = map.values.data() + static_cast<std::size_t>(turned ? rows - index : index) * map.stride;
    finish_row(value, left, above, origin, columns, s.min_probability, turned, turned ? out + 1 : out);
    T last = static_cast<T>(beyond) - static_cast<T>(left);
    if (above) last -= above[columns - 1];
    last += static_cast<T>(origin);
    out[turned ? 0 : columns] = last < cut ? T(0) : last;
  };
  const auto finish_above = [&](const double* value, double corner) {
    scratch.above.assign(value, value + columns);
    above = scratch.above.data();
    origin = corner;
  };

  const bool lattice = s.region_of_interest && detail::LatticeRows::suits(sx, sy, rho);
  double left = 0.0;
  if (lattice) {
    // Row or column -1, where it is wanted, is the image's edge.
    const int extra_x = at_left ? 1 : 0, extra_y = at_top ? 1 : 0;
    const int wide = columns + extra_x, high = rows + extra_y;
    const double* matrix = detail::lattice_matrix(scratch, h_at(region.x0 - extra_x), 1.0 / sx, wide,
                                                  k_at(region.y0 - extra_y), 1.0 / sy, high, rho);
    if (at_top) finish_above(matrix + extra_x, at_left ? matrix[0] : 0.0);
    const double* row = matrix + static_cast<std::size_t>(extra_y) * wide;
    for (int j = 0; j < rows; ++j, row += wide) {
      left = at_left ? row[0] : 0.0;
      store(j, row + extra_x, left, row[wide - 1]);
    }
    // The row beyond repeats the last one.
    store(rows, row - wide + extra_x, left, 1.0);
    return;
  }

  // Without correlation a row is one vector times a number; with it, every pixel needs an integral of its own.
  auto& across = scratch.across;
  auto& marginal = scratch.marginal;
  auto& value = scratch.value;
  make_room(across, columns + 1 + kPadding);
  make_room(marginal, columns + 1 + kPadding);
  make_room(value, columns + 1 + kPadding);
  const bool exact = !s.region_of_interest;
  const NormalTable& table = NormalTable::get();
  const auto phi = [&](double x) { return exact ? normal_cdf(x) : table.cdf(x); };
  // The image's left edge comes last.
  for (int i = 0; i <= columns; ++i) {
    across[i] = h_at(i < columns ? region.x0 + i : -1);
    marginal[i] = phi(across[i]);
  }
  const bool moderate = std::abs(rho) < 0.925;
  const PlackettNodes nodes(moderate ? rho : 0.0);
  const auto row_at = [&](double k) {
    if (rho == 0.0)
      scale(marginal.data(), phi(k), columns + 1, value.data());
    else if (moderate)
      plackett_row(across.data(), marginal.data(), columns + 1, k, phi(k), nodes.sine, nodes.scale, nodes.weight,
                   nodes.size, value.data());
    else
      for (int i = 0; i <= columns; ++i) value[i] = bivariate_cdf(across[i], k, rho);
    return value[columns];
  };
  if (at_top) {
    const double corner = row_at(k_at(-1));
    finish_above(value.data(), at_left ? corner : 0.0);
  }
  for (int j = 0; j < rows; ++j) {
    const double mass = row_at(k_at(region.y0 + j));
    left = at_left ? mass : 0.0;
    store(j, value.data(), left, value[columns - 1]);
  }
  store(rows, value.data(), left, 1.0);
}

}  // namespace probox
