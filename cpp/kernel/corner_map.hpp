// Map of one Gaussian corner: the probability that it is in the image, left of and above each pixel's far corner.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "corner_region.hpp"
#include "gaussian.hpp"
#include "lattice_rows.hpp"
#include "loops.hpp"
#include "scratch.hpp"
#include "settings.hpp"

namespace probox {

inline double standardised(double point, double mean, double sigma) {
  if (sigma > 0.0) return (point - mean) / sigma;
  return point >= mean ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

// The map in its region, with one more row and column for all pixels beyond: the last row and column repeated,
// and 1 beyond both.
//
// The bottom-right corner is computed in the image rotated by 180 degrees and stored rotated back, so that rows and
// columns have the image's order: then the extra column and the extra row are the first ones.
//
// With correlation all rows are computed and stored. Without it a row is a vector times a number: rows are computed on
// request and not kept, unless they are requested in memory of the caller.
template <class T>
class CornerMap {
 public:
  // Computes the data for rows. `g` is given in the rotated image if `turned`. With a `place`, all rows but the one
  // beyond are stored there, `stride` apart, with the column beyond.
  void prepare(const Gaussian& g, const Region& region, bool turned, int width, int height, const Settings& s,
               CornerScratch<T>& scratch, T* place = nullptr, std::size_t stride = 0) {
    g_ = g;
    in_turned_ = region;
    turned_ = turned;
    columns_ = region.x1 - region.x0 + 1;
    rows_ = region.y1 - region.y0 + 1;
    at_left_ = region.x0 == 0;
    at_top_ = region.y0 == 0;
    cut_ = static_cast<T>(s.min_probability);
    region_ = turned
                  ? Region{width - 1 - region.x1, height - 1 - region.y1, width - 1 - region.x0, height - 1 - region.y0}
                  : region;
    sx_ = g.sigma_x();
    sy_ = g.sigma_y();
    above_ = nullptr;
    origin_ = T(0);
    const double rho = sx_ > 0 && sy_ > 0 ? std::clamp(g.xy / (sx_ * sy_), -1.0, 1.0) : 0.0;
    const bool outer = rho == 0.0;
    kept_ = !outer || place != nullptr;
    stride_ = place != nullptr ? stride : static_cast<std::size_t>(columns_) + 1;
    const std::size_t own_rows = place != nullptr ? 0 : kept_ ? static_cast<std::size_t>(rows_) : 1;
    make_room(values_, own_rows * stride_ + kPadding);
    first_ = place != nullptr ? place : values_.data();
    make_room(beyond_, static_cast<std::size_t>(columns_) + 1 + kPadding);
    if (outer)
      prepare_outer(s.region_of_interest);
    else if (s.region_of_interest && LatticeRows::suits(sx_, sy_, rho))
      fill_lattice(rho, scratch);
    else
      fill_exactly(rho, !s.region_of_interest, scratch);
  }

  const Region& region() const { return region_; }  // in the image, after rotating back

  // The row of values for image row y, which must not be on the map's zero side. It is valid until the next call.
  const T* row(int y) {
    const int index = turned_ ? region_.y1 - y : y - region_.y0;
    if (index >= rows_) return beyond();
    if (kept_) return place(index);
    store_outer(index, first_);
    return first_;
  }

  // The row for all image rows beyond the corner.
  const T* beyond() const { return beyond_.data(); }

 private:
  double h_at(int x) const { return standardised((x + 1) - kEdge, g_.x, sx_); }
  double k_at(int y) const { return standardised((y + 1) - kEdge, g_.y, sy_); }

  // Storage of row `index` of the rotated map.
  T* place(int index) { return first_ + static_cast<std::size_t>(turned_ ? rows_ - 1 - index : index) * stride_; }

  // Stores a row: values times a factor, minus the mass left of the image.
  void store(const double* value, double factor, double left, T* out) const {
    map_loops<T>().finish_row(value, factor, static_cast<T>(left), above_, origin_, columns_, cut_, turned_,
                              turned_ ? out + 1 : out);
    repeat_last_column(out);
  }

  void repeat_last_column(T* row) const {
    if (turned_)
      row[0] = row[1];
    else
      row[columns_] = row[columns_ - 1];
  }

  // The row beyond all others repeats the last one. The pixels beyond all columns are 1, because they are beyond the
  // corner on both axes, unless the corner is outside the image.
  void store_beyond(const T* last_row, double left) {
    T* out = beyond_.data();
    if (out != last_row) std::copy(last_row, last_row + columns_ + 1, out);
    T corner = T(1) - static_cast<T>(left);
    if (above_ != nullptr) corner -= above_[columns_ - 1];
    corner += origin_;
    out[turned_ ? 0 : columns_] = corner < cut_ ? T(0) : corner;
  }

  // The mass above the image: a row of values times a factor, and its part left of the image.
  void set_above(const double* value, double factor, double corner) {
    make_room(above_row_, static_cast<std::size_t>(columns_) + kPadding);
    for (int i = 0; i < columns_; ++i) above_row_[i] = static_cast<T>(value[i] * factor);
    above_ = above_row_.data();
    origin_ = static_cast<T>(at_left_ ? corner : 0.0);
  }

  // Phi at the far edges of pixels first..first + count - 1, and at the image's edge after them.
  static void marginals(std::vector<double>& out, int first, int count, double mean, double sigma, bool table) {
    make_room(out, static_cast<std::size_t>(count) + 1 + kPadding);
    const NormalTable& normal = NormalTable::get();
    if (table && sigma > 0.0)
      loops().normal_cdfs((first + 1) - kEdge, mean, sigma, count, normal.entries(), NormalTable::kSteps,
                          NormalTable::kReach, out.data());
    else
      for (int i = 0; i < count; ++i) out[i] = normal_cdf(standardised((first + i + 1) - kEdge, mean, sigma));
    const double edge = standardised(0.0 - kEdge, mean, sigma);
    out[count] = table ? normal.cdf(edge) : normal_cdf(edge);
  }

  void prepare_outer(bool table) {
    marginals(across_, in_turned_.x0, columns_, g_.x, sx_, table);
    marginals(down_, in_turned_.y0, rows_, g_.y, sy_, table);
    if (at_top_) set_above(across_.data(), down_[rows_], across_[columns_] * down_[rows_]);
    if (kept_)
      for (int j = 0; j < rows_; ++j) store_outer(j, place(j));
    T* last = beyond_.data();
    store_beyond(last, store_outer(rows_ - 1, last));
  }

  // Computes a row as a vector times a number; returns the mass left of the image.
  double store_outer(int index, T* out) const {
    const double down = down_[index], left = at_left_ ? across_[columns_] * down : 0.0;
    store(across_.data(), down, left, out);
    return left;
  }

  // Row or column -1 of the lattice, if needed, is the image's edge.
  void fill_lattice(double rho, CornerScratch<T>& scratch) {
    const int extra_x = at_left_ ? 1 : 0, extra_y = at_top_ ? 1 : 0;
    const double h = h_at(in_turned_.x0 - extra_x), k = k_at(in_turned_.y0 - extra_y);
    const int wide = columns_ + extra_x, high = rows_ + extra_y;
    // Fewer steps along the shorter side are faster, but need a transposition. If mass is removed on both sides, the
    // order of operations, and so the rounding, would change.
    if (high > 2 * wide && !(at_left_ && at_top_)) {
      LatticeRows lattice(scratch.table, scratch.value, k, 1.0 / sy_, high, h, 1.0 / sx_, wide, rho);
      fill_upright(lattice, scratch);
      return;
    }
    LatticeRows lattice(scratch.table, scratch.value, h, 1.0 / sx_, wide, k, 1.0 / sy_, high, rho);
    if (at_top_) {
      const double* row = lattice.next();
      set_above(row + extra_x, 1.0, row[0]);
    }
    double left = 0.0;
    for (int j = 0; j < rows_; ++j) {
      const double* row = lattice.next();
      left = at_left_ ? row[0] : 0.0;
      store(row + extra_x, 1.0, left, place(j));
    }
    store_beyond(place(rows_ - 1), left);
  }

  // The same from a lattice whose rows are the map's columns.
  void fill_upright(LatticeRows& lattice, CornerScratch<T>& scratch) {
    const std::size_t length = static_cast<std::size_t>(rows_);
    make_room(scratch.upright, static_cast<std::size_t>(columns_) * length);
    make_room(scratch.left, length + kPadding);
    make_room(above_row_, static_cast<std::size_t>(columns_) + kPadding);
    T* upright = scratch.upright.data();
    if (at_left_) {
      const double* column = lattice.next();
      for (int j = 0; j < rows_; ++j) scratch.left[j] = static_cast<T>(column[j]);
    }
    for (int i = 0; i < columns_; ++i) {
      const double* column = lattice.next();
      above_row_[i] = at_top_ ? static_cast<T>(column[0]) : T(0);
      T* out = upright + static_cast<std::size_t>(turned_ ? columns_ - 1 - i : i) * length;
      map_loops<T>().finish_row(column + (at_top_ ? 1 : 0), 1.0, above_row_[i],
                                at_left_ ? scratch.left.data() : nullptr, T(0), rows_, cut_, turned_, out);
    }
    // In both orientations the first row of the map in memory is the first value of each column.
    map_loops<T>().transpose(upright, columns_, rows_, turned_ ? first_ + 1 : first_, stride_);
    for (int j = 0; j < rows_; ++j) repeat_last_column(place(j));
    if (at_top_) above_ = above_row_.data();
    store_beyond(place(rows_ - 1), at_left_ ? static_cast<double>(scratch.left[length - 1]) : 0.0);
  }

  // Computes every pixel with a separate integral.
  void fill_exactly(double rho, bool exact, CornerScratch<T>& scratch) {
    auto& across = scratch.across;
    auto& marginal = scratch.marginal;
    auto& value = scratch.value;
    make_room(across, static_cast<std::size_t>(columns_) + 1 + kPadding);
    make_room(marginal, static_cast<std::size_t>(columns_) + 1 + kPadding);
    make_room(value, static_cast<std::size_t>(columns_) + 1 + kPadding);
    const NormalTable& table = NormalTable::get();
    const auto phi = [&](double x) { return exact ? normal_cdf(x) : table.cdf(x); };
    // The image's left edge is the last entry.
    for (int i = 0; i <= columns_; ++i) {
      across[i] = h_at(i < columns_ ? in_turned_.x0 + i : -1);
      marginal[i] = phi(across[i]);
    }
    const bool moderate = std::abs(rho) < 0.925;
    const PlackettNodes nodes(moderate ? rho : 0.0);
    const auto row_at = [&](double k) {
      if (moderate)
        loops().plackett_row(across.data(), marginal.data(), columns_ + 1, k, phi(k), nodes.sine, nodes.scale,
                             nodes.weight, nodes.size, value.data());
      else
        for (int i = 0; i <= columns_; ++i) value[i] = bivariate_cdf(across[i], k, rho);
      return value[columns_];
    };
    if (at_top_) {
      const double corner = row_at(k_at(-1));
      set_above(value.data(), 1.0, corner);
    }
    double left = 0.0;
    for (int j = 0; j < rows_; ++j) {
      const double mass = row_at(k_at(in_turned_.y0 + j));
      left = at_left_ ? mass : 0.0;
      store(value.data(), 1.0, left, place(j));
    }
    store_beyond(place(rows_ - 1), left);
  }

  Gaussian g_{};
  Region in_turned_, region_;
  bool turned_ = false, kept_ = false, at_left_ = false, at_top_ = false;
  int columns_ = 0, rows_ = 0;
  T* first_ = nullptr;  // the first row in memory
  std::size_t stride_ = 0;
  double sx_ = 0.0, sy_ = 0.0;
  T cut_ = T(0), origin_ = T(0);
  const T* above_ = nullptr;
  std::vector<T> values_, beyond_, above_row_;
  std::vector<double> across_, down_;
};

}  // namespace probox
