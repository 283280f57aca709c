// A strict pull parser for JSON: the caller requests the expected values, which are stored in columns; no tree is
// built.
//
// It tracks its position, so that failures report the line and the path ("annotations[7].bbox[2]"). Text must be UTF-8
// followed by a zero byte (as Python's bytes and std::string are), which ends every scan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "json_number.hpp"
#include "repeated_keys.hpp"

namespace probox::json {

class Reader : public NumberScanner {
 public:
  // A position to return to, with the state of the innermost list or object.
  struct Mark {
    const char* at;
    int depth;
    Frame frame;
  };

  using NumberScanner::NumberScanner;

  // ---- structure

  void enter_object() { enter('{', words::object); }
  void enter_array() { enter('[', words::list); }

  // Moves to the next key of the innermost object, or leaves the object and returns false.
  bool next_key(std::string_view& key) {
    Frame& frame = frames_[depth_ - 1];
    skip_space();
    if (*at_ == '}') {
      ++at_;
      --depth_;
      return false;
    }
    if (frame.index >= 0) comma('}');
    if (*at_ != '"') syntax(words::key);
    const char* start = at_ + 1;
    key = scan_string();
    frame.key = start;
    frame.key_size = static_cast<std::size_t>(at_ - 1 - start);
    ++frame.index;
    skip_space();
    if (*at_ != ':') syntax(words::colon);
    ++at_;
    return true;
  }

  // The same with the number of the key, or RepeatedKeys::unknown. Known text is compared instead of being scanned.
  bool next_key(RepeatedKeys& keys, int& number) {
    Frame& frame = frames_[depth_ - 1];
    const auto place = static_cast<std::size_t>(frame.index + 1);
    if (const RepeatedKeys::Step* step = keys.repeated(place, at_, end_)) {
      frame.key = at_ + step->key;
      frame.key_size = step->key_size;
      ++frame.index;
      at_ += step->size;
      number = step->number;
      return true;
    }
    const char* start = at_;
    std::string_view key;
    if (!next_key(key)) return false;
    skip_space();
    number = keys.number_of(key);
    keys.expect(place, {start, static_cast<std::size_t>(at_ - start), static_cast<std::size_t>(frame.key - start),
                        frame.key_size, number});
    return true;
  }

  // Moves to the next value of the innermost list, or leaves the list and returns false.
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

  // The index of the current value in the innermost list.
  std::int64_t index() const { return frames_[depth_ - 1].index; }

  // The first character of the next value: one of { [ " - 0..9 t f n N I, or another character if it is invalid.
  char peek() {
    skip_space();
    return *at_;
  }

  bool next_is_null() { return peek() == 'n'; }

  // Checks that only white space follows.
  void finish() {
    skip_space();
    if (at_ != end_) syntax(words::end_of_file);
  }

  // ---- positions

  const char* at() const { return at_; }
  const char* end() const { return end_; }

  // Moves to another position in the innermost list, after the value with this index.
  void move_to(const char* at, std::int64_t index) {
    at_ = at;
    frames_[depth_ - 1].index = index;
  }

  Mark mark() const { return {at_, depth_, depth_ > 0 ? frames_[depth_ - 1] : Frame{}}; }
  void rewind(const Mark& mark) {
    at_ = mark.at;
    depth_ = mark.depth;
    if (depth_ > 0) frames_[depth_ - 1] = mark.frame;
  }

  // ---- values

  // The text of a string, valid until the next string is read.
  std::string_view string() {
    if (peek() != '"') mismatch(words::string);
    return scan_string();
  }

  bool boolean() {
    skip_space();
    if (word("true")) return true;
    if (word("false")) return false;
    mismatch(words::true_or_false);
  }

  void null() {
    skip_space();
    if (!word("null")) mismatch(words::null);
  }

  // Skips the next value of any type.
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
          scan_number(words::value);
          return;
        }
    }
    syntax(words::value);
  }

  // A list of exactly `count` values; `item(k)` reads the k-th.
  template <class Item>
  void fixed_list(int count, Item&& item) {
    if (peek() != '[') mismatch(words::list_of + std::to_string(count));
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
      fail(Trouble::wrong_length, count, n);
    }
  }

  // A list of exactly `count` numbers.
  void numbers(double* out, int count) {
    fixed_list(count, [&](int k) { out[k] = number(); });
  }

 private:
  void enter(char bracket, const char* wanted) {
    if (peek() != bracket) mismatch(wanted);
    if (depth_ == max_depth) throw Failure{true, Trouble::nested_too_deeply, position(), {std::to_string(max_depth)}};
    frames_[depth_++] = Frame{bracket == '[', -1, nullptr, 0};
    ++at_;
  }

  void comma(char closing) {
    if (*at_ != ',') syntax(closing == '}' ? words::comma_in_object : words::comma_in_list);
    ++at_;
    skip_space();
  }
};

}  // namespace probox::json
