// JSON numbers: grammar check and conversion to the nearest double.
#pragma once

#include <array>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "digits.hpp"
#include "json_string.hpp"
#include "nearest_double.hpp"

namespace probox::json {

class NumberScanner : public StringScanner {
 public:
  using StringScanner::StringScanner;

  // A number. NaN, Infinity and -Infinity, which are invalid JSON but written by Python, are accepted: the caller
  // checks for finite values. A number too large for a double fails.
  double number() {
    skip_space();
    const char* at = at_;
    const bool negative = *at == '-';
    if (negative) ++at;
    std::uint64_t mantissa = 0;
    if (int decimals; exact_doubles && take_short_decimal(at, end_, mantissa, decimals)) {
      at_ = at;
      const double value =
          static_cast<double>(static_cast<std::int64_t>(mantissa)) / powers_of_ten[static_cast<std::size_t>(decimals)];
      return negative ? -value : value;
    }
    // Other usual numbers in one pass: up to 19 digits, optionally a point and an exponent. The general case follows.
    const char* whole = at;
    take_digits(at, end_, mantissa);
    std::ptrdiff_t digits = at - whole;
    if (digits == 0 || (*whole == '0' && digits > 1)) return careful_number();
    if (*whole == '0') digits = 0;
    std::ptrdiff_t decimals = 0;
    if (*at == '.') {
      const char* fraction = ++at;
      take_digits(at, end_, mantissa);
      decimals = at - fraction;
      if (decimals == 0) return careful_number();
    }
    std::int64_t exponent = -decimals;
    if ((*at | 0x20) == 'e' && !add_exponent(at, exponent)) return careful_number();
    double value = 0;
    if (digits + decimals > 19 || !small_double(mantissa, exponent, value)) return careful_number();
    at_ = at;
    return negative ? -value : value;
  }

  // A whole number, also one written as 12.0.
  std::int64_t integer() {
    skip_space();
    const char* at = at_;
    std::uint64_t digits = 0;
    take_digits(at, end_, digits);
    const bool plain =
        at != at_ && (*at_ != '0' || at - at_ == 1) && at - at_ <= 18 && *at != '.' && (*at | 0x20) != 'e';
    if (plain) {
      at_ = at;
      return static_cast<std::int64_t>(digits);
    }
    const Token token = scan_number(words::whole_number);
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (token.whole && token.digits <= 19 && token.mantissa <= most) {  // 19 digits fit the mantissa
      const auto value = static_cast<std::int64_t>(token.mantissa);
      return token.negative ? -value : value;
    }
    const double value = token.exact ? token.value : slow_number(token);
    if (!(std::abs(value) <= 9007199254740992.0) || value != std::floor(value)) {
      fail(Trouble::wrong_type, std::string(token.whole ? words::small_whole_number : words::whole_number),
           shortened(token));
    }
    return static_cast<std::int64_t>(value);
  }

 protected:
  // A number as written in the file. `exact`: `value` is already its double.
  struct Token {
    const char* begin;
    const char* end;
    std::uint64_t mantissa;
    std::int64_t exponent;  // decimal exponent of the mantissa
    std::int64_t digits;
    bool negative;
    bool whole;
    bool exact;
    double value;
  };

  // Checks the grammar of a number and collects its digits.
  Token scan_number(const char* wanted) {
    skip_space();
    Token token{at_, at_, 0, 0, 0, false, true, false, 0.0};
    if (!starts_number()) mismatch(wanted);
    if (*at_ == '-') {
      token.negative = true;
      ++at_;
    }
    if (!is_digit(*at_)) return literal(token);
    std::uint64_t mantissa = 0;
    const char* start = at_;
    if (*at_ == '0') {
      ++at_;
      if (is_digit(*at_)) syntax(words::no_leading_zero);
    } else {
      do mantissa = mantissa * 10 + static_cast<std::uint64_t>(*at_++ - '0');
      while (is_digit(*at_));
    }
    token.digits = at_ - start;
    if (*at_ == '.') {
      token.whole = false;
      ++at_;
      if (!is_digit(*at_)) syntax(words::fraction);
      const char* fraction = at_;
      do mantissa = mantissa * 10 + static_cast<std::uint64_t>(*at_++ - '0');
      while (is_digit(*at_));
      token.digits += at_ - fraction;
      token.exponent = -(at_ - fraction);
    }
    if (*at_ == 'e' || *at_ == 'E') {
      token.whole = false;
      ++at_;
      const bool negative = *at_ == '-';
      if (*at_ == '-' || *at_ == '+') ++at_;
      if (!is_digit(*at_)) syntax(words::exponent);
      std::int64_t exponent = 0;
      do {
        if (exponent < 100000000) exponent = exponent * 10 + (*at_ - '0');
        ++at_;
      } while (is_digit(*at_));
      token.exponent += negative ? -exponent : exponent;
    }
    token.end = at_;
    token.mantissa = mantissa;
    double scaled = 0;
    if (token.digits <= 19 && small_double(mantissa, token.exponent, scaled)) {
      token.value = token.negative ? -scaled : scaled;
      token.exact = true;
    }
    return token;
  }

 private:
  // A mantissa up to 2^53, multiplied or divided by a power of ten up to 10^22, is rounded once: both operands are
  // exact.
  static constexpr std::uint64_t max_exact = std::uint64_t{1} << 53;
  static constexpr std::array<double, 23> powers_of_ten{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD == 0
  static constexpr bool exact_doubles = true;
#else
  static constexpr bool exact_doubles = false;
#endif

  // Adds the exponent at this position, if it has one to three digits.
  static bool add_exponent(const char*& at, std::int64_t& exponent) {
    const char sign = *++at;
    if (sign == '-' || sign == '+') ++at;
    const char* start = at;
    std::int64_t value = 0;
    while (is_digit(*at) && at - start < 3) value = value * 10 + (*at++ - '0');
    if (at == start || is_digit(*at)) return false;
    exponent += sign == '-' ? -value : value;
    return true;
  }

  // Finds the double nearest to mantissa * 10^exponent, if that is fast.
  static bool small_double(std::uint64_t mantissa, std::int64_t exponent, double& value) {
    if (exact_doubles && mantissa <= max_exact && exponent >= -22 && exponent <= 22) {
      const double power = powers_of_ten[static_cast<std::size_t>(std::abs(exponent))];
      value = exponent < 0 ? static_cast<double>(mantissa) / power : static_cast<double>(mantissa) * power;
      return true;
    }
    return mantissa > 0 && nearest_double(mantissa, exponent, value);
  }

  double careful_number() {
    const Token token = scan_number(words::number);
    return token.exact ? token.value : slow_number(token);
  }

  Token literal(Token token) {
    token.whole = false;
    token.exact = true;
    if (word("NaN")) {
      token.value = std::numeric_limits<double>::quiet_NaN();
    } else if (word("Infinity")) {
      token.value = token.negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    } else {
      syntax(words::number);
    }
    token.end = at_;
    return token;
  }

  double slow_number(const Token& token) {
    double value = 0.0;
#if defined(__cpp_lib_to_chars)
    const std::from_chars_result result = std::from_chars(token.begin, token.end, value);
    if (result.ec == std::errc::result_out_of_range) value = too_small(token) ? 0.0 : HUGE_VAL;
    if (result.ec == std::errc::result_out_of_range && token.negative) value = -value;
#else
    value = std::strtod(std::string(token.begin, token.end).c_str(), nullptr);
#endif
    if (std::isinf(value)) fail(Trouble::number_too_large, shortened(token));
    return value;
  }

  static std::string shortened(const Token& token) {
    const auto size = static_cast<std::size_t>(token.end - token.begin);
    if (size <= 40) return std::string(token.begin, size);
    return std::string(token.begin, 37) + "... (" + std::to_string(size) + words::characters + ")";
  }

  // Whether a number outside the range of doubles is below 1 (and rounds to 0) or above.
  static bool too_small(const Token& token) {
    const char* at = token.begin + (token.negative ? 1 : 0);
    std::int64_t before_point = 0;
    while (is_digit(*at) || *at == '.') {
      if (*at == '.') break;
      before_point += (*at != '0' || before_point > 0) ? 1 : 0;
      ++at;
    }
    std::int64_t fraction = 0;
    if (*at == '.') {
      for (++at; is_digit(*at); ++at) ++fraction;
    }
    return before_point + token.exponent + fraction <= 0;
  }
};

}  // namespace probox::json
