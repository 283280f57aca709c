// The pairs of many images with a quality above 0.
//
// An image's detections are split into pieces, which are distributed over threads. Each writes to its own memory, so
// results are bit-identical for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "large_array.hpp"
#include "object_index.hpp"
#include "pair_quality.hpp"
#include "parallel.hpp"
#include "settings.hpp"

namespace probox {

// Thrown if an image exceeds the limit of pairs with a quality: the first such image.
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

// Pairs with a quality above 0: rows of the tables, and kQualities numbers each. By image, then object, then detection.
struct PairColumns {
  std::size_t count;
  LargeArray<std::int64_t> detection, object;
  LargeArray<double> qualities;

  explicit PairColumns(std::size_t count)
      : count(count), detection(make_large_array<std::int64_t>(count)), object(make_large_array<std::int64_t>(count)),
        qualities(make_large_array<double>(kQualities * count)) {}
};

// Number of objects and detections of an image.
struct ImageCounts {
  std::int64_t objects, detections;
};

namespace detail {

struct Pair {
  int object, detection;
  Qualities qualities;
};

// Detections begin..end-1 of an image, and their pairs.
struct Piece {
  std::ptrdiff_t image;
  int begin, end;
  std::vector<Pair> pairs;
};

// Splits images into pieces, by image, then detection. A detection costs microseconds, and so does a scored pair:
// pieces are small, so that threads finish at about the same time, and most images are a single piece.
template <class CountsAt>
std::vector<Piece> cut_into_pieces(std::size_t images, CountsAt&& counts_at) {
  constexpr std::int64_t possible_pairs = std::int64_t{1} << 14, detections = 512;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < images; ++i) {
    const ImageCounts counts = counts_at(i);
    if (counts.objects == 0) continue;
    const std::int64_t size = std::clamp<std::int64_t>(possible_pairs / counts.objects, 4, detections);
    for (std::int64_t begin = 0; begin < counts.detections; begin += size)
      pieces.push_back({static_cast<std::ptrdiff_t>(i),
                        static_cast<int>(begin),
                        static_cast<int>(std::min(begin + size, counts.detections)),
                        {}});
  }
  return pieces;
}

// Counts the pairs of each image while several threads find them, and stores the first image above the limit.
class PairLimit {
 public:
  PairLimit(std::size_t images, std::size_t most) : most_(most), found_(images) {}

  // Whether the pairs of an image are still needed: earlier images may turn out to be the first above the limit.
  bool wants(std::ptrdiff_t image) const { return image < first_over_.load(std::memory_order_relaxed); }

  void add(std::ptrdiff_t image, std::size_t pairs) {
    if (pairs == 0 || found_[image].fetch_add(pairs, std::memory_order_relaxed) + pairs <= most_) return;
    std::ptrdiff_t first = first_over_.load(std::memory_order_relaxed);
    while (image < first && !first_over_.compare_exchange_weak(first, image)) {
    }
  }

  void check() const {
    if (first_over_ != kNone) throw TooManyPairs{first_over_};
  }

 private:
  static constexpr std::ptrdiff_t kNone = std::numeric_limits<std::ptrdiff_t>::max();
  std::size_t most_;
  std::vector<std::atomic<std::size_t>> found_;
  std::atomic<std::ptrdiff_t> first_over_{kNone};
};

// Scores pieces; reuses its memory, and the index of the image while it is the same.
template <class T>
class PieceScorer {
 public:
  PieceScorer(const Settings& settings, CheckInterrupt check_interrupt) : scorer_(settings, check_interrupt) {}

  template <class ImageAt>
  void score(Piece& piece, ImageAt&& image_at, PairLimit& limit) {
    if (!limit.wants(piece.image)) return;
    if (piece.image != number_) {
      image_ = image_at(piece.image);
      index_.build(image_.masks, image_.width, image_.height, image_.detections);
      number_ = piece.image;
    }
    pairs_.clear();
    scorer_.qualities(image_, index_, piece.begin, piece.end, false, [&](int d, const auto& scored) {
      const std::size_t before = pairs_.size();
      for (const auto& [object, qualities] : scored)
        if (qualities.pairwise > 0.0) pairs_.push_back({object, d, qualities});
      limit.add(piece.image, pairs_.size() - before);
      if (!limit.wants(piece.image)) pairs_.clear();
    });
    piece.pairs.assign(pairs_.begin(), pairs_.end());  // allocates exactly the memory needed
  }

 private:
  ImageScorer<T> scorer_;
  std::ptrdiff_t number_ = -1;
  Image image_{};
  ObjectIndex index_;
  std::vector<Pair> pairs_;
};

// Writes the pairs of an image, which are ordered by detection, in the order of object, then detection, starting at row
// `at`. Frees the pieces.
inline void write_by_object(Piece* begin, Piece* end, const ImageCounts& counts, std::int64_t first_object,
                            std::int64_t first_detection, std::size_t at, PairColumns& out) {
  std::vector<std::size_t> next(static_cast<std::size_t>(counts.objects) + 1, 0);
  for (const Piece* piece = begin; piece != end; ++piece)
    for (const Pair& pair : piece->pairs) ++next[pair.object + 1];
  next[0] = at;
  for (std::size_t o = 1; o < next.size(); ++o) next[o] += next[o - 1];
  for (Piece* piece = begin; piece != end; ++piece) {
    for (const Pair& pair : piece->pairs) {
      const std::size_t row = next[pair.object]++;
      out.detection[row] = first_detection + pair.detection;
      out.object[row] = first_object + pair.object;
      write_qualities(pair.qualities, out.qualities.get() + kQualities * row);
    }
    std::vector<Pair>().swap(piece->pairs);
  }
}

}  // namespace detail

// Scores the images image_at(0), image_at(1), ... with sizes counts_at(i).
template <class T, class CountsAt, class ImageAt>
PairColumns score_images(std::size_t count, CountsAt&& counts_at, ImageAt&& image_at, const Settings& settings,
                         std::size_t max_pairs, int threads, Stop& stop) {
  std::vector<detail::Piece> pieces = detail::cut_into_pieces(count, counts_at);
  const auto piece_count = static_cast<std::ptrdiff_t>(pieces.size());
  threads = static_cast<int>(std::clamp<std::ptrdiff_t>(piece_count, 1, std::max(threads, 1)));
  detail::PairLimit limit(count, max_pairs);
  std::vector<detail::PieceScorer<T>> scorers;
  scorers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) scorers.emplace_back(settings, CheckInterrupt{&stop, i});
  for_each_index(piece_count, threads, stop,
                 [&](int worker, std::ptrdiff_t i) { scorers[worker].score(pieces[i], image_at, limit); });
  limit.check();

  std::size_t total = 0;
  for (const detail::Piece& piece : pieces) total += piece.pairs.size();
  PairColumns found(total);
  std::size_t at = 0;
  std::int64_t first_object = 0, first_detection = 0;
  auto piece = pieces.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const ImageCounts counts = counts_at(i);
    const auto first = piece;
    std::size_t pairs = 0;
    for (; piece != pieces.end() && piece->image == static_cast<std::ptrdiff_t>(i); ++piece)
      pairs += piece->pairs.size();
    if (pairs > 0)
      detail::write_by_object(&*first, &*first + (piece - first), counts, first_object, first_detection, at, found);
    at += pairs;
    first_object += counts.objects;
    first_detection += counts.detections;
  }
  return found;
}

// The qualities of every pair of one image, zeros included: objects x detections x kQualities.
template <class T>
void qualities_of_all_pairs(const Image& image, const Settings& settings, Stop& stop, double* out) {
  ImageScorer<T> scorer(settings, CheckInterrupt{&stop});
  ObjectIndex index;
  index.build(image.masks, image.width, image.height, image.detections);
  scorer.qualities(image, index, 0, image.detections, true, [&](int d, const auto& scored) {
    for (const auto& [object, qualities] : scored)
      write_qualities(qualities, out + kQualities * (static_cast<std::size_t>(object) * image.detections + d));
  });
}

}  // namespace probox
