// The map of one Gaussian corner: how likely it lies in the image, left of and above each pixel's far corner.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "corner_region.hpp"
#include "gaussian.hpp"
#include "lattice_rows.hpp"
#include "scratch.hpp"
#include "settings.hpp"
#include "simd.hpp"

namespace probox {

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

inline double standardised(double point, double mean, double sigma) {
  if (sigma > 0.0) return (point - mean) / sigma;
  return point >= mean ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

// Computes the corner's map in `region`. `g` is given in the turned image if `turned`.
template <class T>
void fill_corner_map(const Gaussian& g, const Region& region, bool turned, int width, int height, const Settings& s,
                     CornerScratch<T>& scratch, CornerMap<T>& map) {
  const int columns = region.x1 - region.x0 + 1, rows = region.y1 - region.y0 + 1;
  const bool at_left = region.x0 == 0, at_top = region.y0 == 0;
  const double sx = g.sigma_x(), sy = g.sigma_y();
  const double rho = sx > 0 && sy > 0 ? std::clamp(g.xy / (sx * sy), -1.0, 1.0) : 0.0;
  const auto h_at = [&](int x) { return standardised((x + 1) - kEdge, g.x, sx); };
  const auto k_at = [&](int y) { return standardised((y + 1) - kEdge, g.y, sy); };

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

  const bool lattice = s.region_of_interest && LatticeRows::suits(sx, sy, rho);
  double left = 0.0;
  if (lattice) {
    // Row or column -1, where it is wanted, is the image's edge.
    const int extra_x = at_left ? 1 : 0, extra_y = at_top ? 1 : 0;
    const int wide = columns + extra_x, high = rows + extra_y;
    const double* matrix = lattice_matrix(scratch, h_at(region.x0 - extra_x), 1.0 / sx, wide,
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
