// The qualities of all pairs of a detection and an object of one image.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "label_probabilities.hpp"
#include "log_sums.hpp"
#include "mask.hpp"
#include "object_index.hpp"
#include "parallel.hpp"
#include "pixel_probability.hpp"
#include "settings.hpp"

namespace probox {

struct Qualities {
  double pairwise = 0.0, spatial = 0.0, label = 0.0, foreground = 0.0, background = 0.0;
};

enum class Kind : std::uint8_t { plain = 0, gaussian = 1, heatmap = 2, mask = 3 };

// One image: its objects and detections as slices of the tables.
struct Image {
  int width, height;
  std::vector<Mask> masks;
  const std::int32_t* object_labels;
  int detections;
  const double* boxes;        // 4 each
  const double* covariances;  // 8 each; null if no box has a covariance
  const std::uint8_t* kinds;
  const HeatmapBlock* heatmaps;
  std::vector<Mask> found_masks;  // of the detections; empty if none has one
  LabelRows<float> label_probs;   // of all images
  std::size_t first_detection;    // its row in label_probs
};

// Scores one image at a time; reuses its memory.
template <class T>
class ImageScorer {
 public:
  ImageScorer(const Settings& settings, CheckInterrupt check_interrupt)
      : s_(settings), check_interrupt_(check_interrupt), log_epsilon_(std::log(settings.epsilon)),
        log_one_(std::log(1.0 + settings.epsilon)),
        min_log_quality_(settings.snap_zero > 0.0 ? std::log(settings.snap_zero)
                                                  : -std::numeric_limits<double>::infinity()) {}

  // An object and its qualities with a detection.
  struct Scored {
    int object;
    Qualities qualities;
  };

  // Calls take(d, scored) for detections begin..end-1 in order, with its objects, ascending. Unless `all_pairs`,
  // objects with a quality of 0 are left out. `objects` must be built from the image.
  template <class Take>
  void qualities(const Image& image, ObjectIndex& objects, int begin, int end, bool all_pairs, Take&& take) {
    for (int d = begin; d < end; ++d) {
      scored_.clear();
      score_detection(image, objects, d, all_pairs);
      take(d, scored_);
    }
  }

 private:
  // The support of a detection, P > 0. Values may be missing, because those of Gaussian boxes are expensive.
  Grid<T> support(const Image& image, int d) {
    const double* box = image.boxes + 4 * static_cast<std::size_t>(d);
    switch (static_cast<Kind>(image.kinds[d])) {
      case Kind::heatmap:
        return builder_.given(image.heatmaps[d]);
      case Kind::gaussian:
        return builder_.support(box, image.covariances + 8 * static_cast<std::size_t>(d), image.width, image.height,
                                s_);
      default:
        return builder_.plain(box, image.width, image.height);
    }
  }

  struct Candidate {
    int object;
    std::int64_t inside;  // pixels of the object within the support
    double foreground = 0.0;
  };
  static constexpr std::size_t kFewCandidates = 10;  // up to this number an integral image is slower

  static float label_of(const Image& image, int d, int o) {
    return image.label_probs.at(image.first_detection + static_cast<std::size_t>(d),
                                static_cast<std::size_t>(image.object_labels[o]));
  }

  // Candidate objects: if a pixel outside the support costs too much, those whose boxes may intersect it.
  const std::vector<int>& candidate_objects(ObjectIndex& objects, int x0, int y0, int x1, int y1,
                                            bool all_pairs) const {
    if (all_pairs || log_epsilon_ > min_log_quality_) return objects.every();
    return objects.near(x0, y0, x1, y1);
  }

  // Whether a pair cannot have a quality, given a label weight above 0.
  bool has_wrong_label(const Image& image, int d, int o) const {
    return label_of(image, d, o) <= 0.0f && s_.label_weight > 0.0;
  }

  // Whether too few of an object's pixels are inside the support: each one outside costs log(epsilon).
  bool cannot_score(const Mask& mask, std::int64_t inside) const {
    return (mask.pixels - inside) * log_epsilon_ <= min_log_quality_ * mask.pixels;
  }

  void score_detection(const Image& image, ObjectIndex& objects, int d, bool all_pairs) {
    check_interrupt_();
    if (static_cast<Kind>(image.kinds[d]) == Kind::mask) {
      score_mask(image, objects, d, all_pairs);
    } else {
      score_heatmap(image, objects, d, all_pairs);
    }
  }

  // A mask has P = 1 inside and P = 0 outside, so the sums of logarithms follow from numbers of pixels.
  void score_mask(const Image& image, ObjectIndex& objects, int d, bool all_pairs) {
    const Mask& found = image.found_masks[d];
    for (const int o : candidate_objects(objects, found.x0, found.y0, found.x1, found.y1, all_pairs)) {
      const Mask& mask = image.masks[o];
      if (!all_pairs && has_wrong_label(image, d, o)) continue;
      const std::int64_t inside_box = pixels_within(found, mask.x0, mask.y0, mask.x1, mask.y1);
      if (!all_pairs && cannot_score(mask, std::min(inside_box, mask.pixels))) continue;
      const std::int64_t inside = shared_pixels(mask, found);
      const double foreground = inside * log_one_ + (mask.pixels - inside) * log_epsilon_;
      if (!all_pairs && foreground <= min_log_quality_ * mask.pixels) continue;
      const std::int64_t outside = found.pixels - (s_.mask_background ? inside : inside_box);
      add_scored(image, d, o, foreground, outside * log_epsilon_);
    }
  }

  void add_scored(const Image& image, int d, int o, double foreground, double background) {
    Qualities qualities;
    const auto label = static_cast<double>(label_of(image, d, o));
    qualities.label = std::clamp(label, 0.0, 1.0);  // rounded digits in a file may exceed 1
    finish(foreground, background, image.masks[o].pixels, qualities);
    scored_.push_back({o, qualities});
  }

  void score_heatmap(const Image& image, ObjectIndex& objects, int d, bool all_pairs) {
    Grid<T> grid = support(image, d);
    candidates_.clear();
    for (const int o : candidate_objects(objects, grid.x.first, grid.y.first, grid.x.last, grid.y.last, all_pairs)) {
      const Mask& mask = image.masks[o];
      const auto pixels_inside = [&] {
        return grid.empty() ? 0 : pixels_within(mask, grid.x.first, grid.y.first, grid.x.last, grid.y.last);
      };
      if (all_pairs) {
        candidates_.push_back({o, pixels_inside()});
        continue;
      }
      if (has_wrong_label(image, d, o)) continue;
      const auto box_inside = static_cast<std::int64_t>(grid.empty() ? 0.0 : inside_area(mask, grid));
      if (cannot_score(mask, std::min(box_inside, mask.pixels))) continue;
      const std::int64_t inside = pixels_inside();
      if (!cannot_score(mask, inside)) candidates_.push_back({o, inside});
    }
    if (candidates_.empty()) return;
    if (!grid.empty()) {
      if (grid.values == nullptr) builder_.fill(grid, image.width, image.height, s_);
      sums_.prepare(grid, s_.epsilon, is_tabulating_faster(image, grid));
    }

    std::size_t kept = 0;
    for (const Candidate& candidate : candidates_) {
      check_interrupt_();
      const Mask& mask = image.masks[candidate.object];
      const std::int64_t inside = candidate.inside;
      const double sum = (inside ? sums_.mask(mask, false) : 0.0) + (mask.pixels - inside) * log_epsilon_;
      if (!all_pairs && sum <= min_log_quality_ * mask.pixels) continue;
      candidates_[kept++] = {candidate.object, inside, sum};
    }
    candidates_.resize(kept);
    if (candidates_.empty()) return;

    const bool share = s_.mask_background || is_sharing_faster(image, grid);
    const double total = share && !grid.empty() ? sums_.everywhere(true) : 0.0;
    for (const Candidate& candidate : candidates_) {
      check_interrupt_();
      const Mask& mask = image.masks[candidate.object];
      double background = 0.0;
      if (!grid.empty()) {
        if (s_.mask_background)
          background = total - sums_.mask(mask, true);
        else if (share)
          background = total - inside_box(mask, grid);
        else
          background = sums_.outside(mask.x0, mask.y0, mask.x1, mask.y1, true);
      }
      add_scored(image, d, candidate.object, candidate.foreground, background);
    }
  }

  double inside_box(const Mask& m, const Grid<T>& grid) {
    return sums_.rectangle(std::max(m.x0, grid.x.first), std::max(m.y0, grid.y.first), std::min(m.x1, grid.x.last),
                           std::min(m.y1, grid.y.last), true);
  }

  // Number of pixels of the support in an object's box.
  static double inside_area(const Mask& m, const Grid<T>& grid) {
    const double across = std::min(m.x1, grid.x.last) - std::max(m.x0, grid.x.first) + 1.0;
    const double down = std::min(m.y1, grid.y.last) - std::max(m.y0, grid.y.first) + 1.0;
    return across > 0 && down > 0 ? across * down : 0.0;
  }

  static double support_area(const Grid<T>& grid) {
    return (grid.x.last - grid.x.first + 1.0) * (grid.y.last - grid.y.first + 1.0);
  }

  bool is_tabulating_faster(const Image& image, const Grid<T>& grid) const {
    if (candidates_.size() < kFewCandidates) return false;
    double inside = 0.0;
    for (const Candidate& candidate : candidates_) inside += inside_area(image.masks[candidate.object], grid);
    return LogIntegral<T>::is_faster(grid, candidates_.size(), inside / support_area(grid));
  }

  // Whether the background of all objects is faster as the total minus each box than box by box.
  bool is_sharing_faster(const Image& image, const Grid<T>& grid) const {
    if (grid.empty() || candidates_.size() < 2) return false;
    const double all = support_area(grid);
    double shared = all, apart = 0.0;
    for (const Candidate& candidate : candidates_) {
      const double inside = inside_area(image.masks[candidate.object], grid);
      shared += inside;
      apart += all - inside;
    }
    return shared < apart;
  }

  double quality_of(double mean_log) const {
    const double quality = std::min(std::exp(mean_log), 1.0);  // log(1 + epsilon) is slightly above 0
    if (quality <= s_.snap_zero) return 0.0;
    return std::abs(quality - 1.0) <= s_.snap_one ? 1.0 : quality;
  }

  void finish(double foreground, double background, std::int64_t pixels, Qualities& q) const {
    const double n = static_cast<double>(pixels);
    q.spatial = quality_of((foreground + background) / n);
    q.foreground = quality_of(foreground / n);
    q.background = quality_of(background / n);
    const double w = s_.label_weight;
    q.pairwise = w == 0.5 ? std::sqrt(q.spatial * q.label) : std::pow(q.spatial, 1.0 - w) * std::pow(q.label, w);
    if (q.spatial == 0.0 || q.pairwise <= s_.min_quality) q.pairwise = 0.0;
  }

  Settings s_;
  CheckInterrupt check_interrupt_;
  double log_epsilon_, log_one_, min_log_quality_;
  HeatmapBuilder<T> builder_;
  LogSums<T> sums_;
  std::vector<Candidate> candidates_;
  std::vector<Scored> scored_;
};

}  // namespace probox
