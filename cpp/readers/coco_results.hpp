// COCO results: a list of detections, parsed into columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coco_result_masks.hpp"
#include "joined_columns.hpp"
#include "json_reader.hpp"
#include "large_column.hpp"
#include "pieces.hpp"
#include "problems.hpp"
#include "some_rows.hpp"

namespace probox::coco {

// Columns of a results file, in the order of the file.
struct Results {
  LargeColumn<std::int64_t> entries, image_ids;
  LargeColumn<std::int32_t> labels;
  LargeColumn<double> scores, corners, extents;  // corners and extents are NaN without a box
  SomeRows<float> all_scores;
  LargeColumn<std::int64_t> cls_prob_rows;  // rows whose all_scores was given as cls_prob
  SomeRows<double> covariances;
  std::int64_t unknown_image_rows = 0;
  ResultMasks masks;
  LargeColumn<std::int64_t> unknown_images;  // without adjacent duplicates: at least one entry per unknown image
  // Named images without adjacent duplicates: `file_name`, or an `image_id` that is a string; the entry, and the number
  // in `image_id`, if it is one.
  std::vector<std::string> names;
  LargeColumn<std::int64_t> name_entries, name_ids;
  LargeColumn<std::uint8_t> name_has_id;

  void add_name(std::string name, std::int64_t entry, std::int64_t id, std::uint8_t has_id) {
    if (!names.empty() && names.back() == name && name_ids.back() == id && name_has_id.back() == has_id) return;
    names.push_back(std::move(name));
    name_entries.push_back(entry);
    name_ids.push_back(id);
    name_has_id.push_back(has_id);
  }
};

// The known images and categories, as sorted ids, one column per category. Without them only the structure is checked.
struct Known {
  bool given;
  const std::int64_t* image_ids;
  std::size_t images;
  const std::int64_t* category_ids;
  std::size_t categories;
  std::unordered_map<std::string, std::int64_t> images_by_name = {};  // takes precedence over image_id
};

class ResultsReader {
 public:
  ResultsReader(json::Reader& in, Problems& problems, const Known& known, const SegmentationLimits& limits)
      : in_(in), problems_(problems), known_(known), limits_(limits), masks_(limits, results_.masks) {}

  Results read(const Sharing& sharing = {}) {
    std::vector<Adopted<Results>> pieces;
    problems_.guard([&] {
      if (in_.peek() != '[') in_.mismatch(words::list_of_detections);
      in_.enter_array();
      pieces = read_pieces<Results>(in_, sharing, BetweenObjects(in_.at()),
                                    [this](auto& in, auto stop, auto& wanted) { return read_piece(in, stop, wanted); });
      while (in_.next_item()) read_row();
      in_.finish();
    });
    if (pieces.empty()) return std::move(results_);
    pieces.push_back({std::move(results_), 0});
    return joined(pieces, sharing.threads);
  }

 private:
  void read_row() {
    problems_.row(in_, [this](auto& image) { read_detection(image); });
  }

  template <class Wanted>
  std::optional<Results> read_piece(json::Reader& in, const char* stop, const Wanted& wanted) const {
    Problems problems(/*lenient=*/false, /*max_examples=*/0);
    ResultsReader own(in, problems, known_, limits_);
    problems.guard([&] { read_values(in, stop, wanted, [&own] { own.read_row(); }); });
    if (!problems.groups().empty()) return std::nullopt;
    return std::move(own.results_);
  }

  static Results joined(std::vector<Adopted<Results>>& pieces, int threads) {
    Results all;
    std::vector<std::int64_t> first_rows{0};
    for (const Adopted<Results>& piece : pieces) {
      first_rows.push_back(first_rows.back() + static_cast<std::int64_t>(piece.part.labels.size()));
      all.unknown_image_rows += piece.part.unknown_image_rows;
    }
    const auto first_entry = [&](std::size_t k) { return pieces[k].first; };
    const auto first_row = [&](std::size_t k) { return first_rows[k]; };
    JoinedColumns<Results> join(pieces, threads);
    all.entries = join.column(&Results::entries, first_entry);
    all.image_ids = join.column(&Results::image_ids);
    all.labels = join.column(&Results::labels);
    all.scores = join.column(&Results::scores);
    all.corners = join.column(&Results::corners);
    all.extents = join.column(&Results::extents);
    all.all_scores = join.some_rows(&Results::all_scores, first_row);
    all.cls_prob_rows = join.column(&Results::cls_prob_rows, first_row);
    all.covariances = join.some_rows(&Results::covariances, first_row);
    all.unknown_images = join.column(&Results::unknown_images);
    std::size_t numbers = 0;
    for (const Adopted<Results>& piece : pieces) numbers += piece.part.masks.segmentations.numbers.size();
    all.masks.segmentations.numbers.reserve(numbers);
    for (std::size_t at = 0; at < pieces.size(); ++at) {
      Adopted<Results>& piece = pieces[at];
      Results& part = piece.part;
      all.masks.append(part.masks, first_rows[at]);
      part.masks = ResultMasks();
      for (std::size_t k = 0; k < part.names.size(); ++k) {
        all.add_name(std::move(part.names[k]), part.name_entries[k] + piece.first, part.name_ids[k],
                     part.name_has_id[k]);
      }
    }
    return all;
  }

  static constexpr double rounding = 1e-3;
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  // Indices of keys in SeenKeys.
  static constexpr int all_scores_ = 4, covariances_ = 5, cls_prob_ = 6, bbox_covar_ = 7, file_name_ = 8;

  void read_detection(std::optional<std::int64_t>& image) {
    std::string_view key;
    SeenKeys seen;
    std::int64_t image_id = 0, category = 0;
    double box[4] = {unknown, unknown, unknown, unknown};
    double score = 0;
    double covariances[8];
    const std::int64_t entry = in_.index();
    name_.clear();
    masks_.clear();
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "image_id") {
        seen.mark(in_, 0);
        if (in_.peek() == '"') {
          const std::string_view text = in_.string();
          if (name_.empty()) name_ = text;
        } else {
          image = image_id = in_.integer();
        }
      } else if (key == "file_name" && in_.peek() == '"') {
        seen.mark(in_, file_name_);
        if (const std::string_view text = in_.string(); !text.empty()) name_ = text;
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
        seen.mark(in_, all_scores_);
        read_all_scores();
      } else if (key == "covars") {
        seen.mark(in_, covariances_);
        read_covariances(in_, covariances);
      } else if (key == "cls_prob") {  // another name for all_scores, optionally with background last
        seen.mark(in_, all_scores_);
        seen.mark(in_, cls_prob_);
        read_all_scores(/*background=*/1);
      } else if (key == "bbox_covar") {
        seen.mark(in_, bbox_covar_);
        if (read_box_covariance(covariances)) seen.mark(in_, covariances_);
      } else if (!masks_.read(in_, key)) {
        in_.skip();
      }
    }
    seen.require(in_, 0, "image_id");
    if (!masks_.has_pixels()) seen.require(in_, 2, "bbox");
    if (!seen.has(all_scores_)) {
      seen.require(in_, 1, "category_id");
      seen.require(in_, 3, "score");
    }
    if (!name_.empty() || !image) {
      results_.add_name(name_, entry, image.value_or(0), image ? 1 : 0);
      const auto found = known_.images_by_name.find(name_);
      if (found != known_.images_by_name.end()) {
        image = image_id = found->second;
      } else if (!image && known_.given) {
        ++results_.unknown_image_rows;
        return;
      }
    }
    if (!image_known(image_id)) {
      ++results_.unknown_image_rows;
      if (results_.unknown_images.empty() || results_.unknown_images.back() != image_id) {
        results_.unknown_images.push_back(image_id);
      }
      return;
    }
    const auto row = static_cast<std::int64_t>(results_.image_ids.size());
    masks_.commit(row, seen.has(2));
    if (seen.has(all_scores_) && known_.given) {
      if (!seen.has(1)) {
        column_ = static_cast<std::int32_t>(std::max_element(probabilities_.begin(), probabilities_.end()) -
                                            probabilities_.begin());
      }
      if (!seen.has(3)) score = probabilities_.empty() ? 0.0 : probabilities_[static_cast<std::size_t>(column_)];
      results_.all_scores.rows.push_back(row);
      if (seen.has(cls_prob_)) results_.cls_prob_rows.push_back(row);
      for (const double probability : probabilities_)
        results_.all_scores.values.push_back(static_cast<float>(probability));
    }
    if (seen.has(covariances_)) {
      results_.covariances.rows.push_back(row);
      results_.covariances.values.insert(results_.covariances.values.end(), covariances, covariances + 8);
    }
    results_.entries.push_back(entry);
    results_.image_ids.push_back(image_id);
    results_.labels.push_back(column_);
    results_.scores.push_back(score);
    results_.corners.insert(results_.corners.end(), {box[0], box[1], box[0] + box[2], box[1] + box[3]});
    results_.extents.insert(results_.extents.end(), {box[2], box[3]});
  }

  void check_score(double score) const {
    if (!std::isfinite(score)) in_.fail(Trouble::score_not_finite);
    if (score < -rounding || score > 1.0 + rounding) {
      char text[40];
      std::snprintf(text, sizeof text, "%.6g", score);
      in_.fail(Trouble::score_range, std::string(text));
    }
  }

  // One probability per category, and with `background` optionally one more, which is dropped.
  void read_all_scores(std::size_t background = 0) {
    probabilities_.clear();
    const json::Reader::Mark start = in_.mark();
    if (in_.peek() != '[') in_.mismatch(words::list_of_numbers);
    in_.enter_array();
    while (in_.next_item()) probabilities_.push_back(in_.number());
    if (!known_.given) return;
    if (background > 0 && probabilities_.size() == known_.categories + background) probabilities_.pop_back();
    if (probabilities_.size() != known_.categories) {
      in_.rewind(start);
      in_.fail(background > 0 ? Trouble::cls_prob_length : Trouble::all_scores_length, known_.categories,
               probabilities_.size());
    }
  }

  // Skips null or an empty list and returns true; keeps any other value and returns false.
  bool skip_empty() {
    if (in_.next_is_null()) {
      in_.null();
      return true;
    }
    if (in_.peek() != '[') return false;
    const json::Reader::Mark start = in_.mark();
    in_.enter_array();
    if (!in_.next_item()) return true;
    in_.rewind(start);
    return false;
  }

  // Reads the covariance of x, y, w, h as that of the corners (x, y) and (x + w, y + h); false without one.
  bool read_box_covariance(double* out) {
    if (skip_empty()) return false;
    double full[4][4];
    in_.fixed_list(4, [&](int row) { in_.numbers(full[row], 4); });
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        out[2 * i + j] = full[i][j];
        out[4 + 2 * i + j] = (full[i][j] + full[i + 2][j + 2]) + (full[i][j + 2] + full[i + 2][j]);
      }
    }
    return true;
  }

  std::int32_t column_of(std::int64_t category) const {
    if (!known_.given) return 0;
    const std::int64_t* end = known_.category_ids + known_.categories;
    const std::int64_t* found = std::lower_bound(known_.category_ids, end, category);
    if (found == end || *found != category) in_.fail(Trouble::unknown_category, category, known_.categories);
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
  SegmentationLimits limits_;
  Results results_;
  ResultMasksReader masks_;
  std::int32_t column_ = 0;
  std::optional<std::int64_t> last_known_;
  std::string name_;
  std::vector<double> probabilities_;
};

}  // namespace probox::coco
