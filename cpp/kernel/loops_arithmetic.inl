// Exponentials and logarithms of eight numbers. Part of loops.inl.

namespace {

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
  // The exponent plus 1024 is positive, so an unsigned shift can be used.
  const Bits shifted = (bits_of(x) - 0x3fe6a09e667f3bcdULL) + (std::uint64_t{1024} << 52);
  const Bits exponent = shifted >> 52;
  const Bits inside = (shifted & 0x000fffffffffffffULL) + 0x3fe6a09e667f3bcdULL;
  const Doubles m = from_bits(inside);
  // A whole number below 2^52 as a double: set its bits as the mantissa of 2^52, then subtract 2^52.
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

}  // namespace
