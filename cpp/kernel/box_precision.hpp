// Precision at given recalls from the outcomes of COCO's matching.
//
// Classes are distributed over threads; each writes to its own memory, so results are bit-identical for any number of
// threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "box_matching.hpp"
#include "parallel.hpp"

namespace probox::boxes {

// Rows by class, then descending score, ties in the order of the rows; `offsets` has classes + 1 entries.
inline void score_order(int64_t rows, const int32_t* label, const double* score, int64_t classes, int threads,
                        int64_t* order, int64_t* offsets) {
  std::fill(offsets, offsets + classes + 1, 0);
  for (int64_t i = 0; i < rows; ++i) ++offsets[label[i] + 1];
  std::partial_sum(offsets, offsets + classes + 1, offsets);
  std::vector<int64_t> next(offsets, offsets + classes);
  struct Key {
    double score;
    int64_t row;
  };
  std::vector<Key> keys(rows);
  for (int64_t i = 0; i < rows; ++i) keys[next[label[i]]++] = {score[i], i};
  for_each_index(classes, threads, [&](int, int64_t c) {
    std::sort(keys.begin() + offsets[c], keys.begin() + offsets[c + 1],
              [](const Key& a, const Key& b) { return a.score != b.score ? a.score > b.score : a.row < b.row; });
    for (int64_t i = offsets[c]; i < offsets[c + 1]; ++i) order[i] = keys[i].row;
  });
}

struct Outcomes {
  const int64_t* order;  // rows in the order of `score_order`
  const int64_t* offsets;  // classes + 1
  const double* score;
  const int32_t* rank;
  const uint16_t* matched;  // rows x ranges
  const uint16_t* ignored;
  const int64_t* objects;  // classes x ranges: number of objects that count
  int64_t classes;
  int ranges, thresholds;
};

struct Points {
  int recalls;
  const double* recall;  // ascending
  int limits;
  const int64_t* limit;  // detections per image and class
};

// For each threshold t, class c and range a: the highest precision at a recall of at least r, the
// score of the detection that reaches r, and the final recall with fewer detections per image.
//   precision, score_at: thresholds x recalls x classes x ranges; recall: thresholds x classes x ranges x limits.
// NaN where no object counts; a recall that is not reached has precision 0 and no score.
inline void precision_at_recall(const Outcomes& in, const Points& points, int threads, double* precision,
                                double* score_at, double* recall) {
  const uint16_t all = static_cast<uint16_t>((1u << in.thresholds) - 1);
  for_each_index(in.classes * in.ranges, threads, [&](int, int64_t task) {
    const int64_t c = task / in.ranges, a = task % in.ranges;
    const int64_t begin = in.offsets[c], end = in.offsets[c + 1];
    const double objects = static_cast<double>(in.objects[task]);
    uint32_t wrong_at_all = 0, wrong[kMaxThresholds] = {};  // most are wrong at all thresholds or at none
    std::vector<double> right_precision[kMaxThresholds], right_score[kMaxThresholds];
    std::vector<int64_t> right_within(in.thresholds * points.limits, 0);
    if (in.objects[task] > 0) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = in.order[i], cell = row * in.ranges + a;
        const uint16_t right = in.matched[cell] & ~in.ignored[cell];
        const uint16_t miss = all & ~(in.matched[cell] | in.ignored[cell]);
        if (miss == all) {
          ++wrong_at_all;
          continue;
        }
        for (int t = 0; miss != 0 && t < kMaxThresholds; ++t) wrong[t] += (miss >> t) & 1u;
        if (!right) continue;
        for (int t = 0; t < in.thresholds; ++t) {
          if (!((right >> t) & 1u)) continue;
          // The epsilon is COCO's, against 0 / 0; it makes the first precision 1 - 2^-52.
          const double tp = static_cast<double>(right_precision[t].size() + 1), fp = wrong_at_all + wrong[t];
          right_precision[t].push_back(tp / (fp + tp + std::numeric_limits<double>::epsilon()));
          right_score[t].push_back(in.score[row]);
          for (int m = 0; m < points.limits; ++m) right_within[t * points.limits + m] += in.rank[row] < points.limit[m];
        }
      }
    }
    for (int t = 0; t < in.thresholds; ++t) {
      std::vector<double>& best = right_precision[t];
      for (size_t k = best.size(); k-- > 1;) best[k - 1] = std::max(best[k - 1], best[k]);
      for (int m = 0; m < points.limits; ++m)
        recall[((t * in.classes + c) * in.ranges + a) * points.limits + m] =
            objects > 0 ? static_cast<double>(right_within[t * points.limits + m]) / objects : kNaN;
      size_t k = 0;  // number of true positives passed
      for (int r = 0; r < points.recalls; ++r) {
        const int64_t cell = ((static_cast<int64_t>(t) * points.recalls + r) * in.classes + c) * in.ranges + a;
        if (in.objects[task] == 0) {
          precision[cell] = score_at[cell] = kNaN;
        } else if (points.recall[r] <= 0) {
          // Recall 0 is reached by the first detection, whether TP or FP.
          precision[cell] = best.empty() ? 0 : best[0];
          score_at[cell] = begin < end ? in.score[in.order[begin]] : kNaN;
        } else {
          while (k < best.size() && static_cast<double>(k + 1) / objects < points.recall[r]) ++k;
          precision[cell] = k < best.size() ? best[k] : 0;
          score_at[cell] = k < best.size() ? right_score[t][k] : kNaN;
        }
      }
    }
  });
}

}  // namespace probox::boxes
