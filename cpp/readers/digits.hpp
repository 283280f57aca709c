// Decimal digits, eight characters at a time where the machine allows. The numbers of a file differ in length
// unpredictably, so that a branch per digit would be slow.
#pragma once

#include <cstdint>
#include <cstring>

namespace probox::json {

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

// Eight characters of a text, the first in the lowest byte, with digits replaced by their values.
class EightCharacters {
 public:
  explicit EightCharacters(const char* at) {
    std::memcpy(&values_, at, sizeof values_);
    values_ ^= 0x3030303030303030u;
  }

  // A flag in the byte of each character other than a digit. Flags after the first character above 0x7F may be wrong.
  std::uint64_t others() const { return ((values_ + 0x7676767676767676u) | values_) & 0x8080808080808080u; }

  // The number of characters before the first flag.
  static int before(std::uint64_t flags) { return flags == 0 ? 8 : __builtin_ctzll(flags) / 8; }

  // Removes the character at this place, 1 to 7.
  void remove(int place) {
    const std::uint64_t kept = (std::uint64_t{1} << (8 * place)) - 1;
    values_ = (values_ & kept) | ((values_ >> 8) & ~kept);
  }

  // The number that the first `count` characters make, 1 to 8, which are digits.
  std::uint64_t number(int count) const {
    std::uint64_t block = values_ << (64 - 8 * count);  // they become the last of eight
    block = block * 10 + (block >> 8);
    constexpr std::uint64_t bytes = 0x000000FF000000FFu;
    block = ((block & bytes) * 0x000F424000000064u + ((block >> 16) & bytes) * 0x0000271000000001u) >> 32;
    return static_cast<std::uint32_t>(block);
  }

 private:
  std::uint64_t values_;
};

// Moves over the digits at `at` and appends them to `number`, which holds up to 19 of them. The text ends at `end` with
// a character other than a digit.
inline void take_digits(const char*& at, const char* end, std::uint64_t& number) {
  constexpr std::uint64_t powers_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
  while (end - at >= 8) {
    const EightCharacters text(at);
    const int count = EightCharacters::before(text.others());
    if (count == 0) return;
    number = number * powers_of_ten[count] + text.number(count);
    at += count;
    if (count < 8) return;
  }
  while (static_cast<unsigned char>(*at - '0') < 10) number = number * 10 + static_cast<std::uint64_t>(*at++ - '0');
}

// Moves over a number of up to seven characters such as 166.19, without sign and exponent: `digits` without the point,
// of which `decimals` are after it. Otherwise nothing changes, and the result is false.
inline bool take_short_decimal(const char*& at, const char* end, std::uint64_t& digits, int& decimals) {
  if (end - at < 8) return false;
  EightCharacters text(at);
  const std::uint64_t others = text.others(), beyond_point = others & (others - 1);
  const int point = EightCharacters::before(others), stop = EightCharacters::before(beyond_point);
  const bool usual = point > 0 && stop < 8 && at[point] == '.' && stop - point > 1;
  if (!usual || (*at == '0' && point > 1) || (at[stop] | 0x20) == 'e') return false;
  text.remove(point);
  digits = text.number(stop - 1);
  decimals = stop - point - 1;
  at += stop;
  return true;
}

#else

inline void take_digits(const char*& at, const char*, std::uint64_t& number) {
  while (static_cast<unsigned char>(*at - '0') < 10) number = number * 10 + static_cast<std::uint64_t>(*at++ - '0');
}

inline bool take_short_decimal(const char*&, const char*, std::uint64_t&, int&) { return false; }

#endif

}  // namespace probox::json
