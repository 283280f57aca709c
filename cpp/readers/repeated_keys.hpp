// The keys of the objects of a list, which usually repeat the order and the spacing of the object before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace probox::json {

// Finds the number of a key by comparing the text between two values with that of the last object. Equal text is
// equally valid, so it is scanned only if it differs.
class RepeatedKeys {
 public:
  static constexpr int unknown = -1;

  // The text from the end of one value to the start of the next, and the key in it.
  struct Step {
    const char* text = nullptr;
    std::size_t size = 0;
    std::size_t key = 0, key_size = 0;
    int number = unknown;
  };

  // The names of the known keys, by number.
  template <std::size_t count>
  explicit RepeatedKeys(const std::string_view (&names)[count]) : names_(names), count_(count) {}

  int number_of(std::string_view key) const {
    for (std::size_t number = 0; number < count_; ++number) {
      if (names_[number] == key) return static_cast<int>(number);
    }
    return unknown;
  }

  // The step of the last object at this place, if it is at this position, too; otherwise null.
  const Step* repeated(std::size_t place, const char* at, const char* end) const {
    if (place >= steps_.size()) return nullptr;
    const Step& step = steps_[place];
    if (step.size == 0 || static_cast<std::size_t>(end - at) < step.size) return nullptr;
    if (step.size < word) return std::memcmp(at, step.text, step.size) == 0 ? &step : nullptr;
    for (std::size_t done = 0; done + word < step.size; done += word) {
      if (word_at(at + done) != word_at(step.text + done)) return nullptr;
    }
    const std::size_t last = step.size - word;
    return word_at(at + last) == word_at(step.text + last) ? &step : nullptr;
  }

  // Records the step at a place; those of later places are scanned each time.
  void expect(std::size_t place, const Step& step) {
    if (place < steps_.size()) steps_[place] = step;
  }

 private:
  static constexpr std::size_t word = sizeof(std::uint64_t);

  static std::uint64_t word_at(const char* at) {
    std::uint64_t value;
    std::memcpy(&value, at, word);
    return value;
  }

  const std::string_view* names_;
  std::size_t count_;
  std::array<Step, 16> steps_;
};

}  // namespace probox::json
