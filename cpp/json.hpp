// A strict pull parser for JSON: the caller asks for what it expects, values go straight into columns, no tree is built.
//
// It knows where it is at any time, so a failure can name the line and the path ("annotations[7].bbox[2]"). Text must be
// UTF-8 and must be followed by a zero byte (as Python's bytes and std::string are), which ends every scan.
#pragma once

#include <array>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace probox::json {

// What went wrong, and where. A fatal failure is one of syntax: nothing after it can be trusted. Any other one concerns a
// value that is fine as JSON but not what the caller expects, and the caller may skip it and go on.
struct Failure {
  bool fatal = false;
  std::string kind;
  std::string entry;
  std::string text;
  std::string remedy;
};

class Reader {
 public:
  struct Frame {
    bool is_list = false;
    std::int64_t index = -1;
    const char* key = nullptr;
    std::size_t key_size = 0;
  };

  // A place to come back to, and what the innermost list or object was at.
  struct Mark {
    const char* at;
    int depth;
    Frame frame;
  };

  Reader(const char* data, std::size_t size) : begin_(data), at_(data), end_(data + size) {}

  // ---- structure

  void enter_object() { enter('{', "an object"); }
  void enter_array() { enter('[', "a list"); }

  // Move to the next key of the innermost object, or leave the object and return false.
  bool next_key(std::string_view& key) {
    Frame& frame = frames_[depth_ - 1];
    skip_space();
    if (*at_ == '}') {
      ++at_;
      --depth_;
      return false;
    }
    if (frame.index >= 0) comma('}');
    if (*at_ != '"') syntax("expected a key in double quotes");
    const char* start = at_ + 1;
    key = scan_string();
    frame.key = start;
    frame.key_size = static_cast<std::size_t>(at_ - 1 - start);
    ++frame.index;
    skip_space();
    if (*at_ != ':') syntax("expected ':' after the key");
    ++at_;
    return true;
  }

  // Move to the next value of the innermost list, or leave the list and return false.
  bool next_item() {
    Frame& frame = frames_[depth_ - 1];
    skip_space();
    if (*at_ == ']') {
      ++at_;
      --depth_;
      return false;
    }
    if (frame.index >= 0) comma(']');
    ++frame.index;
    return true;
  }

  // The number of the current value in the innermost list.
  std::int64_t index() const { return frames_[depth_ - 1].index; }

  // The first character of the value that comes next: one of { [ " - 0..9 t f n N I, or something that is no value.
  char peek() {
    skip_space();
    return *at_;
  }

  bool next_is_null() { return peek() == 'n'; }

  // Check that nothing but white space follows.
  void finish() {
    skip_space();
    if (at_ != end_) syntax("expected the end of the file");
  }

  Mark mark() const { return {at_, depth_, depth_ > 0 ? frames_[depth_ - 1] : Frame{}}; }
  void rewind(const Mark& mark) {
    at_ = mark.at;
    depth_ = mark.depth;
    if (depth_ > 0) frames_[depth_ - 1] = mark.frame;
  }

  // ---- values

  // A number. NaN, Infinity and -Infinity, which JSON does not have but Python writes, pass: that they are not finite is
  // for the caller to say. A number too large for a double fails.
  double number() {
    skip_space();
    // The common case in one go: up to 18 digits, maybe a point, no exponent. All else takes the careful way.
    const char* at = at_;
    const bool negative = *at == '-';
    if (negative) ++at;
    const char* whole = at;
    std::uint64_t mantissa = 0;
    while (is_digit(*at)) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*at++ - '0');
    const std::ptrdiff_t whole_digits = at - whole;
    std::ptrdiff_t decimals = 0;
    if (*at == '.') {
      const char* fraction = ++at;
      while (is_digit(*at)) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*at++ - '0');
      decimals = at - fraction;
      if (decimals == 0) return careful_number();
    }
    const bool plain = whole_digits > 0 && (*whole != '0' || whole_digits == 1) && whole_digits + decimals <= 18 &&
                       mantissa <= max_exact && (*at | 0x20) != 'e';
    if (!exact_doubles || !plain) return careful_number();
    at_ = at;
    const double value = static_cast<double>(mantissa) / powers_of_ten[static_cast<std::size_t>(decimals)];
    return negative ? -value : value;
  }

  // A whole number, also one written like 12.0.
  std::int64_t integer() {
    skip_space();
    const char* at = at_;
    std::uint64_t digits = 0;
    while (is_digit(*at)) digits = digits * 10 + static_cast<std::uint64_t>(*at++ - '0');
    const bool plain = at != at_ && (*at_ != '0' || at - at_ == 1) && at - at_ <= 18 && *at != '.' && (*at | 0x20) != 'e';
    if (plain) {
      at_ = at;
      return static_cast<std::int64_t>(digits);
    }
    const Token token = scan_number("a whole number");
    if (token.whole && token.digits <= 18) {
      const auto value = static_cast<std::int64_t>(token.mantissa);
      return token.negative ? -value : value;
    }
    const double value = token.exact ? token.value : slow_number(token);
    if (!(std::abs(value) <= 9007199254740992.0) || value != std::floor(value)) {
      mismatch_text("a whole number", std::string(token.begin, token.end));
    }
    return static_cast<std::int64_t>(value);
  }

  // The text of a string, valid until the next string is read.
  std::string_view string() {
    if (peek() != '"') mismatch("a string");
    return scan_string();
  }

  bool boolean() {
    skip_space();
    if (word("true")) return true;
    if (word("false")) return false;
    mismatch("true or false");
  }

  void null() {
    skip_space();
    if (!word("null")) mismatch("null");
  }

  // Pass over the next value, whatever it is.
  void skip() {
    switch (peek()) {
      case '{': {
        enter_object();
        std::string_view key;
        while (next_key(key)) skip();
        return;
      }
      case '[':
        enter_array();
        while (next_item()) skip();
        return;
      case '"':
        scan_string();
        return;
      case 't':
      case 'f':
        if (word("true") || word("false")) return;
        break;
      case 'n':
        if (word("null")) return;
        break;
      default:
        if (starts_number()) {
          scan_number("a value");
          return;
        }
    }
    syntax("expected a value");
  }

  // A list of exactly `count` values; `item(k)` reads the k-th.
  template <class Item>
  void fixed_list(int count, Item&& item) {
    if (peek() != '[') mismatch("a list of " + std::to_string(count));
    const Mark start = mark();
    enter_array();
    std::int64_t n = 0;
    while (next_item()) {
      if (n < count) {
        item(static_cast<int>(n));
      } else {
        skip();
      }
      ++n;
    }
    if (n != count) {
      rewind(start);
      fail("wrong length", "expected a list of " + std::to_string(count) + ", but got " + std::to_string(n));
    }
  }

  // A list of exactly `count` numbers.
  void numbers(double* out, int count) {
    fixed_list(count, [&](int k) { out[k] = number(); });
  }

  // ---- failures

  // A value is fine as JSON, but not as what it should mean.
  [[noreturn]] void fail(std::string kind, std::string text, std::string remedy = "") const {
    throw Failure{false, std::move(kind), path(), std::move(text), std::move(remedy)};
  }

  // The next value has another type than the one expected.
  [[noreturn]] void mismatch(const std::string& expected) {
    skip_space();
    const char first = *at_;
    std::string found;
    if (first == '{') {
      found = "an object";
    } else if (first == '[') {
      found = "a list";
    } else if (first == '"') {
      scan_string_or_fail_here();
      found = "the string " + shown_;
    } else if (first == 't' || first == 'f' || first == 'n' || starts_number()) {
      const char* stop = at_;
      while (stop != end_ && stop - at_ < 40 && std::strchr(",]} \n\r\t", *stop) == nullptr) ++stop;
      found = std::string(at_, stop);
    } else {
      syntax("expected " + expected);
    }
    mismatch_text(expected, found);
  }

  // The file is no JSON from here on.
  [[noreturn]] void syntax(const std::string& expected) const {
    if (at_ >= end_) {
      throw Failure{true, "not JSON", path(), position() + ": " + expected + ", but the file ends",
                    "the file is cut short: write or download it again"};
    }
    throw Failure{true, "not JSON", path(), position() + ": " + expected + ", but got " + shown(at_),
                  "check that the file is complete, valid JSON in UTF-8"};
  }

  // Where the reader is, e.g. `annotations[7].bbox[2]`.
  std::string path() const {
    std::string text;
    for (int level = 0; level < depth_; ++level) {
      const Frame& frame = frames_[level];
      if (frame.index < 0) continue;
      if (frame.is_list) {
        text += '[' + std::to_string(frame.index) + ']';
      } else {
        if (!text.empty()) text += '.';
        text.append(frame.key, frame.key_size < 60 ? frame.key_size : 60);
      }
    }
    return text;
  }

 private:
  static constexpr int max_depth = 128;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  static int lowest_byte(std::uint64_t flags) { return __builtin_ctzll(flags) / 8; }
#else
  static int lowest_byte(std::uint64_t) { return 0; }
#endif
  // Up to 2^53, times or over a power of ten up to 10^22, a double is exact in one operation: both operands are.
  static constexpr std::uint64_t max_exact = std::uint64_t{1} << 53;
  static constexpr std::array<double, 23> powers_of_ten{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD == 0
  static constexpr bool exact_doubles = true;
#else
  static constexpr bool exact_doubles = false;
#endif

  // A number as it stands in the file. `exact` says that `value` is its double already.
  struct Token {
    const char* begin;
    const char* end;
    std::uint64_t mantissa;
    std::int64_t exponent;  // of ten, to multiply the mantissa with
    std::int64_t digits;
    bool negative;
    bool whole;
    bool exact;
    double value;
  };

  void skip_space() {
    if (static_cast<unsigned char>(*at_) > ' ') return;
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r') ++at_;
  }

  void enter(char bracket, const char* expected) {
    if (peek() != bracket) mismatch(expected);
    if (depth_ == max_depth) {
      throw Failure{true, "nested too deeply", position(),
                    "values are nested more than " + std::to_string(max_depth) + " levels deep",
                    "check that this is a file of detections or ground truth"};
    }
    frames_[depth_++] = Frame{bracket == '[', -1, nullptr, 0};
    ++at_;
  }

  void comma(char closing) {
    if (*at_ != ',') syntax(std::string("expected ',' or '") + closing + "'");
    ++at_;
    skip_space();
  }

  bool word(const char* text) {
    const std::size_t size = std::strlen(text);
    if (static_cast<std::size_t>(end_ - at_) < size || std::memcmp(at_, text, size) != 0) return false;
    at_ += size;
    return true;
  }

  static bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

  bool starts_number() const { return is_digit(*at_) || *at_ == '-' || *at_ == 'N' || *at_ == 'I'; }

  double careful_number() {
    const Token token = scan_number("a number");
    return token.exact ? token.value : slow_number(token);
  }

  // Check the grammar of a number and gather its digits.
  Token scan_number(const char* expected) {
    skip_space();
    Token token{at_, at_, 0, 0, 0, false, true, false, 0.0};
    if (!starts_number()) mismatch(expected);
    if (*at_ == '-') {
      token.negative = true;
      ++at_;
    }
    if (!is_digit(*at_)) return literal(token);
    std::uint64_t mantissa = 0;
    const char* start = at_;
    if (*at_ == '0') {
      ++at_;
      if (is_digit(*at_)) syntax("expected no digit after a leading 0");
    } else {
      do mantissa = mantissa * 10 + static_cast<std::uint64_t>(*at_++ - '0');
      while (is_digit(*at_));
    }
    token.digits = at_ - start;
    if (*at_ == '.') {
      token.whole = false;
      ++at_;
      if (!is_digit(*at_)) syntax("expected a digit after the decimal point");
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
      if (!is_digit(*at_)) syntax("expected a digit in the exponent");
      std::int64_t exponent = 0;
      do {
        if (exponent < 100000000) exponent = exponent * 10 + (*at_ - '0');
        ++at_;
      } while (is_digit(*at_));
      token.exponent += negative ? -exponent : exponent;
    }
    token.end = at_;
    token.mantissa = mantissa;
    if (exact_doubles && token.digits <= 19 && mantissa <= max_exact && std::abs(token.exponent) <= 22) {
      const double power = powers_of_ten[static_cast<std::size_t>(std::abs(token.exponent))];
      const double scaled = token.exponent < 0 ? static_cast<double>(mantissa) / power : static_cast<double>(mantissa) * power;
      token.value = token.negative ? -scaled : scaled;
      token.exact = true;
    }
    return token;
  }

  Token literal(Token token) {
    token.whole = false;
    token.exact = true;
    if (word("NaN")) {
      token.value = std::numeric_limits<double>::quiet_NaN();
    } else if (word("Infinity")) {
      token.value = token.negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    } else {
      syntax("expected a number");
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
    if (std::isinf(value)) {
      const auto size = static_cast<std::size_t>(token.end - token.begin);
      const std::string text = size <= 40 ? std::string(token.begin, size)
                                          : std::string(token.begin, 37) + "... (" + std::to_string(size) + " characters)";
      fail("number too large", "expected a number below 1.8e308, but got " + text, "leave out values that diverged");
    }
    return value;
  }

  // Whether a number that no double can hold is below 1 (and so stands for 0) or above.
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

  // Read the string that starts here, quotes included. Without escapes the text is a view of the file.
  std::string_view scan_string() {
    const char* start = ++at_;
    for (;;) {
      // Eight characters at a time as long as none of them is special: a quote, a backslash, control or beyond ASCII.
      while (end_ - at_ >= 8) {
        std::uint64_t block;
        std::memcpy(&block, at_, 8);
        constexpr std::uint64_t ones = 0x0101010101010101u;
        constexpr std::uint64_t tops = 0x8080808080808080u;
        const std::uint64_t quote = block ^ (ones * '"');
        const std::uint64_t slash = block ^ (ones * '\\');
        const std::uint64_t special = (block | (block - ones * 0x20) | (quote - ones) | (slash - ones)) & tops;
        if (special != 0) {
          // The lowest flag is right; higher ones may come from a borrow.
          at_ += lowest_byte(special);
          break;
        }
        at_ += 8;
      }
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') {
        const std::string_view text(start, static_cast<std::size_t>(at_ - start));
        ++at_;
        return text;
      }
      if (c == '\\') return scan_escaped(start);
      step_character(c);
    }
  }

  // Move over one character of a string that is neither a quote nor a backslash.
  void step_character(unsigned char c) {
    if (c < 0x20) syntax("expected a closing quote");
    at_ += c < 0x80 ? 1 : utf8_size(c);
  }

  // The number of bytes of the UTF-8 character that starts here; anything but well-formed UTF-8 fails.
  int utf8_size(unsigned char first) {
    const auto byte = [this](int k) { return at_ + k < end_ ? static_cast<unsigned char>(at_[k]) : 0u; };
    const auto follows = [&](int k) { return (byte(k) & 0xC0u) == 0x80u; };
    if (first >= 0xC2 && first <= 0xDF && follows(1)) return 2;
    if (first >= 0xE0 && first <= 0xEF && follows(1) && follows(2)) {
      const bool overlong = first == 0xE0 && byte(1) < 0xA0;
      const bool surrogate = first == 0xED && byte(1) > 0x9F;
      if (!overlong && !surrogate) return 3;
    }
    if (first >= 0xF0 && first <= 0xF4 && follows(1) && follows(2) && follows(3)) {
      const bool overlong = first == 0xF0 && byte(1) < 0x90;
      const bool beyond = first == 0xF4 && byte(1) > 0x8F;
      if (!overlong && !beyond) return 4;
    }
    throw Failure{true, "not UTF-8", path(), position() + ": expected UTF-8 text, but got byte " + shown(at_),
                  "save the file as UTF-8"};
  }

  std::string_view scan_escaped(const char* start) {
    scratch_.assign(start, at_);
    for (;;) {
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') {
        ++at_;
        return scratch_;
      }
      if (c == '\\') {
        ++at_;
        append_escape();
      } else {
        const char* from = at_;
        step_character(c);
        scratch_.append(from, at_);
      }
    }
  }

  void append_escape() {
    const char c = *at_;
    const char* found = c == '\0' ? nullptr : std::strchr("\"\\/bfnrt", c);
    if (found != nullptr) {
      scratch_ += "\"\\/\b\f\n\r\t"[found - std::strchr("\"\\/bfnrt", '"')];
      ++at_;
      return;
    }
    if (c != 'u') syntax("expected an escape such as \\n or \\u00e9");
    std::uint32_t code = hex4();
    if (code >= 0xD800 && code <= 0xDFFF) {
      const bool low_follows = code < 0xDC00 && at_[0] == '\\' && at_[1] == 'u';
      if (!low_follows) syntax("expected a pair of surrogates");
      ++at_;
      const std::uint32_t low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) syntax("expected a pair of surrogates");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(code);
  }

  std::uint32_t hex4() {
    ++at_;
    std::uint32_t code = 0;
    for (int k = 0; k < 4; ++k, ++at_) {
      const char c = *at_;
      std::uint32_t digit = 0;
      if (is_digit(c)) {
        digit = static_cast<std::uint32_t>(c - '0');
      } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
        digit = static_cast<std::uint32_t>((c | 0x20) - 'a') + 10;
      } else {
        syntax("expected four hexadecimal digits");
      }
      code = code * 16 + digit;
    }
    return code;
  }

  void append_utf8(std::uint32_t code) {
    const auto put = [this](std::uint32_t byte) { scratch_ += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | (code >> 6));
      put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      put(0xE0 | (code >> 12));
      put(0x80 | ((code >> 6) & 0x3F));
      put(0x80 | (code & 0x3F));
    } else {
      put(0xF0 | (code >> 18));
      put(0x80 | ((code >> 12) & 0x3F));
      put(0x80 | ((code >> 6) & 0x3F));
      put(0x80 | (code & 0x3F));
    }
  }

  [[noreturn]] void mismatch_text(const std::string& expected, const std::string& found) const {
    fail("wrong type", "expected " + expected + ", but got " + found);
  }

  // Read a string only to show it in a message; the reader stays where it is.
  void scan_string_or_fail_here() {
    const char* start = at_;
    const std::string_view text = scan_string();
    shown_ = '"';
    std::size_t size = text.size() < 40 ? text.size() : 40;
    // Never cut a character of several bytes in the middle.
    while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
    shown_.append(text.data(), size);
    shown_ += size < text.size() ? "...\"" : "\"";
    at_ = start;
  }

  static std::string shown(const char* at) {
    const auto c = static_cast<unsigned char>(*at);
    if (c > 0x20 && c < 0x7F) return std::string("'") + *at + "'";
    static constexpr const char* digits = "0123456789abcdef";
    return std::string("0x") + digits[c >> 4] + digits[c & 15];
  }

  std::string position() const {
    std::int64_t line = 1;
    const char* line_start = begin_;
    for (const char* c = begin_; c < at_; ++c) {
      if (*c == '\n') {
        ++line;
        line_start = c + 1;
      }
    }
    return "line " + std::to_string(line) + ", column " + std::to_string(at_ - line_start + 1);
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  int depth_ = 0;
  std::array<Frame, max_depth> frames_;
  std::string scratch_;
  std::string shown_;
};

}  // namespace probox::json
