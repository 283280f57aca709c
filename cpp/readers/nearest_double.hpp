// The double nearest to a decimal number of up to 19 digits, by one multiplication.
//
// Method: D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51 (8), 2021. The
// digits are multiplied with the leading 128 bits of a power of five. The product determines the nearest double unless
// it is too close to the middle of two, which is detected. The table has the exponents of usual detection files only.
#pragma once

#include <cstdint>
#include <cstring>

namespace probox::json {

#if defined(__SIZEOF_INT128__)

namespace powers_of_five {

inline constexpr std::int64_t least = -45, greatest = 22;

// 5^q for q = least..greatest: the leading 128 bits, rounded down; for values below 1, rounded up.
inline constexpr std::uint64_t table[greatest - least + 1][2] = {
    {0xb6b00d69bb55c8d1u, 0x3d607b97c5fd0d22u}, {0xe45c10c42a2b3b05u, 0x8cb89a7db77c506au},
    {0x8eb98a7a9a5b04e3u, 0x77f3608e92adb242u}, {0xb267ed1940f1c61cu, 0x55f038b237591ed3u},
    {0xdf01e85f912e37a3u, 0x6b6c46dec52f6688u}, {0x8b61313bbabce2c6u, 0x2323ac4b3b3da015u},
    {0xae397d8aa96c1b77u, 0xabec975e0a0d081au}, {0xd9c7dced53c72255u, 0x96e7bd358c904a21u},
    {0x881cea14545c7575u, 0x7e50d64177da2e54u}, {0xaa242499697392d2u, 0xdde50bd1d5d0b9e9u},
    {0xd4ad2dbfc3d07787u, 0x955e4ec64b44e864u}, {0x84ec3c97da624ab4u, 0xbd5af13bef0b113eu},
    {0xa6274bbdd0fadd61u, 0xecb1ad8aeacdd58eu}, {0xcfb11ead453994bau, 0x67de18eda5814af2u},
    {0x81ceb32c4b43fcf4u, 0x80eacf948770ced7u}, {0xa2425ff75e14fc31u, 0xa1258379a94d028du},
    {0xcad2f7f5359a3b3eu, 0x096ee45813a04330u}, {0xfd87b5f28300ca0du, 0x8bca9d6e188853fcu},
    {0x9e74d1b791e07e48u, 0x775ea264cf55347eu}, {0xc612062576589ddau, 0x95364afe032a819eu},
    {0xf79687aed3eec551u, 0x3a83ddbd83f52205u}, {0x9abe14cd44753b52u, 0xc4926a9672793543u},
    {0xc16d9a0095928a27u, 0x75b7053c0f178294u}, {0xf1c90080baf72cb1u, 0x5324c68b12dd6339u},
    {0x971da05074da7beeu, 0xd3f6fc16ebca5e04u}, {0xbce5086492111aeau, 0x88f4bb1ca6bcf585u},
    {0xec1e4a7db69561a5u, 0x2b31e9e3d06c32e6u}, {0x9392ee8e921d5d07u, 0x3aff322e62439fd0u},
    {0xb877aa3236a4b449u, 0x09befeb9fad487c3u}, {0xe69594bec44de15bu, 0x4c2ebe687989a9b4u},
    {0x901d7cf73ab0acd9u, 0x0f9d37014bf60a11u}, {0xb424dc35095cd80fu, 0x538484c19ef38c95u},
    {0xe12e13424bb40e13u, 0x2865a5f206b06fbau}, {0x8cbccc096f5088cbu, 0xf93f87b7442e45d4u},
    {0xafebff0bcb24aafeu, 0xf78f69a51539d749u}, {0xdbe6fecebdedd5beu, 0xb573440e5a884d1cu},
    {0x89705f4136b4a597u, 0x31680a88f8953031u}, {0xabcc77118461cefcu, 0xfdc20d2b36ba7c3eu},
    {0xd6bf94d5e57a42bcu, 0x3d32907604691b4du}, {0x8637bd05af6c69b5u, 0xa63f9a49c2c1b110u},
    {0xa7c5ac471b478423u, 0x0fcf80dc33721d54u}, {0xd1b71758e219652bu, 0xd3c36113404ea4a9u},
    {0x83126e978d4fdf3bu, 0x645a1cac083126eau}, {0xa3d70a3d70a3d70au, 0x3d70a3d70a3d70a4u},
    {0xccccccccccccccccu, 0xcccccccccccccccdu}, {0x8000000000000000u, 0x0000000000000000u},
    {0xa000000000000000u, 0x0000000000000000u}, {0xc800000000000000u, 0x0000000000000000u},
    {0xfa00000000000000u, 0x0000000000000000u}, {0x9c40000000000000u, 0x0000000000000000u},
    {0xc350000000000000u, 0x0000000000000000u}, {0xf424000000000000u, 0x0000000000000000u},
    {0x9896800000000000u, 0x0000000000000000u}, {0xbebc200000000000u, 0x0000000000000000u},
    {0xee6b280000000000u, 0x0000000000000000u}, {0x9502f90000000000u, 0x0000000000000000u},
    {0xba43b74000000000u, 0x0000000000000000u}, {0xe8d4a51000000000u, 0x0000000000000000u},
    {0x9184e72a00000000u, 0x0000000000000000u}, {0xb5e620f480000000u, 0x0000000000000000u},
    {0xe35fa931a0000000u, 0x0000000000000000u}, {0x8e1bc9bf04000000u, 0x0000000000000000u},
    {0xb1a2bc2ec5000000u, 0x0000000000000000u}, {0xde0b6b3a76400000u, 0x0000000000000000u},
    {0x8ac7230489e80000u, 0x0000000000000000u}, {0xad78ebc5ac620000u, 0x0000000000000000u},
    {0xd8d726b7177a8000u, 0x0000000000000000u}, {0x878678326eac9000u, 0x0000000000000000u},
};

}  // namespace powers_of_five

// Finds the double nearest to digits * 10^exponent, for digits above 0, and returns true; false if undecided.
inline bool nearest_double(std::uint64_t digits, std::int64_t exponent, double& value) {
  __extension__ using Wide = unsigned __int128;
  if (exponent < powers_of_five::least || exponent > powers_of_five::greatest) return false;
  const std::uint64_t* power = powers_of_five::table[exponent - powers_of_five::least];
  const int leading_zeros = __builtin_clzll(digits);
  const std::uint64_t normal = digits << leading_zeros;
  const Wide first = static_cast<Wide>(normal) * power[0];
  auto high = static_cast<std::uint64_t>(first >> 64);
  auto low = static_cast<std::uint64_t>(first);
  constexpr std::uint64_t undecided = 0x1FF;  // bits below those of a double and three guard bits
  if ((high & undecided) == undecided) {
    const auto more = static_cast<std::uint64_t>((static_cast<Wide>(normal) * power[1]) >> 64);
    low += more;
    if (more > low) ++high;
    if (low == ~std::uint64_t{0}) return false;
  }
  const auto top = static_cast<int>(high >> 63);
  const int shift = top + 9;
  std::uint64_t mantissa = high >> shift;
  // The binary exponent: that of 10^exponent, floor(exponent * log2(10)), plus the shift.
  std::int64_t exponent_of_two = ((217706 * exponent) >> 16) + 63 + top - leading_zeros + 1023;
  if (exponent_of_two <= 0 || exponent_of_two >= 2046) return false;
  // Exactly in the middle of two doubles, possible with small powers only: round to even.
  const bool small_power = exponent >= -4 && exponent <= 23;
  if (low <= 1 && small_power && (mantissa & 3) == 1 && (mantissa << shift) == high) mantissa &= ~std::uint64_t{1};
  mantissa += mantissa & 1;
  mantissa >>= 1;
  if (mantissa >= std::uint64_t{1} << 53) {
    mantissa = std::uint64_t{1} << 52;
    ++exponent_of_two;
  }
  const std::uint64_t bits = (mantissa & ~(std::uint64_t{1} << 52)) | static_cast<std::uint64_t>(exponent_of_two) << 52;
  std::memcpy(&value, &bits, sizeof value);
  return true;
}

#else

inline bool nearest_double(std::uint64_t, std::int64_t, double&) { return false; }

#endif

}  // namespace probox::json
