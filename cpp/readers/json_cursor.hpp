// Position of a JSON parser, and its failures.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "troubles.hpp"

namespace probox::json {

// A failure and its position. A fatal failure is a syntax error: the rest of the text is unusable. Any other failure is
// valid JSON with an unexpected value, which the caller may skip.
struct Failure {
  bool fatal;
  Trouble trouble;
  std::string entry;
  std::vector<std::string> values;  // the value found, and the expected one
};

// A position in the text, and the lists and objects around it.
class Cursor {
 public:
  struct Frame {
    bool is_list = false;
    std::int64_t index = -1;
    const char* key = nullptr;
    std::size_t key_size = 0;
  };

  Cursor(const char* data, std::size_t size) : begin_(data), at_(data), end_(data + size) {}

  // Fails for a value that is valid JSON but unexpected.
  template <class... Values>
  [[noreturn]] void fail(Trouble trouble, const Values&... values) const {
    throw Failure{false, trouble, path(), {in_text(values)...}};
  }

  // Fails with a syntax error.
  [[noreturn]] void syntax(const std::string& wanted) const {
    if (at_ >= end_) throw Failure{true, Trouble::cut_short, path(), {position(), wanted}};
    throw Failure{true, Trouble::not_json, path(), {position(), wanted, shown(at_)}};
  }

  // The path of the reader, e.g. `annotations[7].bbox[2]`.
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

 protected:
  static constexpr int max_depth = 128;

  void skip_space() {
    if (static_cast<unsigned char>(*at_) > ' ') return;
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r') ++at_;
  }

  bool word(const char* text) {
    const std::size_t size = std::strlen(text);
    if (static_cast<std::size_t>(end_ - at_) < size || std::memcmp(at_, text, size) != 0) return false;
    at_ += size;
    return true;
  }

  static bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

  bool starts_number() const { return is_digit(*at_) || *at_ == '-' || *at_ == 'N' || *at_ == 'I'; }

  static std::string shown(const char* at) {
    const auto c = static_cast<unsigned char>(*at);
    if (c > 0x20 && c < 0x7F) return std::string("'") + *at + "'";
    static constexpr const char* digits = "0123456789abcdef";
    return std::string("0x") + digits[c >> 4] + digits[c & 15];
  }

  static std::string in_text(const std::string& value) { return value; }
  template <class Number>
  static std::string in_text(Number value) {
    return std::to_string(value);
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
    return words::line + std::to_string(line) + words::column + std::to_string(at_ - line_start + 1);
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  int depth_ = 0;
  std::array<Frame, max_depth> frames_;
};

}  // namespace probox::json
