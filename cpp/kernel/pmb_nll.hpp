// Negative log likelihood of an image's objects, with detections as a Poisson multi-Bernoulli (PMB) density.
// Reference implementation: src/probox/measures/pmb_definition.py.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "k_best_assignment.hpp"
#include "label_probabilities.hpp"
#include "parallel.hpp"

namespace probox::pmb {

// Detections of images, sorted by image; those of image i start at offsets[i]. T is the type of the probabilities.
template <class T>
struct Found {
  const std::int64_t* offsets;
  const double* boxes;        // x1, y1, x2, y2
  const double* covariances;  // 8 each: first corner, second corner
  LabelRows<T> label_probs;
};

struct Truth {
  const std::int64_t* offsets;
  const double* boxes;
  const std::int32_t* labels;
  const double* log_floors;  // one per image: lower bound of the log clutter intensity; may be -infinity
};

struct Rules {
  double clutter;  // detections with a highest probability up to this are clutter
  double min_probability;  // probabilities are at least this, and at most 1 minus this
  double min_determinant;  // of a corner's correlation matrix: below, it has no density
  int assignments;  // number of best assignments in the sum
};

// Results per image: the value; its parts in the best assignment; the number of summed assignments; the number of
// objects that the best one assigns to clutter, and of those at the floor.
constexpr int kNumbers = 9;
enum Number {
  nll,
  matched_box,
  matched_label,
  unmatched,
  missed,
  expected,
  assignments,
  missed_objects,
  floored_objects
};

// Density of a box with Gaussian corners.
class BoxDensity {
 public:
  // Returns whether the density exists: both covariances are positive definite.
  bool set(const double* box, const double* covariances, double min_determinant) {
    log_scale_ = 0.0;
    for (int corner = 0; corner < 2; ++corner) {
      const double* m = covariances + 4 * corner;
      const double xx = m[0], xy = 0.5 * (m[1] + m[2]), yy = m[3], determinant = xx * yy - xy * xy;
      if (!(xx > 0.0 && yy > 0.0 && determinant > min_determinant * xx * yy && std::isfinite(determinant)))
        return false;
      mean_[2 * corner] = box[2 * corner];
      mean_[2 * corner + 1] = box[2 * corner + 1];
      inverse_[3 * corner] = yy / determinant;
      inverse_[3 * corner + 1] = -xy / determinant;
      inverse_[3 * corner + 2] = xx / determinant;
      log_scale_ -= 0.5 * std::log(determinant) + kLogTwoPi;
    }
    return std::isfinite(log_scale_);
  }

  double log_at(const double* box) const {
    double distance = 0.0;
    for (int corner = 0; corner < 2; ++corner) {
      const double x = box[2 * corner] - mean_[2 * corner], y = box[2 * corner + 1] - mean_[2 * corner + 1];
      const double* inverse = inverse_.data() + 3 * corner;
      distance += x * x * inverse[0] + 2.0 * x * y * inverse[1] + y * y * inverse[2];
    }
    return log_scale_ - 0.5 * distance;
  }

 private:
  static constexpr double kLogTwoPi = 1.83787706640934548356;
  std::array<double, 4> mean_;
  std::array<double, 6> inverse_;
  double log_scale_ = 0.0;
};

// Computes one image at a time; reuses its memory.
template <class T>
class ImageMeasurer {
 public:
  ImageMeasurer(const Found<T>& found, const Truth& truth, const Rules& rules, CheckInterrupt check_interrupt)
      : found_(found), truth_(truth), rules_(rules), ranker_(check_interrupt) {}

  void measure(std::ptrdiff_t image, double* out) {
    const std::int64_t first = truth_.offsets[image];
    const int objects = static_cast<int>(truth_.offsets[image + 1] - first);
    read_detections(image);
    clutter_of_objects(first, objects, truth_.log_floors[image]);
    pairs_of_objects(first, objects);
    ranker_.rank({objects, static_cast<int>(sure_.size()), cost_.data(), alone_.data()}, rules_.assignments);
    sum_up(first, objects, out);
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  struct Component {
    BoxDensity density;
    bool dense;  // has a density
    std::size_t row;        // in label_probs
    double log_background;  // of Bernoulli detections
    double weight, sum;     // of clutter
  };

  double clamped(double probability) const {
    return std::clamp(probability, rules_.min_probability, 1.0 - rules_.min_probability);
  }
  double probability(const Component& c, std::int32_t label) const {
    return static_cast<double>(found_.label_probs.at(c.row, static_cast<std::size_t>(label)));
  }
  double log_label(const Component& c, std::int32_t label) const {
    return std::log(clamped(probability(c, label)));
  }

  // Splits the image's detections into Bernoulli detections and clutter.
  void read_detections(std::ptrdiff_t image) {
    sure_.clear();
    clutter_.clear();
    expected_ = all_unmatched_ = 0.0;
    for (std::int64_t d = found_.offsets[image]; d < found_.offsets[image + 1]; ++d) {
      Component c;
      c.row = static_cast<std::size_t>(d);
      T highest = 0;
      c.sum = 0.0;
      found_.label_probs.for_each(c.row, [&](T probability) {
        highest = std::max(highest, probability);
        c.sum += static_cast<double>(probability);
      });
      c.weight = static_cast<double>(highest);
      c.log_background = std::log(clamped(1.0 - c.sum));
      c.dense = c.density.set(found_.boxes + 4 * d, found_.covariances + 8 * d, rules_.min_determinant);
      if (highest <= static_cast<T>(rules_.clutter)) {
        expected_ += c.weight;
        if (c.dense && c.weight > 0.0) clutter_.push_back(c);
      } else {
        all_unmatched_ -= c.log_background;
        sure_.push_back(c);
      }
    }
  }

  // alone_: -log of the clutter intensity at each object.
  void clutter_of_objects(std::int64_t first, int objects, double log_floor) {
    alone_.resize(objects);
    floored_.assign(objects, 0);
    terms_.resize(clutter_.size());
    for (int o = 0; o < objects; ++o) {
      double greatest = -kInfinity;
      for (std::size_t k = 0; k < clutter_.size(); ++k) {
        const Component& c = clutter_[k];
        const double share = probability(c, truth_.labels[first + o]) / c.sum;
        terms_[k] = std::log(c.weight * clamped(share)) + c.density.log_at(truth_.boxes + 4 * (first + o));
        greatest = std::max(greatest, terms_[k]);
      }
      double log_intensity = log_sum(terms_, greatest);
      if (log_intensity < log_floor) {
        log_intensity = log_floor;
        floored_[o] = 1;
      }
      alone_[o] = -log_intensity;
    }
  }

  // cost_: cost of each pair minus the cost of its unmatched detection.
  void pairs_of_objects(std::int64_t first, int objects) {
    const std::size_t n = sure_.size();
    cost_.resize(objects * n);
    for (int o = 0; o < objects; ++o)
      for (std::size_t i = 0; i < n; ++i) {
        const Component& c = sure_[i];
        double cost = kInfinity;
        if (c.dense)
          cost = c.log_background - log_label(c, truth_.labels[first + o]) -
                 c.density.log_at(truth_.boxes + 4 * (first + o));
        cost_[o * n + i] = cost;
      }
  }

  void sum_up(std::int64_t first, int objects, double* out) {
    std::fill(out, out + kNumbers, std::numeric_limits<double>::quiet_NaN());
    const int count = ranker_.count();
    out[expected] = expected_;
    out[assignments] = count;
    if (count == 0) {
      out[nll] = kInfinity;
      return;
    }
    terms_.resize(count);
    for (int a = 0; a < count; ++a) terms_[a] = -ranker_.total(a);
    out[nll] = expected_ + all_unmatched_ - log_sum(terms_, terms_[0]);
    double box = 0.0, label = 0.0, left = 0.0, clutter = 0.0;
    int clutter_count = 0, floored = 0;
    taken_.assign(sure_.size(), 0);
    for (int o = 0; o < objects; ++o) {
      const int i = ranker_.column(0, o);
      if (i < 0) {
        clutter += alone_[o];
        ++clutter_count;
        floored += floored_[o];
      } else {
        taken_[i] = 1;
        box -= sure_[i].density.log_at(truth_.boxes + 4 * (first + o));
        label -= log_label(sure_[i], truth_.labels[first + o]);
      }
    }
    for (std::size_t i = 0; i < sure_.size(); ++i)
      if (!taken_[i]) left -= sure_[i].log_background;
    out[matched_box] = box;
    out[matched_label] = label;
    out[unmatched] = left;
    out[missed] = clutter;
    out[missed_objects] = clutter_count;
    out[floored_objects] = floored;
  }

  // log of the sum of exp(terms), given the largest term; -infinity without terms.
  static double log_sum(const std::vector<double>& terms, double greatest) {
    if (greatest == -kInfinity) return greatest;
    double sum = 0.0;
    for (const double term : terms) sum += std::exp(term - greatest);
    return greatest + std::log(sum);
  }

  Found<T> found_;
  Truth truth_;
  Rules rules_;
  AssignmentRanker ranker_;
  std::vector<Component> sure_, clutter_;
  std::vector<double> cost_, alone_, terms_;
  std::vector<char> floored_, taken_;
  double expected_ = 0.0;  // expected number of clutter objects
  double all_unmatched_ = 0.0;  // -log of the probability that all Bernoulli detections are background
};

// Writes kNumbers numbers for each image.
template <class T>
void measure_images(std::ptrdiff_t images, const Found<T>& found, const Truth& truth, const Rules& rules, int threads,
                    Stop& stop, double* out) {
  threads = static_cast<int>(std::clamp<std::ptrdiff_t>(images, 1, std::max(threads, 1)));
  std::vector<ImageMeasurer<T>> measurers;
  measurers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) measurers.emplace_back(found, truth, rules, CheckInterrupt{&stop, i});
  for_each_index(images, threads, stop,
                 [&](int worker, std::ptrdiff_t i) { measurers[worker].measure(i, out + kNumbers * i); });
}

}  // namespace probox::pmb
