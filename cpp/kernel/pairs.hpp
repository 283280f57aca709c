// The pairs of many images that have a quality.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pair_quality.hpp"
#include "parallel.hpp"
#include "settings.hpp"

namespace probox {

// Thrown when an image has more pairs with a quality than it may.
struct TooManyPairs {
  std::ptrdiff_t image;
};

constexpr int kQualities = 5;

inline void write_qualities(const Qualities& q, double* out) {
  out[0] = q.pairwise;
  out[1] = q.spatial;
  out[2] = q.label;
  out[3] = q.foreground;
  out[4] = q.background;
}

// Pairs with a quality above 0: rows of the tables, and kQualities numbers each.
struct PairColumns {
  std::vector<std::int64_t> detection, object;
  std::vector<double> qualities;
};

namespace detail {

struct Pair {
  std::int64_t object, detection;
  Qualities qualities;
};

// The pairs of an image in order of object, then detection.
inline PairColumns by_object(std::vector<Pair>& pairs, const Image& image) {
  const auto before = [](const Pair& a, const Pair& b) { return a.object < b.object; };
  if (!std::is_sorted(pairs.begin(), pairs.end(), before)) std::stable_sort(pairs.begin(), pairs.end(), before);
  PairColumns found;
  found.detection.reserve(pairs.size());
  found.object.reserve(pairs.size());
  found.qualities.resize(kQualities * pairs.size());
  double* out = found.qualities.data();
  for (const Pair& pair : pairs) {
    found.detection.push_back(image.first_detection + pair.detection);
    found.object.push_back(image.first_object + pair.object);
    write_qualities(pair.qualities, out);
    out += kQualities;
  }
  return found;
}

}  // namespace detail

// Scores the images image_at(0), image_at(1), ...; returns the pairs of each.
template <class T, class ImageAt>
std::vector<PairColumns> score_images(std::size_t count, ImageAt&& image_at, const Settings& settings,
                                      std::size_t max_pairs, int threads, Stop& stop) {
  std::vector<PairColumns> found(count);
  threads = static_cast<int>(std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(count), 1, std::max(threads, 1)));
  std::vector<ImageScorer<T>> scorers;
  for (int i = 0; i < threads; ++i) scorers.emplace_back(settings, Pulse{&stop, i});
  for_each_index(static_cast<std::ptrdiff_t>(count), threads, stop, [&](int worker, std::ptrdiff_t i) {
    const Image image = image_at(i);
    std::vector<detail::Pair> pairs;
    scorers[worker].qualities(image, false, [&](int d, const std::vector<Qualities>& column) {
      for (std::size_t o = 0; o < column.size(); ++o)
        if (column[o].pairwise > 0.0) pairs.push_back({static_cast<std::int64_t>(o), d, column[o]});
      if (pairs.size() > max_pairs) throw TooManyPairs{i};
    });
    found[i] = detail::by_object(pairs, image);
  });
  return found;
}

// The qualities of every pair of one image, zeros included: objects x detections x kQualities.
template <class T>
void qualities_of_all_pairs(const Image& image, const Settings& settings, Stop& stop, double* out) {
  ImageScorer<T> scorer(settings, Pulse{&stop});
  scorer.qualities(image, true, [&](int d, const std::vector<Qualities>& column) {
    for (std::size_t o = 0; o < column.size(); ++o)
      write_qualities(column[o], out + kQualities * (o * image.detections + d));
  });
}

}  // namespace probox
