#include "simd.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

// One source, several vector widths; the loader picks what the machine has. Elsewhere: the compiler's default.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define PROBOX_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PROBOX_CLONES
#endif
#if defined(__GNUC__)
#define PROBOX_INLINE inline __attribute__((always_inline))
#else
#define PROBOX_INLINE inline
#endif

namespace probox {
namespace {

constexpr int kLanes = 16;
// Factors are at least epsilon >= 1e-15 and at most 1 + epsilon: so many of them cannot underflow.
constexpr int kFactorsPerLane = 16;
constexpr double kLn2 = 0.69314718055994530942;

// A product of many factors, in lanes that the compiler can keep in vector registers.
struct Product {
  double lane[kLanes];
  std::int64_t exponent = 0;
  int used = 0;

  PROBOX_INLINE Product() {
    for (int l = 0; l < kLanes; ++l) lane[l] = 1.0;
  }

  // Moves the lanes' binary exponents into `exponent`, leaving mantissas in [1, 2).
  PROBOX_INLINE void normalise() {
    std::int64_t sum = 0;
    for (int l = 0; l < kLanes; ++l) {
      std::int64_t bits;
      std::memcpy(&bits, &lane[l], 8);
      sum += (bits >> 52) - 1023;
      bits = (bits & 0x000fffffffffffffLL) | 0x3ff0000000000000LL;
      std::memcpy(&lane[l], &bits, 8);
    }
    exponent += sum;
    used = 0;
  }

  PROBOX_INLINE double log() {
    normalise();
    double product = 1.0;  // of 16 mantissas below 2
    for (int l = 0; l < kLanes; ++l) product *= lane[l];
    return static_cast<double>(exponent) * kLn2 + std::log(product);
  }
};

// (1 - p) + e and not (1 + e) - p: 1 - p is exact for p in [0.5, 1], while 1 + 1e-14 would be rounded.
template <bool Complement, class T>
PROBOX_INLINE void multiply_all(Product& product, const T* p, int n, double epsilon) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const double x = static_cast<double>(p[i + l]);
      product.lane[l] *= (Complement ? 1.0 - x : x) + epsilon;
    }
    if (++product.used == kFactorsPerLane) product.normalise();
  }
  if (i < n) {
    for (int l = 0; l < n - i; ++l) {
      const double x = static_cast<double>(p[i + l]);
      product.lane[l] *= (Complement ? 1.0 - x : x) + epsilon;
    }
    if (++product.used == kFactorsPerLane) product.normalise();
  }
}

template <bool Complement, class T>
PROBOX_INLINE double block(const T* p, std::size_t stride, int rows, int columns, double epsilon) {
  Product product;
  for (int row = 0; row < rows; ++row) multiply_all<Complement>(product, p + row * stride, columns, epsilon);
  return product.log();
}

template <bool Complement, class T>
PROBOX_INLINE double runs_in_block(const T* p, std::size_t stride, int x0, int y0, int rows, int columns,
                                   const std::int32_t* runs, std::int64_t count, double epsilon) {
  Product product;
  for (std::int64_t i = 0; i < count; ++i) {
    const int y = runs[3 * i] - y0;
    if (y < 0) continue;
    if (y >= rows) break;  // runs are sorted by row
    const int begin = std::max(runs[3 * i + 1] - x0, 0), end = std::min(runs[3 * i + 2] - x0, columns);
    if (begin < end) multiply_all<Complement>(product, p + y * stride + begin, end - begin, epsilon);
  }
  return product.log();
}

// log by the series of atanh on the mantissa in [sqrt(1/2), sqrt(2)): a few 1e-16, and vectorisable.
PROBOX_INLINE double fast_log(double x) {
  std::int64_t bits;
  std::memcpy(&bits, &x, 8);
  const std::int64_t shifted = bits - 0x3fe6a09e667f3bcdLL;
  const std::int64_t exponent = shifted >> 52;
  bits -= exponent << 52;
  double m;
  std::memcpy(&m, &bits, 8);
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double series = 1.0 / 21;
  series = series * z + 1.0 / 19;
  series = series * z + 1.0 / 17;
  series = series * z + 1.0 / 15;
  series = series * z + 1.0 / 13;
  series = series * z + 1.0 / 11;
  series = series * z + 1.0 / 9;
  series = series * z + 1.0 / 7;
  series = series * z + 1.0 / 5;
  series = series * z + 1.0 / 3;
  return static_cast<double>(exponent) * kLn2 + 2.0 * s * (1.0 + z * series);
}

template <class T>
PROBOX_INLINE void logs_of(const T* p, std::size_t stride, int n, double epsilon, bool complement, double* out) {
  if (complement)
    for (int i = 0; i < n; ++i) out[i] = fast_log((1.0 - static_cast<double>(p[i * stride])) + epsilon);
  else
    for (int i = 0; i < n; ++i) out[i] = fast_log(static_cast<double>(p[i * stride]) + epsilon);
}

template <class T>
PROBOX_INLINE T cut_to_range(T value, T cut) {
  value = value > T(1) ? T(1) : value;
  return value < cut ? T(0) : value;
}

template <class T>
PROBOX_INLINE void finish(const double* value, double left, const T* above, double origin, int n, T cut, bool reverse,
                          T* out) {
  const T l = static_cast<T>(left), o = static_cast<T>(origin);
  for (int i = 0; i < n; ++i) {
    T v = static_cast<T>(value[i]) - l;
    if (above) v -= above[i];
    v += o;
    out[reverse ? n - 1 - i : i] = v < cut ? T(0) : v;
  }
}

}  // namespace

#define PROBOX_DEFINE(T)                                                                                               \
  PROBOX_CLONES double log_sum_block(const T* p, std::size_t stride, int rows, int columns, double epsilon,            \
                                     bool complement) {                                                                \
    return complement ? block<true>(p, stride, rows, columns, epsilon)                                                 \
                      : block<false>(p, stride, rows, columns, epsilon);                                               \
  }                                                                                                                    \
  PROBOX_CLONES double log_sum_runs(const T* p, std::size_t stride, int x0, int y0, int rows, int columns,             \
                                    const std::int32_t* runs, std::int64_t count, double epsilon, bool complement) {   \
    return complement ? runs_in_block<true>(p, stride, x0, y0, rows, columns, runs, count, epsilon)                    \
                      : runs_in_block<false>(p, stride, x0, y0, rows, columns, runs, count, epsilon);                  \
  }                                                                                                                    \
  PROBOX_CLONES void logs(const T* p, std::size_t stride, int n, double epsilon, bool complement, double* out) {       \
    logs_of(p, stride, n, epsilon, complement, out);                                                                   \
  }                                                                                                                    \
  PROBOX_CLONES void multiply_row(const T* a, const T* b, int n, double cut, T* out) {                                 \
    const T low = static_cast<T>(cut);                                                                                 \
    for (int i = 0; i < n; ++i) out[i] = cut_to_range<T>(a[i] * b[i], low);                                            \
  }                                                                                                                    \
  PROBOX_CLONES void scale_row(const T* a, T factor, int n, double cut, T* out) {                                      \
    const T low = static_cast<T>(cut);                                                                                 \
    for (int i = 0; i < n; ++i) out[i] = cut_to_range<T>(a[i] * factor, low);                                          \
  }                                                                                                                    \
  PROBOX_CLONES void finish_row(const double* value, double left, const T* above, double origin, int n, double cut,    \
                                bool reverse, T* out) {                                                                \
    finish<T>(value, left, above, origin, n, static_cast<T>(cut), reverse, out);                                       \
  }

PROBOX_DEFINE(float)
PROBOX_DEFINE(double)

PROBOX_CLONES void add_taps(double* sum, int n, const double* table, const int* offset, const double* weight,
                            int taps) {
  for (int i = 0; i < n; i += kPadding) {
    double part[kPadding];
    for (int l = 0; l < kPadding; ++l) part[l] = sum[i + l];
    for (int t = 0; t < taps; ++t) {
      const double* source = table + offset[t] + i;
      const double w = weight[t];
      for (int l = 0; l < kPadding; ++l) part[l] += w * source[l];
    }
    for (int l = 0; l < kPadding; ++l) sum[i + l] = part[l];
  }
}

}  // namespace probox
