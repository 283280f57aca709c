// Average precision and LRP of resampled images, each weighted by its count in a replicate.
//
// Images are matched separately, so a replicate changes only how often each detection and object counts. Copies of an
// image are adjacent separate images: among detections with equal scores, those of the first copy precede those of the
// second. Counts and the order of sums therefore equal those of evaluating the copies. Replicates are distributed over
// threads; each writes to its own memory, so results are bit-identical for any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "box_matching.hpp"
#include "parallel.hpp"

namespace probox::boxes {

// Number of times each image counts: replicates x images.
struct Weights {
  int64_t replicates, images;
  const int64_t* count;
  const int64_t* of(int64_t replicate) const { return count + replicate * images; }
};

// Outcomes of the detections of each class by descending score, and the images of its objects.
struct ByClass {
  int64_t classes;
  const int64_t* order;  // rows in the order of `score_order`
  const int64_t* offsets;  // classes + 1
  const int32_t* image;
  const double* score;
  const uint16_t* right;          // one bit per threshold
  const uint16_t* wrong;          // neither: ignored
  const int64_t* object_offsets;  // classes + 1
  const int32_t* object_images;   // by class

  int64_t objects(int64_t c, const int64_t* weight) const {
    int64_t n = 0;
    for (int64_t i = object_offsets[c]; i < object_offsets[c + 1]; ++i) n += weight[object_images[i]];
    return n;
  }
};

// The rows of `ByClass` in order, contiguous in memory, because every replicate reads all of them.
class Passes {
 public:
  struct Row {
    int32_t image;
    uint32_t run;  // number of rows from here of one class, image and score, which are copied together
    uint16_t right, wrong;
  };

  explicit Passes(const ByClass& in) : rows_(in.offsets[in.classes]) {
    for (int64_t c = 0; c < in.classes; ++c)
      for (int64_t i = in.offsets[c + 1]; i-- > in.offsets[c];) {
        const int64_t row = in.order[i];
        rows_[i] = {in.image[row], 1, in.right[row], in.wrong[row]};
        if (i + 1 == in.offsets[c + 1]) continue;
        const int64_t next = in.order[i + 1];
        if (in.image[next] == in.image[row] && in.score[next] == in.score[row]) rows_[i].run += rows_[i + 1].run;
      }
  }

  // Calls visit(row, i, times) for positions begin..end-1 of the order; `times` add up to the count of the image.
  template <class Visit>
  void over(int64_t begin, int64_t end, const int64_t* weight, Visit&& visit) const {
    for (int64_t i = begin; i < end;) {
      const int64_t copies = weight[rows_[i].image];
      const int64_t after = i + rows_[i].run;
      if (after == i + 1) {  // the common case: its copies are adjacent
        visit(rows_[i], i, copies);
      } else {
        for (int64_t copy = 0; copy < copies; ++copy)
          for (int64_t j = i; j < after; ++j) visit(rows_[j], j, 1);
      }
      i = after;
    }
  }

 private:
  std::vector<Row> rows_;
};

// The precision after each true positive, at each threshold.
class PrecisionCurves {
 public:
  explicit PrecisionCurves(int thresholds)
      : thresholds_(thresholds), all_(static_cast<uint16_t>((1u << thresholds) - 1)) {}

  void clear() {
    wrong_everywhere_ = 0;
    std::fill(wrong_, wrong_ + kMaxThresholds, 0);
    for (std::vector<double>& curve : curves_) curve.clear();
  }

  void add(uint16_t right, uint16_t wrong, int64_t times) {
    if (wrong == all_) {  // the common case
      wrong_everywhere_ += times;
      return;
    }
    for (int t = 0; t < thresholds_; ++t) {
      wrong_[t] += static_cast<int64_t>((wrong >> t) & 1u) * times;
      if (!((right >> t) & 1u)) continue;
      const double fp = static_cast<double>(wrong_everywhere_ + wrong_[t]);
      for (int64_t copy = 0; copy < times; ++copy) {
        const double tp = static_cast<double>(curves_[t].size() + 1);
        curves_[t].push_back(tp / (fp + tp + std::numeric_limits<double>::epsilon()));  // COCO's epsilon
      }
    }
  }

  // The mean over recalls of the highest precision at this recall or above.
  double mean(int t, double objects, int recalls, const double* recall) {
    std::vector<double>& best = curves_[t];
    for (size_t k = best.size(); k-- > 1;) best[k - 1] = std::max(best[k - 1], best[k]);
    double sum = 0;
    size_t k = 0;
    for (int r = 0; r < recalls; ++r) {
      while (k < best.size() && static_cast<double>(k + 1) / objects < recall[r]) ++k;
      if (k == best.size()) break;  // not reached: precision 0
      sum += best[k];
    }
    return sum / recalls;
  }

 private:
  int thresholds_;
  uint16_t all_;
  int64_t wrong_everywhere_ = 0;
  int64_t wrong_[kMaxThresholds] = {};
  std::vector<double> curves_[kMaxThresholds];
};

// Average precision: replicates x thresholds x classes, NaN where no object counts.
inline void resampled_precision(const ByClass& in, const Weights& weights, int thresholds, int recalls,
                                const double* recall, int threads, Stop& stop, double* average) {
  const Passes passes(in);
  threads = static_cast<int>(std::clamp<int64_t>(weights.replicates, 1, std::clamp(threads, 1, kMostThreads)));
  std::vector<PrecisionCurves> workers(threads, PrecisionCurves(thresholds));
  for_each_index(weights.replicates, threads, stop, [&](int worker, int64_t replicate) {
    const int64_t* weight = weights.of(replicate);
    PrecisionCurves& curves = workers[worker];
    for (int64_t c = 0; c < in.classes; ++c) {
      stop.check(worker);
      const int64_t objects = in.objects(c, weight);
      curves.clear();
      if (objects > 0)
        passes.over(in.offsets[c], in.offsets[c + 1], weight,
                    [&](const Passes::Row& row, int64_t, int64_t times) { curves.add(row.right, row.wrong, times); });
      for (int t = 0; t < thresholds; ++t)
        average[(replicate * thresholds + t) * in.classes + c] =
            objects > 0 ? curves.mean(t, static_cast<double>(objects), recalls, recall) : kNaN;
    }
  });
}

// Score thresholds of LRP at the first IoU threshold.
struct LrpGrid {
  int scores;
  const double* score;  // ascending: detections with score >= s are kept
  const double* error;  // of each row: 1 - IoU of a TP
  double slack;         // 1 - the IoU threshold
};

// LRP at the score threshold of its minimum (the lowest of several), the mean error of true positives there,
// 1 - precision and 1 - recall: replicates x classes x 4, NaN where undefined.
inline void resampled_lrp(const ByClass& in, const Weights& weights, const LrpGrid& grid, int threads, Stop& stop,
                          double* optimum) {
  const Passes passes(in);
  std::vector<double> error(in.offsets[in.classes]);
  for (size_t i = 0; i < error.size(); ++i) error[i] = grid.error[in.order[i]];
  std::vector<int64_t> kept(in.classes * grid.scores);  // the number of positions that each threshold keeps
  for (int64_t c = 0; c < in.classes; ++c)
    for (int s = 0; s < grid.scores; ++s)
      kept[c * grid.scores + s] = std::partition_point(in.order + in.offsets[c], in.order + in.offsets[c + 1],
                                                       [&](int64_t row) { return in.score[row] >= grid.score[s]; }) -
                                  in.order;
  for_each_index(weights.replicates, threads, stop, [&](int worker, int64_t replicate) {
    const int64_t* weight = weights.of(replicate);
    for (int64_t c = 0; c < in.classes; ++c) {
      stop.check(worker);
      double* out = optimum + (replicate * in.classes + c) * 4;
      std::fill(out, out + 4, kNaN);
      const int64_t objects = in.objects(c, weight);
      if (objects == 0) continue;
      int64_t tp = 0, fp = 0, at = in.offsets[c];
      double misplaced = 0, least = std::numeric_limits<double>::infinity();
      for (int s = grid.scores; s-- > 0;) {
        const int64_t end = kept[c * grid.scores + s];
        passes.over(at, end, weight, [&](const Passes::Row& row, int64_t i, int64_t times) {
          fp += static_cast<int64_t>(row.wrong & 1u) * times;
          if (!(row.right & 1u)) return;
          tp += times;
          for (int64_t copy = 0; copy < times; ++copy) misplaced += error[i];  // a product would round differently
        });
        at = end;
        const double found = static_cast<double>(tp), wrong = static_cast<double>(fp);
        const double missed = static_cast<double>(objects - tp);
        const double lrp = (misplaced / grid.slack + wrong + missed) / (found + wrong + missed);
        if (lrp > least) continue;
        least = lrp;
        out[0] = lrp;
        out[1] = tp > 0 ? misplaced / found : kNaN;
        out[2] = tp + fp > 0 ? wrong / (found + wrong) : kNaN;
        out[3] = missed / static_cast<double>(objects);
      }
    }
  });
}

}  // namespace probox::boxes
