// Sums of logarithms by products. Part of loops.inl.

namespace {

// Number of factors that a lane multiplies before its exponent is removed. Factors are at least `smallest` and at most
// 2, so this many cannot underflow.
PROBOX_INLINE int factors_per_lane(double smallest) {
  std::uint64_t bits;
  std::memcpy(&bits, &smallest, sizeof bits);
  const int exponent = static_cast<int>(bits >> 52) - 1023;  // smallest >= 2^exponent
  const int count = 1022 / most(-exponent, 1);
  return count < 1 ? 1 : count > 18 ? 18 : count;
}

// A product of many factors p + e or (1 - p) + e, lane by lane, with separate binary exponents.
// (1 - p) + e and not (1 + e) - p: 1 - p is exact for p in [0.5, 1], while 1 + 1e-14 would be rounded.
//
// Floats are multiplied in pairs before conversion: the error per pair is at most 2^-24, that of rounding one of them
// to a float. A pair must not underflow, so very small e are computed in doubles.
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

  // Multiplies by n factors of each of two rows, paired vertically.
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
    store(one_ * two_, mantissa);  // the product of two mantissas is below 4
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
      two_ = two_ *
             to_doubles(float_factors<Complement>(p + i + 2 * kLanes) * float_factors<Complement>(p + i + 3 * kLanes));
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

  // Moves the lanes' binary exponents into `exponent_`, leaving mantissas in [1, 2). The bias of 1023 per exponent is
  // subtracted at the end.
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
  std::int64_t rounds_ = 1;  // includes the final one in log()
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
  // The condition is outside, so that the loops are compiled for each case.
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
    // Two at a time, which hides the latency of dependent operations.
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

}  // namespace
