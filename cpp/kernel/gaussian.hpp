// Cumulative distributions of one and two Gaussian variables.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace probox {

constexpr double kPi = 3.14159265358979323846;

// Phi(x) = Pr(Z <= x), with full relative precision in the lower tail.
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }

inline double normal_pdf(double x) { return 0.39894228040143267794 * std::exp(-0.5 * x * x); }

// Nodes and weights of Gauss-Legendre quadrature on [-1, 1], by Newton's method on the Legendre polynomial.
// Padded with zeros to at least eight, so that loops over nodes can work in vectors.
struct Quadrature {
  int size;
  std::vector<double> node, weight;

  explicit Quadrature(int n) : size(n), node(std::max(n, 8), 0.0), weight(std::max(n, 8), 0.0) {
    for (int i = 0; i < n; ++i) {
      double x = std::cos(kPi * (i + 0.75) / (n + 0.5)), slope = 1.0;
      for (int iteration = 0; iteration < 100; ++iteration) {
        double before = 1.0, value = x;
        for (int k = 2; k <= n; ++k) {
          const double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
          before = value;
          value = next;
        }
        slope = n * (x * value - before) / (x * x - 1.0);
        const double step = value / slope;
        x -= step;
        if (std::abs(step) < 1e-16) break;
      }
      node[i] = x;
      weight[i] = 2.0 / ((1.0 - x * x) * slope * slope);
    }
  }
};

inline const Quadrature& quadrature(int n) {
  static const std::array<Quadrature, 9> small = {Quadrature(1), Quadrature(1), Quadrature(2),
                                                  Quadrature(3), Quadrature(4), Quadrature(5),
                                                  Quadrature(6), Quadrature(7), Quadrature(8)};
  static const Quadrature twelve(12), twenty(20);
  return n <= 8 ? small[n] : n <= 12 ? twelve : twenty;
}

// Phi and its density from a table of both every 1/128 and a few terms of the Taylor series:
// within 1e-13 of normal_cdf and normal_pdf, several times faster.
class NormalTable {
 public:
  static constexpr int kSteps = 128, kReach = 10;

  static const NormalTable& get() {
    static const NormalTable table;
    return table;
  }

  // Phi and its density at -kReach, -kReach + 1/kSteps, ..., interleaved, for vectorised loops.
  const double* entries() const { return entries_.front().data(); }

  double cdf(double x) const {
    if (!(x > -kReach)) return 0.0;
    if (x >= kReach) return 1.0;
    const int row = nearest(x);
    const double t = (row - kSteps * kReach) * (1.0 / kSteps), d = x - t;
    const auto& entry = entries_[row];
    return entry[0] + entry[1] * d * (1.0 + d * (-t / 2 + d * ((t * t - 1) / 6 - d * (t * t * t - 3 * t) / 24)));
  }

 private:
  // The row of the entry nearest to x; the offset by kReach makes truncation round.
  static int nearest(double x) { return static_cast<int>(x * kSteps + (kSteps * kReach + 0.5)); }

  NormalTable() : entries_(2 * kSteps * kReach + 1) {
    for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
      const double t = (i - kSteps * kReach) * (1.0 / kSteps);
      entries_[i] = {normal_cdf(t), normal_pdf(t)};
    }
  }
  std::vector<std::array<double, 2>> entries_;
};

// Pr(X > h, Y > k) for standard Gaussians of correlation r, to about 1e-15.
//
// Below |r| = 0.925: Plackett's identity in the form of Drezner and Wesolowsky (1990),
//   Phi(-h) Phi(-k) + 1/(2 pi) int_0^asin(r) exp(-(h^2 + k^2 - 2 h k sin t) / (2 cos^2 t)) dt;
// above it the integral is taken from |r| to 1 with its singular part done in closed form (Genz, 2004).
inline double upper_orthant(double h, double k, double r) {
  const double far = 1e8;  // effectively infinite: Phi is 0 or 1, and products below would overflow
  if (h >= far || k >= far) return 0.0;
  if (h <= -far) return normal_cdf(-k);
  if (k <= -far) return normal_cdf(-h);
  const double size = std::abs(r);
  const Quadrature& rule = quadrature(size < 0.3 ? 6 : size < 0.75 ? 12 : 20);
  const int n = rule.size;
  double hk = h * k;
  if (size < 0.925) {
    if (r == 0.0) return normal_cdf(-h) * normal_cdf(-k);
    const double half = (h * h + k * k) / 2, angle = std::asin(r);
    double sum = 0.0;
    for (int i = 0; i < n; ++i) {
      const double s = std::sin(angle * (1.0 + rule.node[i]) / 2);
      sum += rule.weight[i] * std::exp((s * hk - half) / (1.0 - s * s));
    }
    return sum * angle / (4 * kPi) + normal_cdf(-h) * normal_cdf(-k);
  }
  if (r < 0) {
    k = -k;
    hk = -hk;
  }
  double result = 0.0;
  if (size < 1.0) {
    const double gap = (1.0 - size) * (1.0 + size), apart = (h - k) * (h - k);
    const double c = (4.0 - hk) / 8, d = (12.0 - hk) / 16;
    double a = std::sqrt(gap);
    const double lead = -(apart / gap + hk) / 2;
    if (lead > -100)
      result = a * std::exp(lead) * (1.0 - c * (apart - gap) * (1.0 - d * apart / 5) / 3 + c * d * gap * gap / 5);
    if (hk > -100) {
      const double b = std::sqrt(apart);
      result -= std::exp(-hk / 2) * std::sqrt(2 * kPi) * normal_cdf(-b / a) * b *
                (1.0 - c * apart * (1.0 - d * apart / 5) / 3);
    }
    a /= 2;
    for (int i = 0; i < n; ++i) {
      const double root = a * (1.0 + rule.node[i]), x = root * root, rs = std::sqrt(1.0 - x);
      const double power = -(apart / x + hk) / 2;
      if (power > -100)
        result += a * rule.weight[i] * std::exp(power) *
                  (std::exp(-hk * x / (2 * (1 + rs) * (1 + rs))) / rs - (1.0 + c * x * (1.0 + d * x)));
    }
    result = -result / (2 * kPi);
  }
  if (r > 0) return std::max(0.0, result + normal_cdf(-std::max(h, k)));
  // The sign of k is reversed: Pr(X > h, Y > -k) with Y close to -X.
  result = -result;
  if (k > h) result += h < 0 ? normal_cdf(k) - normal_cdf(h) : normal_cdf(-h) - normal_cdf(-k);
  return std::max(0.0, result);
}

// The integrand of Plackett's identity at the nodes of its quadrature, for one correlation below 0.925 in size:
//   Pr(X <= h, Y <= k) = Phi(h) Phi(k) + sum_i weight[i] exp((sine[i] h k - (h^2 + k^2) / 2) scale[i]).
struct PlackettNodes {
  int size = 0;
  double sine[20], scale[20], weight[20];

  explicit PlackettNodes(double r) {
    const Quadrature& rule = quadrature(std::abs(r) < 0.3 ? 6 : std::abs(r) < 0.75 ? 12 : 20);
    const double angle = std::asin(r);
    size = rule.size;
    for (int i = 0; i < size; ++i) {
      sine[i] = std::sin(angle * (1.0 + rule.node[i]) / 2);
      scale[i] = 1.0 / (1.0 - sine[i] * sine[i]);
      weight[i] = rule.weight[i] * angle / (4 * kPi);
    }
  }
};

// Pr(X <= h, Y <= k).
inline double bivariate_cdf(double h, double k, double r) { return upper_orthant(-h, -k, r); }

}  // namespace probox
