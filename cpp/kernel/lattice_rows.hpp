// The distribution of a correlated Gaussian on a lattice of pixels, one row at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "gaussian.hpp"
#include "loops.hpp"
#include "scratch.hpp"

namespace probox {

// Rows of F(h, k) on a lattice of pixels for a correlated Gaussian, one after the other:
//   F(h, k') = F(h, k) + int_k^k' phi(v) Phi((h - rho v) / s) dv,   s = sqrt(1 - rho^2).
// The integral is a Gauss-Legendre sum over v. Along a row the arguments of Phi are equidistant, so Phi and its
// derivatives are tabulated on a grid that divides that distance. Phi at an argument at distance d from a grid point t
// is its Taylor series:
//   Phi(t + d) = sum_k Phi^(k)(t) d^k / k!.
// Only d depends on v, so all nodes near t share one sum: a row is a sum of a dozen rows of the table with a dozen
// weights, the moments of phi about t. The moments of eight integrals are computed together. Columns where Phi is 0 or
// 1 need at most one addition. Accurate to about 1e-10.
class LatticeRows {
 public:
  static constexpr double kLowest = -6.7;  // Phi(-6.7) is 1e-11: start of the integral over v
  static constexpr double kSaturated = 6.5;  // beyond, Phi is 0 or 1 to 4e-11
  static constexpr double kFinest = 0.4;  // limit of the grid's step
  static constexpr double kWidest = 0.6;  // limit of the range of arguments that share a sum
  static constexpr double kTolerance = 1e-10;
  static constexpr int kMostNodes = 8;
  static constexpr double kWidestSigma = 16384.0;  // in pixels: the table grows with it, up to about 25 MB

  // Whether the method applies; beyond these bounds the table, or the number of parts, would be too large.
  static bool suits(double sx, double sy, double rho) {
    return rho != 0.0 && std::min(sx, sy) >= 0.05 && std::max(sx, sy) <= kWidestSigma && 1.0 - std::abs(rho) >= 5e-4;
  }

  // The lattice's columns are first_h, first_h + step_h, ...; its rows first_k, first_k + step_k, ...
  LatticeRows(std::vector<double>& table, std::vector<double>& sum, double first_h, double step_h, int columns,
              double first_k, double step_k, int rows, double rho)
      : table_(table), sum_(sum), s_(std::sqrt((1.0 - rho) * (1.0 + rho))), slope_(-rho / s_), first_(first_h / s_),
        step_(step_h / s_), columns_(columns), rows_(rows), first_k_(first_k), step_k_(step_k) {
    phases_ = std::max(1, static_cast<int>(std::ceil(step_ / kFinest)));
    fine_ = step_ / phases_;
    per_step_ = 1.0 / step_;
    per_fine_ = 1.0 / fine_;
    // While every column is saturated the integral is known: Phi(v), or 0.
    const double last = first_ + step_ * (columns - 1);
    const double known = slope_ < 0 ? (kSaturated - first_) / slope_ : (-kSaturated - last) / slope_;
    // (With almost no correlation this bound is very large; no row is beyond the last one.)
    known_until_ = std::max(kLowest, std::min(known, first_k + step_k * rows));
    // The range of relevant arguments of Phi.
    const double from = slope_ * known_until_, to = slope_ * (first_k + step_k * rows);
    const double least = std::max(first_ + std::min(from, to), -kSaturated);
    const double most = std::max(std::min(last + std::max(from, to), kSaturated), least);
    low_ = least - fine_;
    const int needed = static_cast<int>((most - least + 3 * fine_) / step_) + 2 + kPadding;
    length_ = (needed + kPadding - 1) / kPadding * kPadding;
    points_ = phases_ * length_;
    usual_ = rule_for(step_k, kTolerance);
    // The first step is long and covers almost no mass, so it needs less precision.
    start_row_ = known_until_ >= first_k ? static_cast<int>((known_until_ - first_k) / step_k) + 1 : 0;
    const double start = first_k + start_row_ * step_k;
    start_ = rule_for(start - known_until_, kTolerance / std::max(NormalTable::get().cdf(start), 1e-6));
    const int terms = std::max(start_.terms, usual_.terms);
    make_room(table_, static_cast<std::size_t>(terms) * points_ + kPadding);
    loops().tabulate(low_, fine_, phases_, length_, NormalTable::get().entries(), NormalTable::kSteps,
                     NormalTable::kReach, terms, table_.data());
    make_room(sum_, static_cast<std::size_t>(columns) + kPadding);
  }

  // F(h_i, k) of the next row; valid until the next call.
  const double* next() {
    const int row = row_++;
    if (row < start_row_) {
      fill(first_k_ + row * step_k_);
    } else if (row == start_row_) {
      fill(known_until_);
      for (int done = 0; done < start_.parts; done += kGroup) {
        prepare(start_, known_until_ + 2 * start_.half * done, start_.parts - done, done == 0, start_.parts <= kGroup);
        for (int part = 0; part < std::min(kGroup, start_.parts - done); ++part) add(start_, part);
      }
      at_ = first_k_ + row * step_k_;
      used_ = kGroup;
    } else {
      for (int part = 0; part < usual_.parts; ++part) {
        if (used_ == kGroup) {
          prepare(usual_, at_, (rows_ - row) * usual_.parts - part, row == start_row_ + 1 && part == 0, false);
          at_ += 2 * usual_.half * kGroup;
        }
        add(usual_, used_++);
      }
    }
    return sum_.data();
  }

 private:
  // Partition and quadrature of the integral over one step.
  struct Rule {
    int parts, terms;
    double half;  // half of a part's length
    const Quadrature* quadrature;
  };

  Rule rule_for(double length, double tolerance) const {
    const double z = length / s_, spread = length * std::abs(slope_);
    const int parts =
        std::max({1, static_cast<int>(std::ceil(z / 2.0)), static_cast<int>(std::ceil(spread / kWidest))});
    const double y = z / parts;
    const int exact = y <= 0.09 ? 3 : y <= 0.3 ? 4 : y <= 0.6 ? 5 : y <= 1.0 ? 6 : y <= 1.5 ? 7 : 8;
    const int nodes = tolerance > 1e-8 ? std::max(exact - 1, 3) : exact;
    return {parts, terms_for(spread / parts, tolerance), length / parts / 2, &quadrature(nodes)};
  }

  // The number of terms of the series if arguments of this span share a sum.
  int terms_for(double span, double tolerance) const {
    // |Phi^(k)| is below 0.4 sqrt((k - 1)!): the first omitted term bounds the error.
    const double d = (fine_ + span) / 2;
    double term = 0.4 * d;
    int terms = 2;
    for (; terms < kPowers; ++terms) {
      term *= d / terms * std::sqrt(terms - 1.0);
      if (term < tolerance) break;
    }
    return terms;
  }

  // The row at k while every column is saturated.
  void fill(double k) {
    const double value = slope_ < 0 && k > kLowest ? NormalTable::get().cdf(k) : 0.0;
    std::fill(sum_.begin(), sum_.begin() + columns_ + kPadding, value);
  }

  // Computes the weights of kGroup parts from `from` on, of which the first `wanted` are used. They follow the parts of
  // the previous call unless `fresh`; no parts follow if `alone`.
  void prepare(const Rule& rule, double from, int wanted, bool fresh, bool alone) {
    double offset[kGroup] = {};
    for (int g = 0; g < std::min(wanted, kGroup); ++g) {
      const double argument = first_ + slope_ * (from + rule.half * (2 * g + 1));
      const double skipped = (-kSaturated - argument) * per_step_;
      const int begin = skipped > 0.0 ? static_cast<int>(std::min(skipped, 1e9)) + 1 : 0;
      begin_[g] = begin;
      if (begin >= columns_) continue;
      // Whole blocks from `begin` on; the columns that a block adds after the last one of interest are 1 in the table.
      const int end = static_cast<int>(std::max((kSaturated - argument) * per_step_, -1e9)) + 1;
      end_[g] = end <= begin ? begin : std::min(begin + (end - begin + kPadding - 1) / kPadding * kPadding, columns_);
      const double at_begin = argument + begin * step_;
      const int nearest = end_[g] > begin ? static_cast<int>((at_begin - low_) * per_fine_ + 0.5) : 0;
      if (end_[g] > begin) offset[g] = at_begin - (low_ + nearest * fine_);
      source_[g] = phases_ == 1 ? nearest : (nearest % phases_) * length_ + nearest / phases_;
    }
    const double *node = rule.quadrature->node.data(), *weight = rule.quadrature->weight.data();
    const int nodes = rule.quadrature->size;
    double* ratio = alone ? nullptr : ratio_;
    if (fresh || groups_++ == kMostGroups) {
      loops().start_weights(node, weight, nodes, from, rule.half, now_, ratio);
      const double jump = 2 * rule.half * kGroup;
      change_ = std::exp(-jump * jump);
      groups_ = 0;
    }
    loops().next_moments(node, nodes, rule.half, offset, slope_, change_, rule.terms, now_, ratio, moments_);
    used_ = 0;
  }

  // Adds a part whose weights are computed.
  void add(const Rule& rule, int g) {
    const int begin = begin_[g];
    if (begin >= columns_) return;
    loops().add_taps(sum_.data() + begin, end_[g] - begin, columns_ - begin, table_.data() + source_[g], points_,
                     moments_ + g, rule.terms);
  }

  std::vector<double>& table_;
  std::vector<double>& sum_;
  double s_, slope_, first_, step_;
  int columns_, rows_;
  double first_k_, step_k_;
  double per_step_ = 0.0, per_fine_ = 0.0, fine_ = 0.0, low_ = 0.0, known_until_ = 0.0, at_ = 0.0;
  int phases_ = 1, length_ = 0, points_ = 0, row_ = 0, start_row_ = 0, used_ = kGroup;
  Rule start_{}, usual_{};
  int begin_[kGroup] = {}, end_[kGroup] = {}, source_[kGroup] = {};
  // phi at the nodes of a group, and its ratio to the next group's: one product each instead of an exponential.
  static constexpr int kMostGroups = 64;  // limits rounding errors: then they are recomputed
  int groups_ = 0;
  double change_ = 1.0;
  double now_[kMostNodes * kGroup], ratio_[kMostNodes * kGroup], moments_[kPowers * kGroup];
};

}  // namespace probox
