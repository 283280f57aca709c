// COCO's greedy matching of boxes or masks.
//
// Images are distributed over threads; each writes to its own memory, so results are bit-identical for any number of
// threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "parallel.hpp"
#include "shared_block.hpp"

namespace probox::boxes {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMaxThresholds = 16;  // one bit each in a uint16

// Boxes as in the COCO API: top-left corner (the first two of four columns), width and height.
struct Boxes {
  const double* corners;
  const double* extents;
  double x(int64_t i) const { return corners[4 * i]; }
  double y(int64_t i) const { return corners[4 * i + 1]; }
  double w(int64_t i) const { return extents[2 * i]; }
  double h(int64_t i) const { return extents[2 * i + 1]; }
  double area(int64_t i) const { return w(i) * h(i); }
};

// Intersection over union, or over the detection alone for a crowd. The order of operations is that
// of the COCO API, so values are bit-identical to it.
inline double overlap(const Boxes& found, int64_t d, const Boxes& truth, int64_t g, bool crowd) {
  const double width = std::min(found.w(d) + found.x(d), truth.w(g) + truth.x(g)) - std::max(found.x(d), truth.x(g));
  if (width <= 0) return 0;
  const double height = std::min(found.h(d) + found.y(d), truth.h(g) + truth.y(g)) - std::max(found.y(d), truth.y(g));
  if (height <= 0) return 0;
  const double both = width * height;
  const double either = crowd ? found.area(d) : found.area(d) + truth.area(g) - both;
  return both / either;
}

// Given overlaps that replace those of boxes, for example of masks: pairs of detection d are begin[d]..begin[d + 1],
// with ascending rows of objects. Other pairs do not overlap. `area` is that of detections.
struct Overlaps {
  const int64_t *begin, *object;
  const double *iou, *area;
};

struct Found {
  int64_t count;
  const int64_t* image;  // row of the ground truth's images, -1: unknown
  const int32_t* label;  // class of the ground truth, -1: unknown
  Boxes boxes;
  const double* score;
  const bool* lenient;                 // without a match: ignored
  const Overlaps* overlaps = nullptr;  // null: those of boxes
  double area(int64_t d) const { return overlaps ? overlaps->area[d] : boxes.area(d); }
};

struct Truth {
  int64_t images;
  const int64_t* offsets;  // images + 1
  const int32_t* label;
  Boxes boxes;
  const double* area;
  const bool* crowd;
};

struct Rules {
  int thresholds;          // at most kMaxThresholds
  const double* iou;       // ascending
  int ranges;              // of area
  const double* range;     // ranges x 2, both ends inclusive
  int64_t max_detections;  // per image and class
};

// One row per participating detection, by image, class, descending score. Rows are written by the threads.
struct Matches {
  size_t rows;
  BlockArray<int32_t> image, label, rank, number, object;
  BlockArray<double> score, iou;          // iou: rows x ranges, at the first threshold
  BlockArray<uint16_t> matched, ignored;  // rows x ranges, one bit per threshold

  Matches(size_t count, size_t ranges) : rows(count) {
    allocate_together(rows, width(image), width(label), width(rank), width(number), width(object), width(score),
                      width(iou, ranges), width(matched, ranges), width(ignored, ranges));
  }
};

// The detections of each image in matching order: by class, then descending score, ties in the order
// of the table. `begin` has one more entry than images, `kept[i]` is the number of participating
// detections.
struct MatchingOrder {
  std::vector<int64_t> row, begin, kept_begin;
  std::vector<int32_t> number;  // of each row of the table within its image
};

// Sorts ascending rows of one image by class, then descending score, ties in their order. Rows are mostly listed by
// score already; sorting whole numbers by class is then faster than comparing all values.
inline void sort_image(const Found& found, int64_t* first, int64_t* last) {
  const auto before = [&](int64_t a, int64_t b) {
    return found.score[a] != found.score[b] ? found.score[a] > found.score[b] : a < b;
  };
  if (!std::is_sorted(first, last, before)) std::sort(first, last, before);
  struct Key {
    uint32_t label;  // unknown classes (-1) become the largest number: they come last and are skipped
    uint32_t place;
    uint64_t both() const { return uint64_t{label} << 32 | place; }
  };
  std::vector<Key> keys(last - first);
  for (size_t k = 0; k < keys.size(); ++k)
    keys[k] = {static_cast<uint32_t>(found.label[first[k]]), static_cast<uint32_t>(k)};
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.both() < b.both(); });
  const std::vector<int64_t> by_score(first, last);
  for (const Key& key : keys) *first++ = by_score[key.place];
}

inline MatchingOrder matching_order(const Found& found, int64_t images, int64_t max_detections, int threads,
                                    Stop& stop) {
  MatchingOrder order;
  order.begin.assign(images + 1, 0);
  for (int64_t d = 0; d < found.count; ++d)
    if (found.image[d] >= 0) ++order.begin[found.image[d] + 1];
  std::partial_sum(order.begin.begin(), order.begin.end(), order.begin.begin());
  order.row.resize(order.begin.back());
  order.number.resize(found.count);
  std::vector<int64_t> next(order.begin.begin(), order.begin.end() - 1);
  for (int64_t d = 0; d < found.count; ++d) {
    const int64_t image = found.image[d];
    if (image < 0) continue;
    order.number[d] = static_cast<int32_t>(next[image] - order.begin[image]);
    order.row[next[image]++] = d;
  }
  order.kept_begin.assign(images + 1, 0);
  for_each_index(images, threads, stop, [&](int, int64_t image) {
    int64_t* first = order.row.data() + order.begin[image];
    int64_t* last = order.row.data() + order.begin[image + 1];
    sort_image(found, first, last);
    int64_t kept = 0;
    for (int64_t* group = first; group < last && found.label[*group] >= 0;) {
      int64_t* end = group;
      while (end < last && found.label[*end] == found.label[*group]) ++end;
      kept += std::min<int64_t>(end - group, max_detections);
      group = end;
    }
    order.kept_begin[image + 1] = kept;
  });
  std::partial_sum(order.kept_begin.begin(), order.kept_begin.end(), order.kept_begin.begin());
  return order;
}

// Matches the detections of one class in one image, `rows` in descending score, with its objects.
// Reuses its buffers between groups.
class GroupMatcher {
 public:
  GroupMatcher(const Found& found, const Truth& truth, const Rules& rules, CheckInterrupt check_interrupt)
      : found_(found), truth_(truth), rules_(rules), check_interrupt_(check_interrupt) {}

  void match(const int64_t* rows, int64_t count, const std::vector<int64_t>& objects, int64_t first_object,
             Matches& out, int64_t at) {
    for (int64_t i = 0; i < count; ++i) start_row(rows[i], out, at + i);
    list_candidates(rows, count, objects);
    if (candidates_.empty()) return;
    for (int range = 0; range < rules_.ranges; ++range) {
      const double low = rules_.range[2 * range], high = rules_.range[2 * range + 1];
      ignored_.assign(objects.size(), 0);
      for (size_t g = 0; g < objects.size(); ++g)
        ignored_[g] = truth_.crowd[objects[g]] || truth_.area[objects[g]] < low || truth_.area[objects[g]] > high;
      taken_.assign(objects.size(), 0);
      for (int64_t i = 0; i < count; ++i) {
        if (begin_[i] == begin_[i + 1]) continue;
        check_interrupt();
        const int64_t cell = (at + i) * rules_.ranges + range;
        uint16_t matched = 0, ignored = 0;
        const Candidate* first = match_one(i, objects, matched, ignored);
        out.matched[cell] = matched;
        out.ignored[cell] = ignored | (out.ignored[cell] & ~matched);
        if (first) {
          out.iou[cell] = first->iou;
          if (range == 0) out.object[at + i] = static_cast<int32_t>(objects[first->object] - first_object);
        }
      }
    }
  }

 private:
  struct Candidate {
    int32_t object;
    double iou;
  };

  uint16_t all_thresholds() const { return static_cast<uint16_t>((1u << rules_.thresholds) - 1); }
  double least(int t) const { return std::min(rules_.iou[t], 1 - 1e-10); }

  // Writes a row without a match: ignored if it is lenient, and in the area ranges that it is not in.
  void start_row(int64_t detection, Matches& out, int64_t row) const {
    const double area = found_.area(detection);
    out.object[row] = -1;
    for (int range = 0; range < rules_.ranges; ++range) {
      const bool outside = area < rules_.range[2 * range] || area > rules_.range[2 * range + 1];
      const bool ignored = outside || found_.lenient[detection];
      const int64_t cell = row * rules_.ranges + range;
      out.iou[cell] = kNaN;
      out.matched[cell] = 0;
      out.ignored[cell] = ignored ? all_thresholds() : 0;
    }
  }

  // Few pairs overlap enough for any threshold; the following steps use these only.
  void list_candidates(const int64_t* rows, int64_t count, const std::vector<int64_t>& objects) {
    candidates_.clear();
    if (objects.empty()) return;
    begin_.assign(1, 0);
    highest_.clear();
    for (int64_t i = 0; i < count; ++i) {
      highest_.push_back(0.0);
      if (found_.overlaps) {
        list_given(rows[i], objects);
      } else {
        for (size_t g = 0; g < objects.size(); ++g)
          list(g, overlap(found_.boxes, rows[i], truth_.boxes, objects[g], truth_.crowd[objects[g]]));
      }
      steps_ += objects.size();
      check_interrupt();
      begin_.push_back(candidates_.size());
    }
  }

  void list_given(int64_t row, const std::vector<int64_t>& objects) {
    const Overlaps& given = *found_.overlaps;
    for (int64_t p = given.begin[row]; p < given.begin[row + 1]; ++p) {
      const auto at = std::lower_bound(objects.begin(), objects.end(), given.object[p]);
      if (at != objects.end() && *at == given.object[p]) list(at - objects.begin(), given.iou[p]);
    }
  }

  void list(int64_t object, double iou) {
    if (iou < least(0)) return;
    candidates_.push_back({static_cast<int32_t>(object), iou});
    highest_.back() = iou <= 1 ? std::max(highest_.back(), iou) : kInfinity;  // NaN always matches, as in COCO
  }

  // Checks after many steps only: each takes a few nanoseconds, and reading the clock takes longer.
  void check_interrupt() {
    if (++steps_ < 1024) return;
    steps_ = 0;
    check_interrupt_();
  }

  // Sets the bits of one detection; returns its match at the first threshold, if any. The best free
  // object that counts wins, ties go to the later one; ignored objects are used only without one.
  const Candidate* match_one(int64_t i, const std::vector<int64_t>& objects, uint16_t& matched, uint16_t& ignored) {
    const Candidate* at_first_threshold = nullptr;
    for (int t = 0; t < rules_.thresholds && least(t) <= highest_[i]; ++t) {
      const uint16_t bit = static_cast<uint16_t>(1u << t);
      const Candidate* best = nullptr;
      for (const char want_ignored : {0, 1}) {
        double iou = least(t);
        for (size_t c = begin_[i]; c < begin_[i + 1]; ++c) {
          const Candidate& candidate = candidates_[c];
          const int32_t g = candidate.object;
          if (ignored_[g] != want_ignored || candidate.iou < iou) continue;
          if ((taken_[g] & bit) && !truth_.crowd[objects[g]]) continue;
          iou = candidate.iou;
          best = &candidate;
        }
        if (best) break;
      }
      if (!best) continue;
      taken_[best->object] |= bit;
      matched |= bit;
      if (ignored_[best->object]) ignored |= bit;
      if (t == 0) at_first_threshold = best;
    }
    return at_first_threshold;
  }

  const Found& found_;
  const Truth& truth_;
  const Rules& rules_;
  CheckInterrupt check_interrupt_;
  size_t steps_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<size_t> begin_;
  std::vector<double> highest_;  // IoU of the candidates of each detection
  std::vector<char> ignored_;
  std::vector<uint16_t> taken_;
};

inline Matches match_boxes(const Found& found, const Truth& truth, const Rules& rules, int threads, Stop& stop) {
  const MatchingOrder order = matching_order(found, truth.images, rules.max_detections, threads, stop);
  Matches out(order.kept_begin.back(), rules.ranges);
  for_each_index(truth.images, threads, stop, [&](int worker, int64_t image) {
    const int64_t first_object = truth.offsets[image];
    std::vector<int64_t> by_class(truth.offsets[image + 1] - first_object), objects;
    std::iota(by_class.begin(), by_class.end(), first_object);
    std::stable_sort(by_class.begin(), by_class.end(),
                     [&](int64_t a, int64_t b) { return truth.label[a] < truth.label[b]; });
    GroupMatcher matcher(found, truth, rules, CheckInterrupt{&stop, worker});
    const int64_t* row = order.row.data() + order.begin[image];
    const int64_t* last = order.row.data() + order.begin[image + 1];
    auto object = by_class.begin();
    int64_t at = order.kept_begin[image];
    while (row < last && found.label[*row] >= 0) {
      const int32_t label = found.label[*row];
      objects.clear();
      while (object != by_class.end() && truth.label[*object] < label) ++object;
      while (object != by_class.end() && truth.label[*object] == label) objects.push_back(*object++);
      const int64_t* end = row;
      while (end < last && found.label[*end] == label) ++end;
      const int64_t count = std::min<int64_t>(end - row, rules.max_detections);
      for (int64_t i = 0; i < count; ++i) {
        out.image[at + i] = static_cast<int32_t>(image);
        out.label[at + i] = label;
        out.rank[at + i] = static_cast<int32_t>(i);
        out.number[at + i] = order.number[row[i]];
        out.score[at + i] = found.score[row[i]];
      }
      matcher.match(row, count, objects, first_object, out, at);
      at += count;
      row = end;
    }
  });
  return out;
}

}  // namespace probox::boxes
