// Segmentations of COCO files: polygons or run lengths, parsed into columns.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "coco_run_lengths.hpp"
#include "json_reader.hpp"
#include "large_column.hpp"
#include "problems.hpp"

namespace probox::coco {

// Limits of the sides of images, and of the coordinates and run lengths of one mask and of all masks of a file.
struct SegmentationLimits {
  std::int64_t max_side;
  std::size_t max_mask_numbers, max_numbers;
};

enum Segmentation : std::uint8_t { no_mask = 0, polygons = 1, run_lengths = 2 };

// One entry per segmentation, which consists of pieces; the numbers of a piece are polygon coordinates or run lengths.
struct Segmentations {
  LargeColumn<std::uint8_t> kinds;
  LargeColumn<std::int64_t> rle_sizes;  // height, width
  LargeColumn<std::int64_t> piece_counts, number_counts;
  LargeColumn<double> numbers;

  void append(const Segmentations& more) {
    const auto add = [](auto& all, const auto& own) { all.insert(all.end(), own.begin(), own.end()); };
    add(kinds, more.kinds);
    add(rle_sizes, more.rle_sizes);
    add(piece_counts, more.piece_counts);
    add(number_counts, more.number_counts);
    add(numbers, more.numbers);
  }
};

// Reads one segmentation at a time, and adds it to the columns when its entry is complete.
class SegmentationReader {
 public:
  SegmentationReader(const SegmentationLimits& limits, Segmentations& columns) : limits_(limits), columns_(columns) {}

  // Starts an entry without a segmentation.
  void clear() {
    kind_ = no_mask;
    height_ = width_ = 0;
    numbers_.clear();
    counts_.clear();
  }

  // null and an empty list are no segmentation.
  void read(json::Reader& in) {
    switch (in.peek()) {
      case 'n':
        in.null();
        return;
      case '[':
        return read_polygons(in);
      case '{':
        return read_run_lengths(in);
      default:
        in.mismatch(words::segmentation);
    }
  }

  Segmentation kind() const { return kind_; }

  void commit() {
    columns_.kinds.push_back(kind_);
    columns_.rle_sizes.push_back(height_);
    columns_.rle_sizes.push_back(width_);
    columns_.piece_counts.push_back(static_cast<std::int64_t>(counts_.size()));
    columns_.number_counts.insert(columns_.number_counts.end(), counts_.begin(), counts_.end());
    columns_.numbers.insert(columns_.numbers.end(), numbers_.begin(), numbers_.end());
  }

 private:
  void read_polygons(json::Reader& in) {
    in.enter_array();
    while (in.next_item()) {
      const std::size_t start = numbers_.size();
      in.enter_array();
      while (in.next_item()) {
        const double value = in.number();
        if (!(std::abs(value) <= 1e8)) in.fail(Trouble::polygon_range);
        numbers_.push_back(value);
        check_room(in, numbers_.size());
      }
      const std::size_t count = numbers_.size() - start;
      // An empty polygon has no pixels, and is valid.
      if (count % 2 != 0 || count == 2) in.fail(Trouble::polygon_points, count);
      counts_.push_back(static_cast<std::int64_t>(count));
      kind_ = polygons;
    }
  }

  void read_run_lengths(json::Reader& in) {
    std::string_view key;
    SeenKeys seen;
    bool compressed = false;
    in.enter_object();
    while (in.next_key(key)) {
      if (key == "size") {
        seen.mark(in, 0);
        double size[2];
        in.numbers(size, 2);
        for (const double side : size) {
          if (!(side >= 1 && side <= static_cast<double>(limits_.max_side))) in.fail(Trouble::run_lengths_size);
        }
        height_ = static_cast<std::int64_t>(size[0]);
        width_ = static_cast<std::int64_t>(size[1]);
      } else if (key == "counts") {
        seen.mark(in, 1);
        compressed = in.peek() == '"';
        if (compressed) {
          const std::string_view code = in.string();
          check_room(in, code.size());
          if (!decode_counts(code, numbers_)) in.fail(Trouble::run_lengths_code);
        } else {
          read_counts(in);
        }
      } else {
        in.skip();
      }
    }
    seen.require(in, 0, "size");
    seen.require(in, 1, "counts");
    check_counts(in, compressed);
    counts_.push_back(static_cast<std::int64_t>(numbers_.size()));
    kind_ = run_lengths;
  }

  void read_counts(json::Reader& in) {
    if (in.peek() != '[') in.mismatch(words::counts);
    in.enter_array();
    while (in.next_item()) {
      const std::int64_t count = in.integer();
      if (count < 0) in.fail(Trouble::run_lengths_negative, count);
      numbers_.push_back(static_cast<double>(count));
      check_room(in, numbers_.size());
    }
  }

  void check_room(const json::Reader& in, std::size_t numbers) const {
    if (numbers > limits_.max_mask_numbers || columns_.numbers.size() + numbers > limits_.max_numbers) {
      in.fail(Trouble::mask_numbers);
    }
  }

  void check_counts(const json::Reader& in, bool compressed) const {
    double total = 0;
    for (const double count : numbers_) total += count;
    const double area = static_cast<double>(height_) * static_cast<double>(width_);
    // The COCO API may omit the last run of a compressed code; with an even number of runs so far it is background.
    const bool complete = total == area || (compressed && total < area && numbers_.size() % 2 == 0);
    if (!complete) in.fail(Trouble::run_lengths_total, whole(area), height_, width_, whole(total));
  }

  static std::string whole(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.0f", value);
    return text;
  }

  SegmentationLimits limits_;
  Segmentations& columns_;
  Segmentation kind_ = no_mask;
  std::int64_t height_ = 0, width_ = 0;
  std::vector<double> numbers_;
  std::vector<std::int64_t> counts_;  // of numbers of each piece
};

// The start of each part, and the end of the last one.
inline LargeColumn<std::int64_t> starts_of(const LargeColumn<std::int64_t>& counts) {
  LargeColumn<std::int64_t> starts(counts.size() + 1);
  starts[0] = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) starts[k + 1] = starts[k] + counts[k];
  return starts;
}

}  // namespace probox::coco
