// The bodies of the loops, included once by each loops_*.cpp after PROBOX_VECTOR_BYTES and PROBOX_INSTRUCTION_SET are set.
// Nothing of the standard library but <cmath> is used on data, and everything has internal linkage: what one file
// compiles for its instruction set must not be linked in the place of another's.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lanes.hpp"
#include "loops.hpp"

namespace {

using probox::kGroup;
using probox::kPadding;
static_assert(kPadding == kLanes, "callers pad their arrays by as much as is touched");
static_assert(kGroup == kLanes, "one lane for each integral of a group");

PROBOX_INLINE int least(int a, int b) { return a < b ? a : b; }
PROBOX_INLINE int most(int a, int b) { return a > b ? a : b; }

// exp(x) for x in [-700, 700], to a few units in the last place: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2].
PROBOX_INLINE Doubles exponential(const Doubles& x) {
  const double shifter = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to a whole number
  const Doubles shifted = x * 1.4426950408889634074 + shifter;
  const Doubles n = shifted - shifter;
  const Doubles r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  Doubles p = r * (1.0 / 479001600) + 1.0 / 39916800;
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
  return p * from_bits((bits_of(shifted) << 52) + 0x3ff0000000000000ULL);
}

constexpr double kLn2 = 0.69314718055994530942;

// log(x) of normal numbers by the series of atanh on the mantissa in [sqrt(1/2), sqrt(2)): to 1e-14.
PROBOX_INLINE Doubles logarithm(const Doubles& x) {
  // The exponent plus 1024, so that it stays positive and a shift of unsigned bits will do.
  const Bits shifted = (bits_of(x) - 0x3fe6a09e667f3bcdULL) + (std::uint64_t{1024} << 52);
  const Bits exponent = shifted >> 52;
  const Bits inside = (shifted & 0x000fffffffffffffULL) + 0x3fe6a09e667f3bcdULL;
  const Doubles m = from_bits(inside);
  // A whole number below 2^52 as a double: its bits below those of 2^52, less 2^52.
  const Doubles power = from_bits(exponent | 0x4330000000000000ULL) - (4503599627370496.0 + 1024.0);
  const Doubles s = (m - 1.0) / (m + 1.0), z = s * s;
  Doubles series = filled(1.0 / 17);
  series = series * z + 1.0 / 15;
  series = series * z + 1.0 / 13;
  series = series * z + 1.0 / 11;
  series = series * z + 1.0 / 9;
  series = series * z + 1.0 / 7;
  series = series * z + 1.0 / 5;
  series = series * z + 1.0 / 3;
  return power * kLn2 + s * 2.0 * (z * series + 1.0);
}

// How many factors a lane takes before its exponent is put aside. They are at least `smallest` and at most 2, so that
// many cannot underflow.
PROBOX_INLINE int factors_per_lane(double smallest) {
  std::uint64_t bits;
  std::memcpy(&bits, &smallest, sizeof bits);
  const int exponent = static_cast<int>(bits >> 52) - 1023;  // smallest >= 2^exponent
  const int count = 1022 / most(-exponent, 1);
  return count < 1 ? 1 : count > 18 ? 18 : count;
}

// A product of many factors p + e or (1 - p) + e, lane by lane, with the binary exponents kept apart.
// (1 - p) + e and not (1 + e) - p: 1 - p is exact for p in [0.5, 1], while 1 + 1e-14 would be rounded.
//
// Floats are multiplied in pairs before they are converted: that costs each pair 2^-24 at most, as much as one of them
// lost when it was rounded to a float. A pair must not underflow, which is why very small e are left to doubles.
template <class T>
class Product {
 public:
  PROBOX_INLINE explicit Product(double epsilon)
      : epsilon_(epsilon), most_(factors_per_lane(pairs(epsilon) ? epsilon * epsilon : epsilon)) {}

  // Whether factors of at least `epsilon` may be multiplied in pairs.
  static PROBOX_INLINE bool pairs(double epsilon) { return sizeof(T) == sizeof(float) && epsilon >= 1.2e-19; }

  // Multiplies by n factors; up to kLanes values past them are read.
  template <bool Complement>
  PROBOX_INLINE void multiply(const T* p, int n, bool in_pairs) {
    if (in_pairs)
      multiply_pairs<Complement>(p, n);
    else
      multiply_single<Complement>(p, n);
  }

  // Multiplies by n factors of either of two rows, those above one another as pairs.
  template <bool Complement>
  PROBOX_INLINE void multiply_two_rows(const T* p, const T* q, int n) {
    int i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      one_ = one_ * to_doubles(float_factors<Complement>(p + i) * float_factors<Complement>(q + i));
      two_ = two_ * to_doubles(float_factors<Complement>(p + i + kLanes) * float_factors<Complement>(q + i + kLanes));
      count();
    }
    if (i == n) return;
    if (i + kLanes < n) {
      one_ = one_ * to_doubles(float_factors<Complement>(p + i) * float_factors<Complement>(q + i));
      i += kLanes;
    }
    two_ = two_ * to_doubles(first_lanes(float_factors<Complement>(p + i) * float_factors<Complement>(q + i), n - i));
    count();
  }

  PROBOX_INLINE double log() {
    normalise(one_);
    normalise(two_);
    double mantissa[kLanes];
    store(one_ * two_, mantissa);  // of two mantissas below 2
    const double product = ((mantissa[0] * mantissa[1]) * (mantissa[2] * mantissa[3])) *
                           ((mantissa[4] * mantissa[5]) * (mantissa[6] * mantissa[7]));
    return static_cast<double>(total(exponent_) - 1023 * 2 * kLanes * rounds_) * kLn2 + std::log(product);
  }

 private:
  template <bool Complement>
  PROBOX_INLINE Doubles factors(const double* p) const {
    return (Complement ? filled(1.0) - load(p) : load(p)) + epsilon_;
  }

  template <bool Complement>
  PROBOX_INLINE Doubles factors(const float* p) const {
    const Doubles values = to_doubles(load(p));
    return (Complement ? filled(1.0) - values : values) + epsilon_;
  }

  template <bool Complement>
  PROBOX_INLINE Floats float_factors(const float* p) const {
    return (Complement ? filled(1.0f) - load(p) : load(p)) + static_cast<float>(epsilon_);
  }
  template <bool Complement>
  PROBOX_INLINE Floats float_factors(const double*) const {
    return filled(1.0f);  // doubles are not multiplied in pairs
  }

  template <bool Complement>
  PROBOX_INLINE void multiply_pairs(const T* p, int n) {
    int i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      one_ = one_ * to_doubles(float_factors<Complement>(p + i) * float_factors<Complement>(p + i + kLanes));
      two_ = two_ * to_doubles(float_factors<Complement>(p + i + 2 * kLanes) * float_factors<Complement>(p + i + 3 * kLanes));
      count();
    }
    if (i == n) return;
    if (i + 2 * kLanes <= n) {
      one_ = one_ * to_doubles(float_factors<Complement>(p + i) * float_factors<Complement>(p + i + kLanes));
      i += 2 * kLanes;
    }
    if (i + kLanes < n)
      two_ = two_ * to_doubles(float_factors<Complement>(p + i) *
                               first_lanes(float_factors<Complement>(p + i + kLanes), n - i - kLanes));
    else if (i < n)
      two_ = two_ * to_doubles(first_lanes(float_factors<Complement>(p + i), n - i));
    count();
  }

  template <bool Complement>
  PROBOX_INLINE void multiply_single(const T* p, int n) {
    int i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      one_ = one_ * factors<Complement>(p + i);
      two_ = two_ * factors<Complement>(p + i + kLanes);
      count();
    }
    for (; i < n; i += kLanes) {
      one_ = one_ * first_lanes(factors<Complement>(p + i), n - i);
      count();
    }
  }

  PROBOX_INLINE void count() {
    if (++used_ < most_) return;
    normalise(one_);
    normalise(two_);
    used_ = 0;
    ++rounds_;
  }

  // Moves the lanes' binary exponents into `exponent_`, leaving mantissas in [1, 2). What an exponent has too much,
  // 1023, is taken off at the end.
  PROBOX_INLINE void normalise(Doubles& lanes) {
    const Bits bits = bits_of(lanes);
    exponent_ = exponent_ + (bits >> 52);
    lanes = from_bits((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  }

  double epsilon_;
  int most_;
  Doubles one_ = filled(1.0), two_ = filled(1.0);
  Bits exponent_ = {};
  int used_ = 0;
  std::int64_t rounds_ = 1;  // the last one, in log(), is counted here
};

template <bool Complement, class T>
PROBOX_INLINE double product_of_blocks(const probox::PixelBlock<T>* blocks, int count, std::size_t stride,
                                       double epsilon, bool in_pairs) {
  Product<T> product(epsilon);
  for (int i = 0; i < count; ++i) {
    const T* p = blocks[i].first;
    const int rows = blocks[i].rows, columns = blocks[i].columns;
    int row = 0;
    if (in_pairs)
      for (; row + 2 <= rows; row += 2, p += 2 * stride)
        product.template multiply_two_rows<Complement>(p, p + stride, columns);
    for (; row < rows; ++row, p += stride) product.template multiply<Complement>(p, columns, in_pairs);
  }
  return product.log();
}

template <bool Complement, class T>
PROBOX_INLINE double runs_in_block(const T* p, std::size_t stride, int x0, int y0, int rows, int columns,
                                   const std::int32_t* runs, std::int64_t count, double epsilon, bool in_pairs) {
  Product<T> product(epsilon);
  for (std::int64_t i = 0; i < count; ++i) {
    const int y = runs[3 * i] - y0;
    if (y < 0) continue;
    if (y >= rows) break;  // runs are sorted by row
    const int begin = most(runs[3 * i + 1] - x0, 0), end = least(runs[3 * i + 2] - x0, columns);
    if (begin < end) product.template multiply<Complement>(p + y * stride + begin, end - begin, in_pairs);
  }
  return product.log();
}

template <class T>
double log_sum_blocks(const probox::PixelBlock<T>* blocks, int count, std::size_t stride, double epsilon,
                      bool complement) {
  // The choice stands outside, so that the loops are compiled for either.
  if (Product<T>::pairs(epsilon))
    return complement ? product_of_blocks<true>(blocks, count, stride, epsilon, true)
                      : product_of_blocks<false>(blocks, count, stride, epsilon, true);
  return complement ? product_of_blocks<true>(blocks, count, stride, epsilon, false)
                    : product_of_blocks<false>(blocks, count, stride, epsilon, false);
}

template <class T>
double log_sum_runs(const T* p, std::size_t stride, int x0, int y0, int rows, int columns, const std::int32_t* runs,
                    std::int64_t count, double epsilon, bool complement) {
  if (Product<T>::pairs(epsilon))
    return complement ? runs_in_block<true>(p, stride, x0, y0, rows, columns, runs, count, epsilon, true)
                      : runs_in_block<false>(p, stride, x0, y0, rows, columns, runs, count, epsilon, true);
  return complement ? runs_in_block<true>(p, stride, x0, y0, rows, columns, runs, count, epsilon, false)
                    : runs_in_block<false>(p, stride, x0, y0, rows, columns, runs, count, epsilon, false);
}

template <class T>
void logs(const T* p, std::size_t stride, int n, double epsilon, bool complement, double* out) {
  for (int i = 0; i < n; i += 2 * kLanes) {
    // Two at a time: one alone would wait for its own results most of the time.
    double value[2 * kLanes];
    const int here = least(2 * kLanes, n - i);
    for (int k = 0; k < here; ++k) value[k] = static_cast<double>(p[(i + k) * stride]);
    for (int k = here; k < 2 * kLanes; ++k) value[k] = 0.5;
    const Doubles x = load(value), y = load(value + kLanes);
    const Doubles first = logarithm((complement ? filled(1.0) - x : x) + epsilon);
    const Doubles second = logarithm((complement ? filled(1.0) - y : y) + epsilon);
    store(first, out + i);
    store(second, out + i + kLanes);
  }
}

// Calls eight(i) for blocks that cover 0..n - 1 and nothing else: the last one overlaps the one before, and what is
// shorter than a block goes through single(i).
template <class Eight, class Single>
PROBOX_INLINE void for_exactly(int n, Eight&& eight, Single&& single) {
  int i = 0;
  if (n < kLanes) {
    for (; i < n; ++i) single(i);
    return;
  }
  for (; i + kLanes <= n; i += kLanes) eight(i);
  if (i < n) eight(n - kLanes);
}

template <class T>
PROBOX_INLINE T in_range(T value, T cut) {
  value = value < T(1) ? value : T(1);
  return value < cut ? T(0) : value;
}

template <class T>
void multiply_row(const T* a, const T* b, int n, T cut, T* out) {
  const auto low = filled(cut), one = filled(T(1));
  for_exactly(
      n, [&](int i) { store(zero_below(smallest(load(a + i) * load(b + i), one), low), out + i); },
      [&](int i) { out[i] = in_range(a[i] * b[i], cut); });
}

template <class T>
void scale_row(const T* a, T factor, int n, T cut, T* out) {
  const auto low = filled(cut), one = filled(T(1)), f = filled(factor);
  for_exactly(
      n, [&](int i) { store(zero_below(smallest(load(a + i) * f, one), low), out + i); },
      [&](int i) { out[i] = in_range(a[i] * factor, cut); });
}

template <class T>
void finish_row(const double* value, double factor, T left, const T* above, T origin, int n, T cut, bool reverse,
                T* out) {
  const auto low = filled(cut), away = filled(left), back = filled(origin);
  const Doubles f = filled(factor);
  for_exactly(
      n,
      [&](int i) {
        auto v = LanesOf<T>::from(load(value + i) * f) - away;
        if (above) v = v - load(above + i) + back;
        v = zero_below(v, low);
        if (reverse)
          store(reversed(v), out + n - i - kLanes);
        else
          store(v, out + i);
      },
      [&](int i) {
        T v = static_cast<T>(value[i] * factor) - left;
        if (above) v = v - above[i] + origin;
        out[reverse ? n - 1 - i : i] = v < cut ? T(0) : v;
      });
}

template <class T>
void transpose(const T* in, int rows, int columns, T* out, std::size_t stride) {
  constexpr int kTile = 8;
  const std::size_t length = static_cast<std::size_t>(columns);
  int r0 = 0;
  for (; r0 + kTile <= rows; r0 += kTile)
    for (int c = 0; c < columns; ++c) {
      const T* from = in + r0 * length + c;
      T* to = out + c * stride + r0;
      PROBOX_UNROLL for (int r = 0; r < kTile; ++r) to[r] = from[r * length];
    }
  for (; r0 < rows; ++r0)
    for (int c = 0; c < columns; ++c) out[c * stride + r0] = in[r0 * length + c];
}

// Phi and its density at t, from the nearest entry of their table and a few terms of the Taylor series there.
struct NormalEntries {
  const double* entries;
  int steps, reach;

  struct Near {
    Doubles value, slope, at, d;
  };

  PROBOX_INLINE Near nearest(const Doubles& t) const {
    const double shifter = 6755399441055744.0;  // as in `exponential`
    const double per = 1.0 / steps, edge = reach - per;
    // Beyond the table nothing changes any more: Phi is 0 or 1 and its density 0 to the last bit that matters.
    const Doubles x = largest(smallest(t, filled(edge)), filled(-edge));
    const Doubles shifted = x * static_cast<double>(steps) + shifter;
    const Doubles at = (shifted - shifter) * per;
    const std::uint64_t offset = static_cast<std::uint64_t>(steps) * static_cast<std::uint64_t>(reach);
    // The lowest bits of `shifted` are the whole number; 2^32 more than enough keeps it positive.
    const Bits row = ((bits_of(shifted) & 0xffffffffULL) + offset) & 0xffffffffULL;
    return {gather(entries, row << 1), gather(entries + 1, row << 1), at, x - at};
  }

  PROBOX_INLINE Doubles cdf(const Near& n) const {
    const Doubles u = n.at * n.at;
    const Doubles inner = (u - 1.0) * (1.0 / 6) - n.d * (u - 3.0) * n.at * (1.0 / 24);
    return n.value + n.slope * n.d * (n.d * (n.at * -0.5 + n.d * inner) + 1.0);
  }

  PROBOX_INLINE Doubles density(const Near& n) const {
    const Doubles u = n.at * n.at;
    const Doubles fourth = (u * u - u * 6.0 + 3.0) * (1.0 / 24);
    const Doubles third = n.at * (u - 3.0) * (-1.0 / 6) + n.d * fourth;
    const Doubles second = (u - 1.0) * 0.5 + n.d * third;
    return n.slope * (n.d * (n.d * second - n.at) + 1.0);
  }
};

PROBOX_INLINE Doubles counting() {
  const double numbers[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7};
  return load(numbers);
}

void normal_cdfs(double first, double mean, double sigma, int n, const double* entries, int steps, int reach,
                 double* cdf) {
  const NormalEntries table{entries, steps, reach};
  for (int i = 0; i < n; i += kLanes)
    store(table.cdf(table.nearest((counting() + static_cast<double>(i) + first - mean) / filled(sigma))), cdf + i);
}

// The rows of a table at arguments t, and at those `apart` further on.
template <int Blocks>
PROBOX_INLINE void tabulate_blocks(const NormalEntries& normal, const Doubles& t, double apart, int rows,
                                   std::size_t points, const double* a, const double* b, double* out) {
  Doubles at[Blocks], before[Blocks], now[Blocks];
  PROBOX_UNROLL for (int block = 0; block < Blocks; ++block) {
    at[block] = t + block * apart;
    const NormalEntries::Near near = normal.nearest(at[block]);
    before[block] = normal.cdf(near);
    now[block] = normal.density(near);
    store(before[block], out + block * kLanes);
    store(now[block], out + points + block * kLanes);
  }
  for (int k = 1; k + 1 < rows; ++k)
    PROBOX_UNROLL for (int block = 0; block < Blocks; ++block) {
      const Doubles next = at[block] * a[k] * now[block] + before[block] * b[k];
      store(next, out + (k + 1) * points + block * kLanes);
      before[block] = now[block];
      now[block] = next;
    }
}

void tabulate(double low, double step, int phases, int length, const double* entries, int steps, int reach, int rows,
              double* table) {
  const NormalEntries normal{entries, steps, reach};
  const std::size_t points = static_cast<std::size_t>(phases) * static_cast<std::size_t>(length);
  // (k + 1) row(k + 1) = -t row(k) - (k - 1)/k row(k - 1), Hermite's recurrence for Phi^(k)(t) / k!.
  double a[probox::kPowers], b[probox::kPowers];
  for (int k = 1; k + 1 < rows; ++k) {
    a[k] = -1.0 / (k + 1);
    b[k] = -(k - 1.0) / k / (k + 1);
  }
  for (int phase = 0; phase < phases; ++phase) {
    double* out = table + static_cast<std::size_t>(phase) * static_cast<std::size_t>(length);
    const double first = phase * step + low, apart = phases * step;
    int i = 0;
    // Two blocks at a time: one alone would wait for its own results most of the time.
    for (; i + 2 * kLanes <= length; i += 2 * kLanes)
      tabulate_blocks<2>(normal, (counting() + static_cast<double>(i)) * apart + first, kLanes * apart, rows, points,
                         a, b, out + i);
    if (i < length)
      tabulate_blocks<1>(normal, (counting() + static_cast<double>(i)) * apart + first, 0.0, rows, points, a, b,
                         out + i);
  }
}

// With u the node's place in the first part and d the length of a part, the place in part g is u + g d, and
//   phi(u + g d) = phi(u) r^g exp(-(g d)^2 / 2),   r = exp(-u d):
// exponentials for all nodes at once and for all parts at once, and products for the rest.
void start_weights(const double* node, const double* weight, int nodes, double from, double half, double* now,
                   double* ratio) {
  const double apart = 2 * half;
  const Doubles u = load(node) * half + (from + half);
  const Doubles first = exponential(largest(u * u * -0.5, filled(-700.0))) *
                        (load(weight) * (half * 0.39894228040143267794));
  const Doubles r = exponential(smallest(largest(u * -apart, filled(-700.0)), filled(700.0)));
  const Doubles g = counting();
  double alone[kGroup], later[kGroup], by_part[kGroup * kLanes];
  store(exponential(largest(g * g * (-0.5 * apart * apart), filled(-700.0))), alone);
  Doubles power = first;
  for (int part = 0; part < kGroup; ++part) {
    store(power * alone[part], by_part + part * kLanes);
    power = power * r;
  }
  for (int j = 0; j < nodes; ++j)
    for (int part = 0; part < kGroup; ++part) now[j * kGroup + part] = by_part[part * kLanes + j];
  if (ratio == nullptr) return;
  // phi(v + 8 d) / phi(v) at v = u + g d is r^8 exp(-(8 g + 32) d^2).
  const Doubles r2 = r * r, r4 = r2 * r2;
  store(r4 * r4, later);
  const Doubles change = exponential(largest((g * 8.0 + 32.0) * (-apart * apart), filled(-700.0)));
  for (int j = 0; j < nodes; ++j) store(change * later[j], ratio + j * kGroup);
}

void next_moments(const double* node, int nodes, double half, const double* offset, double slope, double change,
                  int count, double* now, double* ratio, double* moments) {
  const Doubles from = load(offset);
  Doubles sum[probox::kPowers];
  for (int k = 0; k < count; ++k) sum[k] = filled(0.0);
  for (int j = 0; j < nodes; ++j) {
    const Doubles d = from + node[j] * half * slope;
    Doubles power = load(now + j * kGroup);
    if (ratio != nullptr) {
      const Doubles rate = load(ratio + j * kGroup);
      store(power * rate, now + j * kGroup);
      store(rate * change, ratio + j * kGroup);
    }
    for (int k = 0; k < count; ++k) {
      sum[k] = sum[k] + power;
      power = power * d;
    }
  }
  for (int k = 0; k < count; ++k) store(sum[k], moments + k * kGroup);
}

// A strip of `Strips` times eight columns: the sum over taps, even and odd ones apart.
template <int Strips>
PROBOX_INLINE void add_strip(double* sum, const double* source, int stride, const double* weight, int taps) {
  Doubles even[Strips], odd[Strips];
  PROBOX_UNROLL for (int s = 0; s < Strips; ++s) {
    even[s] = load(sum + s * kLanes);
    odd[s] = filled(0.0);
  }
  int t = 0;
  for (; t + 2 <= taps; t += 2, source += 2 * static_cast<std::ptrdiff_t>(stride))
    PROBOX_UNROLL for (int s = 0; s < Strips; ++s) {
      even[s] = even[s] + load(source + s * kLanes) * weight[t * kGroup];
      odd[s] = odd[s] + load(source + stride + s * kLanes) * weight[(t + 1) * kGroup];
    }
  if (t < taps)
    PROBOX_UNROLL for (int s = 0; s < Strips; ++s) even[s] = even[s] + load(source + s * kLanes) * weight[t * kGroup];
  PROBOX_UNROLL for (int s = 0; s < Strips; ++s) store(even[s] + odd[s], sum + s * kLanes);
}

void add_taps(double* sum, int n, int all, const double* table, int stride, const double* weight, int taps) {
  int i = 0;
  for (; i + kLanes < n; i += 2 * kLanes) add_strip<2>(sum + i, table + i, stride, weight, taps);
  if (i < n) {
    add_strip<1>(sum + i, table + i, stride, weight, taps);
    i += kLanes;
  }
  for (; i < all; i += kLanes) store(load(sum + i) + weight[0], sum + i);
}

void plackett_row(const double* h, const double* base, int n, double k, double factor, const double* sine,
                  const double* scale, const double* weight, int nodes, double* out) {
  for (int i = 0; i < n; i += kLanes) {
    const Doubles x = load(h + i), product = x * k, half = (x * x + k * k) * 0.5;
    Doubles sum = load(base + i) * factor;
    for (int j = 0; j < nodes; ++j) {
      // Below -700 the exponential is nothing, and its bits would wrap around.
      const Doubles power = largest((product * sine[j] - half) * scale[j], filled(-700.0));
      sum = sum + exponential(power) * weight[j];
    }
    store(sum, out + i);
  }
}

template <class T>
constexpr probox::MapLoops<T> map_loops_here() {
  return {log_sum_blocks<T>, log_sum_runs<T>, logs<T>, multiply_row<T>, scale_row<T>, finish_row<T>, transpose<T>};
}

}  // namespace
