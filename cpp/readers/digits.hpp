// Runs of decimal digits, eight at a time where the machine allows.
#pragma once

#include <cstdint>
#include <cstring>

namespace probox::json {

// Moves over the digits at `at` and appends them to `number`, which holds up to 19 of them. The text ends at `end` with
// a character other than a digit.
inline void take_digits(const char*& at, const char* end, std::uint64_t& number) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  while (end - at >= 8) {
    std::uint64_t block;
    std::memcpy(&block, at, 8);
    block ^= 0x3030303030303030u;
    if ((((block + 0x7676767676767676u) | block) & 0x8080808080808080u) != 0) break;
    block = block * 10 + (block >> 8);
    constexpr std::uint64_t bytes = 0x000000FF000000FFu;
    block = ((block & bytes) * 0x000F424000000064u + ((block >> 16) & bytes) * 0x0000271000000001u) >> 32;
    number = number * 100000000 + static_cast<std::uint32_t>(block);
    at += 8;
  }
#else
  static_cast<void>(end);
#endif
  while (static_cast<unsigned char>(*at - '0') < 10) number = number * 10 + static_cast<std::uint64_t>(*at++ - '0');
}

}  // namespace probox::json
