// Sequential clustering and non-maximum suppression of boxes.
// `probox/fusion/fusion_definition.py` is the reference in plain Python; both must return the same rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parallel.hpp"

namespace probox {

struct Box {
  double x1, y1, x2, y2;
};

inline double area(const Box& box) { return (box.x2 - box.x1) * (box.y2 - box.y1); }

inline double box_iou(const Box& a, const Box& b) {
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (!(width > 0.0 && height > 0.0)) return 0.0;
  const double intersection = width * height;
  return intersection / (area(a) + area(b) - intersection);
}

// Sum over classes of the smaller of two distributions, each normalised to sum 1.
inline double label_overlap(const double* p, double total_p, const double* q, double total_q, std::size_t classes) {
  if (!(total_p > 0.0 && total_q > 0.0)) return 0.0;
  double overlap = 0.0;
  for (std::size_t c = 0; c < classes; ++c) overlap += std::min(p[c] / total_p, q[c] / total_q);
  return overlap;
}

struct SequentialClusters {
  std::vector<Box> sums, means;
  std::vector<std::int64_t> counts;
  std::vector<double> label_sums, label_totals;
};

// BSAS: each box joins the cluster of its label whose mean box it overlaps most, or starts one. `labels` and
// `label_probs` may be null: then they are not compared.
inline std::vector<std::int64_t> cluster_sequentially(const Box* boxes, std::size_t count, double iou,
                                                      const std::int64_t* labels, const double* label_probs,
                                                      std::size_t classes, double label_similarity,
                                                      const CheckInterrupt& check_interrupt) {
  std::vector<std::int64_t> cluster_of(count);
  SequentialClusters clusters;
  // Clusters by label: with many classes, a box is compared with few of them.
  std::unordered_map<std::int64_t, std::vector<std::size_t>> by_label;
  for (std::size_t row = 0; row < count; ++row) {
    check_interrupt();
    const Box& box = boxes[row];
    const double* probs = label_probs ? label_probs + row * classes : nullptr;
    double total = 0.0;
    if (probs)
      for (std::size_t c = 0; c < classes; ++c) total += probs[c];
    std::vector<std::size_t>& candidates = by_label[labels ? labels[row] : 0];
    std::size_t best = clusters.counts.size();
    double best_iou = -1.0;
    for (std::size_t cluster : candidates) {
      const double overlap = box_iou(box, clusters.means[cluster]);
      if (!(overlap >= iou && overlap > best_iou)) continue;
      if (probs && label_overlap(probs, total, clusters.label_sums.data() + cluster * classes,
                                 clusters.label_totals[cluster], classes) < label_similarity)
        continue;
      best = cluster;
      best_iou = overlap;
    }
    if (best == clusters.counts.size()) {
      candidates.push_back(best);
      clusters.sums.push_back({0.0, 0.0, 0.0, 0.0});
      clusters.means.push_back(box);
      clusters.counts.push_back(0);
      clusters.label_totals.push_back(0.0);
      clusters.label_sums.resize(clusters.label_sums.size() + (probs ? classes : 0), 0.0);
    }
    Box& sum = clusters.sums[best];
    sum = {sum.x1 + box.x1, sum.y1 + box.y1, sum.x2 + box.x2, sum.y2 + box.y2};
    const double n = static_cast<double>(++clusters.counts[best]);
    clusters.means[best] = {sum.x1 / n, sum.y1 / n, sum.x2 / n, sum.y2 / n};
    if (probs) {
      double sum_of_all = 0.0;
      for (std::size_t c = 0; c < classes; ++c) sum_of_all += clusters.label_sums[best * classes + c] += probs[c];
      clusters.label_totals[best] = sum_of_all;
    }
    cluster_of[row] = static_cast<std::int64_t>(best);
  }
  return cluster_of;
}

// Non-maximum suppression: the row that suppresses each box, itself if it survives.
inline std::vector<std::int64_t> suppress(const Box* boxes, const std::int64_t* groups, const std::int64_t* order,
                                          std::size_t count, double iou, const CheckInterrupt& check_interrupt) {
  std::vector<std::int64_t> stands_for(count);
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> survivors;
  for (std::size_t k = 0; k < count; ++k) {
    check_interrupt();
    const std::int64_t row = order[k];
    std::vector<std::int64_t>& rivals = survivors[groups[row]];
    const auto by = std::find_if(rivals.begin(), rivals.end(),
                                 [&](std::int64_t rival) { return box_iou(boxes[rival], boxes[row]) > iou; });
    stands_for[row] = by == rivals.end() ? row : *by;
    if (stands_for[row] == row) rivals.push_back(row);
  }
  return stands_for;
}

// Each survivor with the suppressed boxes of its group that overlap it by more than `iou`, as (cluster, row) pairs.
inline std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> members_of_survivors(
    const Box* boxes, const std::int64_t* groups, const std::int64_t* stands_for, std::size_t count,
    const std::int64_t* survivors, std::size_t survivor_count, double iou, const CheckInterrupt& check_interrupt) {
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> suppressed;
  for (std::size_t row = 0; row < count; ++row)
    if (stands_for[row] != static_cast<std::int64_t>(row)) suppressed[groups[row]].push_back(row);
  std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> result;
  auto& [cluster, member] = result;
  for (std::size_t position = 0; position < survivor_count; ++position) {
    check_interrupt();
    const std::int64_t survivor = survivors[position];
    cluster.push_back(position);
    member.push_back(survivor);
    for (std::int64_t row : suppressed[groups[survivor]])
      if (box_iou(boxes[survivor], boxes[row]) > iou) {
        cluster.push_back(position);
        member.push_back(row);
      }
  }
  return result;
}

}  // namespace probox
