// Outcomes of detections and objects: outcome code, match and qualities of the match.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "large_array.hpp"

namespace probox {

// Codes of outcomes.
struct VerdictCodes {
  std::uint8_t ignored, right, wrong, missed;
};

// Pairs of a detection and an object, with `width` qualities each, the first being the pair's overall quality.
struct ScoredPairs {
  std::size_t count, width;
  const std::int64_t *detections, *objects;
  const double* qualities;
};

// Columns of unmatched rows: no match, qualities unknown, overall quality 0.
struct JudgedColumns {
  std::size_t count, width;
  LargeArray<std::uint8_t> verdicts;
  LargeArray<std::int64_t> partners;
  LargeArray<double> qualities;

  JudgedColumns(std::size_t count, std::size_t width)
      : count(count), width(width), verdicts(make_large_array<std::uint8_t>(count)),
        partners(make_large_array<std::int64_t>(count)), qualities(make_large_array<double>(count * width)) {
    std::fill_n(partners.get(), count, std::int64_t{-1});
    std::fill_n(qualities.get(), count * width, std::numeric_limits<double>::quiet_NaN());
    for (std::size_t row = 0; row < count; ++row) qualities[row * width] = 0.0;
  }

  void match(std::int64_t row, std::int64_t partner, const double* values, std::uint8_t verdict) {
    const auto at = static_cast<std::size_t>(row);
    verdicts[at] = verdict;
    partners[at] = partner;
    std::copy_n(values, width, qualities.get() + at * width);
  }
};

// Fills the columns of both tables; a match with an ignored object counts for neither.
inline void judge_matches(const ScoredPairs& pairs, const bool* matched, const bool* ignored, const VerdictCodes& codes,
                          JudgedColumns& found, JudgedColumns& there) {
  std::fill_n(found.verdicts.get(), found.count, codes.wrong);
  for (std::size_t row = 0; row < there.count; ++row) there.verdicts[row] = ignored[row] ? codes.ignored : codes.missed;
  for (std::size_t k = 0; k < pairs.count; ++k) {
    if (!matched[k]) continue;
    const std::int64_t detection = pairs.detections[k], object = pairs.objects[k];
    const std::uint8_t verdict = ignored[object] ? codes.ignored : codes.right;
    const double* values = pairs.qualities + k * pairs.width;
    found.match(detection, object, values, verdict);
    there.match(object, detection, values, verdict);
  }
}

}  // namespace probox
