// COCO's compressed run lengths.
#pragma once

#include <cstdint>
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

}  // namespace probox::coco
