// JSON strings: UTF-8 validation and decoding of escapes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "json_cursor.hpp"

namespace probox::json {

class StringScanner : public Cursor {
 public:
  using Cursor::Cursor;

  // Fails because the next value has another type than the expected one.
  [[noreturn]] void mismatch(const std::string& wanted) {
    skip_space();
    const char first = *at_;
    std::string found;
    if (first == '{') {
      found = words::object;
    } else if (first == '[') {
      found = words::list;
    } else if (first == '"') {
      scan_string_or_fail_here();
      found = words::the_string + shown_;
    } else if (first == 't' || first == 'f' || first == 'n' || starts_number()) {
      const char* stop = at_;
      while (stop != end_ && stop - at_ < 40 && std::strchr(",]} \n\r\t", *stop) == nullptr) ++stop;
      found = std::string(at_, stop);
    } else {
      syntax(wanted);
    }
    fail(Trouble::wrong_type, wanted, found);
  }

 protected:
  // Reads the string at this position, quotes included. Without escapes the text is a view of the file.
  std::string_view scan_string() {
    const char* start = ++at_;
    for (;;) {
      // Eight characters at a time while none of them is special: a quote, a backslash, control or beyond ASCII.
      while (end_ - at_ >= 8) {
        std::uint64_t block;
        std::memcpy(&block, at_, 8);
        constexpr std::uint64_t ones = 0x0101010101010101u;
        constexpr std::uint64_t tops = 0x8080808080808080u;
        const std::uint64_t quote = block ^ (ones * '"');
        const std::uint64_t slash = block ^ (ones * '\\');
        const std::uint64_t special = (block | (block - ones * 0x20) | (quote - ones) | (slash - ones)) & tops;
        if (special != 0) {
          // The lowest flag is correct; higher ones may be caused by a borrow.
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

 private:
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  static int lowest_byte(std::uint64_t flags) { return __builtin_ctzll(flags) / 8; }
#else
  static int lowest_byte(std::uint64_t) { return 0; }
#endif

  // Moves over one character of a string other than a quote and a backslash.
  void step_character(unsigned char c) {
    if (c < 0x20) syntax(words::closing_quote);
    at_ += c < 0x80 ? 1 : utf8_size(c);
  }

  // The number of bytes of the UTF-8 character at this position; fails for invalid UTF-8.
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
    throw Failure{true, Trouble::not_utf8, path(), {position(), shown(at_)}};
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
    if (c != 'u') syntax(words::escape);
    std::uint32_t code = hex4();
    if (code >= 0xD800 && code <= 0xDFFF) {
      const bool low_follows = code < 0xDC00 && at_[0] == '\\' && at_[1] == 'u';
      if (!low_follows) syntax(words::surrogates);
      ++at_;
      const std::uint32_t low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) syntax(words::surrogates);
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
        syntax(words::four_hex_digits);
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

  // Reads a string only for a message; the position does not change.
  void scan_string_or_fail_here() {
    const char* start = at_;
    const std::string_view text = scan_string();
    shown_ = '"';
    std::size_t size = text.size() < 40 ? text.size() : 40;
    // Do not cut a multi-byte character.
    while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
    shown_.append(text.substr(0, size));
    shown_ += size < text.size() ? "...\"" : "\"";
    at_ = start;
  }

  std::string scratch_;
  std::string shown_;
};

}  // namespace probox::json
