// COCO results: a list of detections, straight into columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
#include "large_array.hpp"
#include "problems.hpp"

namespace probox::coco {

// Numbers that only some rows have: which rows, and their values one after the other.
template <class T>
struct SomeRows {
  std::vector<std::int64_t> rows;
  std::vector<T> values;

  // Spread over all rows; those without a value get zeros.
  std::vector<T> spread(std::size_t count, std::size_t width) const {
    std::vector<T> all(count * width);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      std::copy_n(values.data() + k * width, width, all.data() + static_cast<std::size_t>(rows[k]) * width);
    }
    return all;
  }
};

// Read the covariances of the two corners, [[[xx, xy], [xy, yy]], [[xx, xy], [xy, yy]]].
inline void read_covariances(json::Reader& in, double* out) {
  in.fixed_list(2, [&](int corner) {
    in.fixed_list(2, [&](int row) { in.numbers(out + 4 * corner + 2 * row, 2); });
  });
}

// Columns of a results file, in the order of the file.
struct Results {
  std::vector<std::int64_t> entries, image_ids;
  std::vector<std::int32_t> labels;
  std::vector<double> scores, corners, sizes;
  SomeRows<float> all_scores;
  SomeRows<double> covariances;
  std::int64_t unknown_image_rows = 0;
  std::vector<std::int64_t> unknown_images;  // distinct neighbours: at least one entry per unknown image
};

// The known images and categories, as sorted ids, one column per category. Without them only the form is checked.
struct Known {
  bool given;
  const std::int64_t* image_ids;
  std::size_t images;
  const std::int64_t* category_ids;
  std::size_t categories;
};

class ResultsReader {
 public:
  ResultsReader(json::Reader& in, Problems& problems, const Known& known) : in_(in), problems_(problems), known_(known) {}

  Results read() {
    problems_.guard([this] {
      if (in_.peek() != '[') in_.mismatch("a list of detections");
      in_.enter_array();
      while (in_.next_item()) {
        problems_.row(in_, [this](auto& image) { read_detection(image); });
      }
      in_.finish();
    });
    return std::move(results_);
  }

 private:
  static constexpr double rounding = 1e-3;

  void read_detection(std::optional<std::int64_t>& image) {
    std::string_view key;
    SeenKeys seen;
    std::int64_t image_id = 0, category = 0;
    double box[4];
    double score = 0;
    double covariances[8];
    const std::int64_t entry = in_.index();
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "image_id") {
        seen.mark(in_, 0);
        image = image_id = in_.integer();
      } else if (key == "category_id") {
        seen.mark(in_, 1);
        category = in_.integer();
        column_ = column_of(category);
      } else if (key == "bbox") {
        seen.mark(in_, 2);
        in_.numbers(box, 4);
      } else if (key == "score") {
        seen.mark(in_, 3);
        score = in_.number();
        check_score(score);
      } else if (key == "all_scores") {
        seen.mark(in_, 4);
        read_all_scores();
      } else if (key == "covars") {
        seen.mark(in_, 5);
        read_covariances(in_, covariances);
      } else {
        in_.skip();
      }
    }
    seen.require(in_, 0, "image_id");
    seen.require(in_, 2, "bbox");
    if (!seen.has(4)) {
      seen.require(in_, 1, "category_id");
      seen.require(in_, 3, "score");
    }
    if (!image_known(image_id)) {
      ++results_.unknown_image_rows;
      if (results_.unknown_images.empty() || results_.unknown_images.back() != image_id) {
        results_.unknown_images.push_back(image_id);
      }
      return;
    }
    const auto row = static_cast<std::int64_t>(results_.image_ids.size());
    if (seen.has(4) && known_.given) {
      if (!seen.has(1)) {
        column_ = static_cast<std::int32_t>(std::max_element(probabilities_.begin(), probabilities_.end()) -
                                            probabilities_.begin());
      }
      if (!seen.has(3)) score = probabilities_.empty() ? 0.0 : probabilities_[static_cast<std::size_t>(column_)];
      results_.all_scores.rows.push_back(row);
      for (const double probability : probabilities_) results_.all_scores.values.push_back(static_cast<float>(probability));
    }
    if (seen.has(5)) {
      results_.covariances.rows.push_back(row);
      results_.covariances.values.insert(results_.covariances.values.end(), covariances, covariances + 8);
    }
    results_.entries.push_back(entry);
    results_.image_ids.push_back(image_id);
    results_.labels.push_back(column_);
    results_.scores.push_back(score);
    results_.corners.insert(results_.corners.end(), {box[0], box[1], box[0] + box[2], box[1] + box[3]});
    results_.sizes.insert(results_.sizes.end(), {box[2], box[3]});
  }

  void check_score(double score) const {
    if (!std::isfinite(score)) {
      in_.fail("non-finite label probability", "expected a finite score", "leave out detections that diverged");
    }
    if (score < -rounding || score > 1.0 + rounding) {
      char text[80];
      std::snprintf(text, sizeof text, "expected a score between 0 and 1, but got %.6g", score);
      in_.fail("label probability outside [0, 1]", text, "apply softmax or sigmoid before writing");
    }
  }

  void read_all_scores() {
    probabilities_.clear();
    const json::Reader::Mark start = in_.mark();
    if (in_.peek() != '[') in_.mismatch("a list of numbers");
    in_.enter_array();
    while (in_.next_item()) probabilities_.push_back(in_.number());
    if (known_.given && probabilities_.size() != known_.categories) {
      in_.rewind(start);
      in_.fail("wrong length", "expected " + std::to_string(known_.categories) + " probabilities, but got " +
                                   std::to_string(probabilities_.size()),
               "write one per category of the ground truth, in order of category id");
    }
  }

  std::int32_t column_of(std::int64_t category) const {
    if (!known_.given) return 0;
    const std::int64_t* end = known_.category_ids + known_.categories;
    const std::int64_t* found = std::lower_bound(known_.category_ids, end, category);
    if (found == end || *found != category) {
      in_.fail("unknown category",
               "category " + std::to_string(category) + " is not among the " + std::to_string(known_.categories) +
                   " categories of the ground truth",
               "use the ground truth's category ids");
    }
    return static_cast<std::int32_t>(found - known_.category_ids);
  }

  bool image_known(std::int64_t image) {
    if (!known_.given || (last_known_ && *last_known_ == image)) return true;
    if (!std::binary_search(known_.image_ids, known_.image_ids + known_.images, image)) return false;
    last_known_ = image;
    return true;
  }

  json::Reader& in_;
  Problems& problems_;
  const Known& known_;
  Results results_;
  std::int32_t column_ = 0;
  std::optional<std::int64_t> last_known_;
  std::vector<double> probabilities_;
};

// A single score as label probabilities: its class gets it, and the others share what is left evenly.
inline void spread_evenly(double score, std::size_t label, float* out, std::size_t columns) {
  const double rest = columns > 1 ? (1.0 - score) / static_cast<double>(columns - 1) : 0.0;
  std::fill_n(out, columns, static_cast<float>(rest));
  out[label] = static_cast<float>(score);
}

// How many bytes the label matrix of so many detections may take: 6 kB each, which is 1,536 classes; more for few
// detections, and never more than 16 GB. A small file can name a detection for every byte of a matrix of gigabytes.
inline std::size_t max_label_bytes(std::size_t rows) {
  constexpr std::size_t always_fine = std::size_t{1} << 28, per_row = 6144, most = std::size_t{1} << 34;
  return std::min(std::max(always_fine, rows * per_row), most);
}

inline bool label_matrix_fits(std::size_t rows, std::size_t columns) {
  return columns == 0 || rows <= max_label_bytes(rows) / (columns * sizeof(float));
}

// The label matrix (rows x columns): all scores where given, otherwise the single score spread.
inline LargeArray<float> label_matrix(const Results& results, std::size_t columns) {
  const std::size_t rows = results.labels.size();
  LargeArray<float> matrix = make_large_array<float>(rows * columns);
  std::size_t given = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    if (columns == 0) break;
    float* out = matrix.get() + row * columns;
    if (given < results.all_scores.rows.size() && results.all_scores.rows[given] == static_cast<std::int64_t>(row)) {
      std::copy_n(results.all_scores.values.data() + given * columns, columns, out);
      ++given;
      continue;
    }
    spread_evenly(results.scores[row], static_cast<std::size_t>(results.labels[row]), out, columns);
  }
  return matrix;
}

}  // namespace probox::coco
