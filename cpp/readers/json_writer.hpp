// Detections as JSON text: numbers with the fewest digits that restore them exactly.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace probox::json {

class Writer {
 public:
  void text(std::string_view value) { out_.append(value); }

  void integer(std::int64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value);
    out_.append(digits, end.ptr);
  }

  void number(double value) {
    char digits[40];
    out_.append(digits, shortest(value, digits));
  }

  // The shortest digits that give the same float when read as a double and rounded.
  void number(float value) {
    char digits[40];
    std::size_t size = shortest(value, digits);
    digits[size] = '\0';
    if (static_cast<float>(parsed(digits, size)) != value) size = shortest(static_cast<double>(value), digits);
    out_.append(digits, size);
  }

  template <class T>
  void list(const T* values, std::size_t count) {
    out_ += '[';
    for (std::size_t k = 0; k < count; ++k) {
      if (k > 0) out_ += ',';
      number(values[k]);
    }
    out_ += ']';
  }

  // [[[xx, xy], [xy, yy]], [[xx, xy], [xy, yy]]]
  void covariances(const double* values) {
    out_ += '[';
    for (int corner = 0; corner < 2; ++corner) {
      out_ += corner > 0 ? ",[" : "[";
      list(values + 4 * corner, 2);
      out_ += ',';
      list(values + 4 * corner + 2, 2);
      out_ += ']';
    }
    out_ += ']';
  }

  const std::string& result() const { return out_; }

 private:
#if defined(__cpp_lib_to_chars)
  template <class T>
  static std::size_t shortest(T value, char* digits) {
    return static_cast<std::size_t>(std::to_chars(digits, digits + 32, value).ptr - digits);
  }
  static double parsed(const char* digits, std::size_t size) {
    double value = 0;
    std::from_chars(digits, digits + size, value);
    return value;
  }
#else
  static std::size_t shortest(float value, char* digits) {
    return static_cast<std::size_t>(std::snprintf(digits, 32, "%.9g", static_cast<double>(value)));
  }
  static std::size_t shortest(double value, char* digits) {
    return static_cast<std::size_t>(std::snprintf(digits, 32, "%.17g", value));
  }
  static double parsed(const char* digits, std::size_t) { return std::strtod(digits, nullptr); }
#endif

  std::string out_;
};

}  // namespace probox::json
