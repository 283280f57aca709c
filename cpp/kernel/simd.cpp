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

// Eight doubles as two vectors of four: what every machine with AVX2 does well. (GCC turns vectors wider than the
// machine's own into loads and stores.)
constexpr int kBlock = 8;
typedef double Four __attribute__((vector_size(32)));
typedef float FourFloats __attribute__((vector_size(16)));
typedef std::int64_t FourInts __attribute__((vector_size(32)));
static_assert(kPadding == kBlock, "callers pad their arrays by one block");

struct Block {
  Four low, high;
};

PROBOX_INLINE Four four(double x) { return Four{x, x, x, x}; }
PROBOX_INLINE Block filled(double x) { return {four(x), four(x)}; }
PROBOX_INLINE Block operator+(const Block& a, const Block& b) { return {a.low + b.low, a.high + b.high}; }
PROBOX_INLINE Block operator-(const Block& a, const Block& b) { return {a.low - b.low, a.high - b.high}; }
PROBOX_INLINE Block operator*(const Block& a, const Block& b) { return {a.low * b.low, a.high * b.high}; }
PROBOX_INLINE Block operator+(const Block& a, double x) { return a + filled(x); }
PROBOX_INLINE Block operator-(const Block& a, double x) { return a - filled(x); }
PROBOX_INLINE Block operator*(const Block& a, double x) { return a * filled(x); }

PROBOX_INLINE Block load(const double* p) {
  Block block;
  std::memcpy(&block.low, p, sizeof block.low);
  std::memcpy(&block.high, p + 4, sizeof block.high);
  return block;
}

PROBOX_INLINE Block load(const float* p) {
  FourFloats low, high;
  std::memcpy(&low, p, sizeof low);
  std::memcpy(&high, p + 4, sizeof high);
  return {__builtin_convertvector(low, Four), __builtin_convertvector(high, Four)};
}

PROBOX_INLINE void store(const Block& block, double* p) {
  std::memcpy(p, &block.low, sizeof block.low);
  std::memcpy(p + 4, &block.high, sizeof block.high);
}

PROBOX_INLINE FourInts bits_of(const Four& x) {
  FourInts bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

PROBOX_INLINE Four from_bits(const FourInts& bits) {
  Four x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

PROBOX_INLINE double total(const Block& block) {
  const Four sum = block.low + block.high;
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
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
  const Block scale = {from_bits((bits_of(shifted.low) << 52) + 0x3ff0000000000000LL),
                       from_bits((bits_of(shifted.high) << 52) + 0x3ff0000000000000LL)};
  return p * scale;
}

// How many factors a lane takes before its exponent is put aside. They are at least epsilon and at most 1 + epsilon,
// so that many cannot underflow: from 1e-15 on 18 of them, for the smallest normal number one.
PROBOX_INLINE int factors_per_lane(double epsilon) {
  int exponent;
  std::frexp(epsilon, &exponent);  // epsilon >= 2^(exponent - 1)
  return std::clamp(1022 / std::max(1 - exponent, 1), 1, 18);
}

constexpr double kLn2 = 0.69314718055994530942;

// A product of many factors, lane by lane, with the binary exponents kept apart.
class Product {
 public:
  PROBOX_INLINE explicit Product(double epsilon) : epsilon_(epsilon), most_(factors_per_lane(epsilon)) {}

  // Multiplies by p + e, or (1 - p) + e, for n values; up to a block past them is read.
  // (1 - p) + e and not (1 + e) - p: 1 - p is exact for p in [0.5, 1], while 1 + 1e-14 would be rounded.
  template <bool Complement, class T>
  PROBOX_INLINE void multiply(const T* p, int n) {
    int i = 0;
    for (; i + 2 * kBlock <= n; i += 2 * kBlock) {
      one_ = one_ * factor<Complement>(load(p + i));
      two_ = two_ * factor<Complement>(load(p + i + kBlock));
      count();
    }
    for (; i < n; i += kBlock) {
      const FourInts lane = {0, 1, 2, 3};
      const std::int64_t left = n - i;
      const Block f = factor<Complement>(load(p + i));
      one_ = one_ * Block{lane < left ? f.low : four(1.0), lane + 4 < left ? f.high : four(1.0)};
      count();
    }
  }

  PROBOX_INLINE double log() {
    normalise();
    const Block products = one_ * two_;
    const Four product = products.low * products.high;  // of four mantissas below 2
    const std::int64_t exponent = (exponent_[0] + exponent_[1]) + (exponent_[2] + exponent_[3]);
    const double mantissa = (product[0] * product[1]) * (product[2] * product[3]);
    return static_cast<double>(exponent) * kLn2 + std::log(mantissa);
  }

 private:
  template <bool Complement>
  PROBOX_INLINE Block factor(const Block& p) const {
    return (Complement ? filled(1.0) - p : p) + epsilon_;
  }

  PROBOX_INLINE void count() {
    if (++used_ == most_) normalise();
  }

  // Moves the lanes' binary exponents into `exponent_`, leaving mantissas in [1, 2).
  PROBOX_INLINE void normalise() {
    for (Four* lanes : {&one_.low, &one_.high, &two_.low, &two_.high}) {
      const FourInts bits = bits_of(*lanes);
      exponent_ += (bits >> 52) - 1023;
      *lanes = from_bits((bits & 0x000fffffffffffffLL) | 0x3ff0000000000000LL);
    }
    used_ = 0;
  }

  double epsilon_;
  int most_;
  Block one_ = filled(1.0), two_ = filled(1.0);
  FourInts exponent_ = {};
  int used_ = 0;
};

template <bool Complement, class T>
PROBOX_INLINE double block(const T* p, std::size_t stride, int rows, int columns, double epsilon) {
  Product product(epsilon);
  for (int row = 0; row < rows; ++row) product.multiply<Complement>(p + row * stride, columns);
  return product.log();
}

template <bool Complement, class T>
PROBOX_INLINE double runs_in_block(const T* p, std::size_t stride, int x0, int y0, int rows, int columns,
                                   const std::int32_t* runs, std::int64_t count, double epsilon) {
  Product product(epsilon);
  for (std::int64_t i = 0; i < count; ++i) {
    const int y = runs[3 * i] - y0;
    if (y < 0) continue;
    if (y >= rows) break;  // runs are sorted by row
    const int begin = std::max(runs[3 * i + 1] - x0, 0), end = std::min(runs[3 * i + 2] - x0, columns);
    if (begin < end) product.multiply<Complement>(p + y * stride + begin, end - begin);
  }
  return product.log();
}

// log by the series of atanh on the mantissa in [sqrt(1/2), sqrt(2)): a few 1e-16, and vectorisable.
PROBOX_INLINE double fast_log(double x) {
  std::int64_t bits;
  std::memcpy(&bits, &x, 8);
  const std::int64_t shifted = bits - 0x3fe6a09e667f3bcdLL;
  const std::int64_t exponent = shifted >> 52;
  bits -= shifted & ~0x000fffffffffffffLL;
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

PROBOX_CLONES void normal_rows(const double* t, int n, const double* entries, int steps, int reach, double* cdf,
                               double* density) {
  const double per = 1.0 / steps, edge = reach - per;
  for (int i = 0; i < n; ++i) {
    // Beyond the table nothing changes any more: Phi is 0 or 1 and its density 0 to the last bit that matters.
    double x = t[i] < edge ? t[i] : edge;
    x = x > -edge ? x : -edge;
    const int row = static_cast<int>(x * steps + (steps * reach + 0.5));
    const double at = (row - steps * reach) * per, d = x - at, u = at * at;
    const double value = entries[2 * row], slope = entries[2 * row + 1];
    cdf[i] = value + slope * d * (1.0 + d * (-at / 2 + d * ((u - 1) / 6 - d * (u - 3) * at / 24)));
    density[i] = slope * (1.0 + d * (-at + d * ((u - 1) / 2 + d * (-at * (u - 3) / 6 + d * ((u * u - 6 * u + 3) / 24)))));
  }
}

PROBOX_CLONES void plackett_row(const double* h, const double* base, int n, double k, double factor,
                                const double* sine, const double* scale, const double* weight, int nodes,
                                double* out) {
  for (int i = 0; i < n; i += kBlock) {
    const Block x = load(h + i), product = x * k, half = (x * x + k * k) * 0.5;
    Block sum = load(base + i) * factor;
    for (int j = 0; j < nodes; ++j) {
      const Block power = (product * sine[j] - half) * scale[j];
      // Below -700 the exponential is nothing, and its bits would wrap around.
      const Block bounded = {power.low > -700.0 ? power.low : four(-700.0),
                             power.high > -700.0 ? power.high : four(-700.0)};
      sum = sum + exponential(bounded) * weight[j];
    }
    store(sum, out + i);
  }
}

PROBOX_CLONES void transpose(const double* in, int rows, int columns, double* out) {
  constexpr int kTile = 8;
  for (int r0 = 0; r0 < rows; r0 += kTile)
    for (int c = 0; c < columns; ++c) {
      const int end = std::min(r0 + kTile, rows);
      for (int r = r0; r < end; ++r)
        out[static_cast<std::size_t>(c) * rows + r] = in[static_cast<std::size_t>(r) * columns + c];
    }
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
    power = power * d;
  }
}

PROBOX_CLONES void add_taps(double* sum, int n, int all, const double* table, int stride, const double* weight,
                            int taps) {
  int i = 0;
  for (; i < n; i += kBlock) {
    const double* source = table + i;
    Block even = load(sum + i), odd = filled(0.0);
    int t = 0;
    for (; t + 2 <= taps; t += 2, source += 2 * static_cast<std::ptrdiff_t>(stride)) {
      even = even + load(source) * weight[t];
      odd = odd + load(source + stride) * weight[t + 1];
    }
    if (t < taps) even = even + load(source) * weight[t];
    store(even + odd, sum + i);
  }
  for (; i < all; i += kBlock) store(load(sum + i) + weight[0], sum + i);
}

}  // namespace probox
