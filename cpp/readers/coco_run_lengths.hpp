// COCO's run lengths, compressed and not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace probox::coco {

// Decodes COCO's compressed run lengths: five bits per character from '0', the sixth bit means that more follow; from
// the fourth number on, a number is the difference to the one two before. Returns false for invalid text.
inline bool decode_counts(std::string_view text, std::vector<double>& counts) {
  const std::size_t start = counts.size();
  std::size_t at = 0;
  while (at < text.size()) {
    std::int64_t value = 0;
    int shift = 0;
    bool more = true;
    while (more) {
      if (at == text.size() || shift > 40) return false;
      const int bits = static_cast<unsigned char>(text[at++]) - 48;
      if (bits < 0 || bits > 63) return false;
      value |= static_cast<std::int64_t>(bits & 0x1f) << shift;
      shift += 5;
      more = (bits & 0x20) != 0;
      if (!more && (bits & 0x10) != 0) value -= std::int64_t{1} << shift;
    }
    const std::size_t number = counts.size() - start;
    const double count = static_cast<double>(value) + (number > 2 ? counts[counts.size() - 2] : 0.0);
    if (count < 0) return false;
    counts.push_back(count);
  }
  return true;
}

// The inverse of `decode_counts`.
inline std::string encode_counts(const std::vector<std::int64_t>& counts) {
  std::string text;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    std::int64_t value = counts[k] - (k > 2 ? counts[k - 2] : 0);
    bool more = true;
    while (more) {
      const auto bits = static_cast<int>(value & 0x1f);
      value >>= 5;
      more = (bits & 0x10) != 0 ? value != -1 : value != 0;
      text += static_cast<char>(bits + (more ? 0x20 : 0) + 48);
    }
  }
  return text;
}

// Lengths of the runs of pixels off, on, off, ... of a mask, from its runs x, y_begin, y_end in column-major order.
inline std::vector<std::int64_t> counts_of(const std::vector<std::int32_t>& runs, std::int64_t height,
                                           std::int64_t width) {
  std::vector<std::int64_t> counts;
  std::int64_t end = 0;
  for (std::size_t k = 0; k < runs.size(); k += 3) {
    const std::int64_t top = runs[k] * height;
    if (!counts.empty() && top + runs[k + 1] == end) {
      counts.back() += runs[k + 2] - runs[k + 1];
    } else {
      counts.push_back(top + runs[k + 1] - end);
      counts.push_back(runs[k + 2] - runs[k + 1]);
    }
    end = top + runs[k + 2];
  }
  if (counts.empty() || end < height * width) counts.push_back(height * width - end);
  return counts;
}

}  // namespace probox::coco
