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

// Eight doubles that the compiler keeps in as many registers as the machine needs for them.
constexpr int kBlock = 8;
typedef double Block __attribute__((vector_size(8 * kBlock)));
typedef float FloatBlock __attribute__((vector_size(4 * kBlock)));
typedef std::int64_t IntBlock __attribute__((vector_size(8 * kBlock)));
static_assert(kPadding == kBlock, "callers pad their arrays by one block");

PROBOX_INLINE Block load(const double* p) {
  Block block;
  std::memcpy(&block, p, sizeof block);
  return block;
}

PROBOX_INLINE Block load(const float* p) {
  FloatBlock block;
  std::memcpy(&block, p, sizeof block);
  return __builtin_convertvector(block, Block);
}

PROBOX_INLINE void store(const Block& block, double* p) { std::memcpy(p, &block, sizeof block); }

PROBOX_INLINE double total(const Block& block) {
  typedef double Half __attribute__((vector_size(4 * kBlock)));
  typedef double Quarter __attribute__((vector_size(2 * kBlock)));
  Half halves[2];
  std::memcpy(halves, &block, sizeof block);
  const Half half = halves[0] + halves[1];
  Quarter quarters[2];
  std::memcpy(quarters, &half, sizeof half);
  const Quarter quarter = quarters[0] + quarters[1];
  return quarter[0] + quarter[1];
}

// exp(x) for x in [-700, 0], to a few units in the last place: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2].
PROBOX_INLINE Block exponential(const Block& x) {
  const double shifter = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to a whole number
  const Block shifted = x * 1.4426950408889634074 + shifter;
  const Block n = shifted - shifter;
  const Block r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  Block p = r * (1.0 / 479001600) + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  IntBlock bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 52) + 0x3ff0000000000000LL;
  Block scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

// Factors are at least epsilon >= 1e-15 and at most 1 + epsilon: so many of them cannot underflow.
constexpr int kFactorsPerLane = 18;
constexpr double kLn2 = 0.69314718055994530942;

// A product of many factors, lane by lane, with the binary exponents kept apart.
class Product {
 public:
  // Multiplies by p + e, or (1 - p) + e, for n values; up to a block past them is read.
  // (1 - p) + e and not (1 + e) - p: 1 - p is exact for p in [0.5, 1], while 1 + 1e-14 would be rounded.
  template <bool Complement, class T>
  PROBOX_INLINE void multiply(const T* p, int n, double epsilon) {
    int i = 0;
    for (; i + 2 * kBlock <= n; i += 2 * kBlock) {
      one_ *= factor<Complement>(load(p + i), epsilon);
      two_ *= factor<Complement>(load(p + i + kBlock), epsilon);
      count();
    }
    for (; i < n; i += kBlock) {
      const IntBlock lane = {0, 1, 2, 3, 4, 5, 6, 7};
      const Block f = factor<Complement>(load(p + i), epsilon);
      one_ *= lane < static_cast<std::int64_t>(n - i) ? f : Block{} + 1.0;
      count();
    }
  }

  PROBOX_INLINE double log() {
    normalise();
    const Block product = one_ * two_;  // mantissas below 4
    double all = 1.0;
    std::int64_t exponent = 0;
    for (int l = 0; l < kBlock; ++l) {
      all *= product[l];
      exponent += exponent_[l];
    }
    return static_cast<double>(exponent) * kLn2 + std::log(all);
  }

 private:
  template <bool Complement>
  static PROBOX_INLINE Block factor(const Block& p, double epsilon) {
    return (Complement ? 1.0 - p : p) + epsilon;
  }

  PROBOX_INLINE void count() {
    if (++used_ == kFactorsPerLane) normalise();
  }

  // Moves the lanes' binary exponents into `exponent_`, leaving mantissas in [1, 2).
  PROBOX_INLINE void normalise() {
    for (Block* lanes : {&one_, &two_}) {
      IntBlock bits;
      std::memcpy(&bits, lanes, sizeof bits);
      exponent_ += (bits >> 52) - 1023;
      bits = (bits & 0x000fffffffffffffLL) | 0x3ff0000000000000LL;
      std::memcpy(lanes, &bits, sizeof bits);
    }
    used_ = 0;
  }

  Block one_ = Block{} + 1.0, two_ = Block{} + 1.0;
  IntBlock exponent_ = {};
  int used_ = 0;
};

template <bool Complement, class T>
PROBOX_INLINE double block(const T* p, std::size_t stride, int rows, int columns, double epsilon) {
  Product product;
  for (int row = 0; row < rows; ++row) product.multiply<Complement>(p + row * stride, columns, epsilon);
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
    if (begin < end) product.multiply<Complement>(p + y * stride + begin, end - begin, epsilon);
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

template <bool Above, class T>
PROBOX_INLINE void finish(const double* value, T left, const T* above, T origin, int n, T cut, T* out) {
  for (int i = 0; i < n; ++i) {
    T v = static_cast<T>(value[i]) - left;
    if (Above) v = v - above[i] + origin;
    out[i] = v < cut ? T(0) : v;
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
    if (above)                                                                                                         \
      finish<true, T>(value, static_cast<T>(left), above, static_cast<T>(origin), n, static_cast<T>(cut), out);        \
    else                                                                                                               \
      finish<false, T>(value, static_cast<T>(left), above, T(0), n, static_cast<T>(cut), out);                         \
    if (reverse) std::reverse(out, out + n);                                                                           \
  }

PROBOX_DEFINE(float)
PROBOX_DEFINE(double)

PROBOX_CLONES void scale(const double* a, double factor, int n, double* out) {
  for (int i = 0; i < n; ++i) out[i] = factor * a[i];
}

PROBOX_CLONES void hermite_rows(const double* t, int n, int rows, double* table) {
  for (int k = 1; k + 1 < rows; ++k) {
    const double* before = table + static_cast<std::size_t>(k - 1) * n;
    const double* now = table + static_cast<std::size_t>(k) * n;
    double* next = table + static_cast<std::size_t>(k + 1) * n;
    const double a = -1.0 / (k + 1), b = -(k - 1.0) / k / (k + 1);
    for (int i = 0; i < n; ++i) next[i] = a * t[i] * now[i] + b * before[i];
  }
}

PROBOX_CLONES void gaussian_moments(const double* node, const double* weight, double middle, double half,
                                    double offset, double slope, int count, double* moments) {
  const Block aside = load(node) * half, at = aside + middle;
  const Block d = aside * slope + offset;
  Block power = load(weight) * (half * 0.39894228040143267794) * exponential(at * at * -0.5);
  for (int k = 0; k < count; ++k) {
    moments[k] = total(power);
    power *= d;
  }
}

PROBOX_CLONES void add_taps(double* sum, int n, int all, const double* table, int stride, const double* weight,
                            int taps) {
  int i = 0;
  for (; i < n; i += kBlock) {
    const double* source = table + i;
    Block even = load(sum + i), odd = {};
    int t = 0;
    for (; t + 2 <= taps; t += 2, source += 2 * static_cast<std::ptrdiff_t>(stride)) {
      even += load(source) * weight[t];
      odd += load(source + stride) * weight[t + 1];
    }
    if (t < taps) even += load(source) * weight[t];
    store(even + odd, sum + i);
  }
  for (; i < all; i += kBlock) store(load(sum + i) + weight[0], sum + i);
}

}  // namespace probox
