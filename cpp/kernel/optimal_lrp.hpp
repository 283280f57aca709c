// Localisation recall precision of a class at score thresholds, and its minimum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace probox {

// Outcomes of a class's detections in one of `ranges` area ranges; bit 0 of `matched` and `ignored` is the IoU
// threshold of LRP. `rows` are ordered by descending score.
struct LrpDetections {
  const std::int64_t* rows;
  std::size_t count;
  const double* scores;
  const std::uint16_t *matched, *ignored;
  const double* ious;
  std::size_t ranges;
};

struct LrpOptimum {
  double lrp, loc, fp, fn, score;
};

// The lowest of equally good thresholds. All NaN without objects; `score` also without true positives.
inline LrpOptimum optimal_lrp(const LrpDetections& found, std::size_t range, std::int64_t objects, double slack,
                              const double* thresholds, std::size_t threshold_count) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  LrpOptimum best{none, none, none, none, none};
  if (objects == 0) return best;
  const auto n = static_cast<double>(objects);
  std::int64_t right = 0, wrong = 0;
  double misplaced = 0.0;
  std::size_t k = 0;
  for (std::size_t t = threshold_count; t-- > 0;) {
    for (; k < found.count && found.scores[found.rows[k]] >= thresholds[t]; ++k) {
      const std::size_t at = static_cast<std::size_t>(found.rows[k]) * found.ranges + range;
      if (found.ignored[at] & 1) continue;
      if (found.matched[at] & 1) {
        ++right;
        misplaced += 1.0 - found.ious[at];
      } else {
        ++wrong;
      }
    }
    const auto tp = static_cast<double>(right), fp = static_cast<double>(wrong), fn = n - tp;
    const double lrp = (misplaced / slack + fp + fn) / (tp + fp + fn);
    if (t + 1 == threshold_count || lrp <= best.lrp)
      best = {lrp, misplaced / tp, fp / (tp + fp), fn / n, right > 0 ? thresholds[t] : none};
  }
  return best;
}

}  // namespace probox
