// The distribution of a correlated Gaussian on a lattice of pixels, a row at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "gaussian.hpp"
#include "scratch.hpp"
#include "simd.hpp"

namespace probox {

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

}  // namespace probox
