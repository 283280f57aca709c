// COCO results: a list of detections, parsed into columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coco_result_masks.hpp"
#include "joined_columns.hpp"
#include "json_reader.hpp"
#include "kernel/shared_block.hpp"
#include "large_column.hpp"
#include "pieces.hpp"
#include "problems.hpp"
#include "some_rows.hpp"

namespace probox::coco {

// Columns with a value for every detection, in the order of the file. Threads write to rows of their own.
struct Rows {
  std::size_t count = 0;
  BlockArray<std::int64_t> entries, image_ids;
  BlockArray<std::int32_t> labels;
  BlockArray<double> scores, corners, extents;  // corners and extents are NaN without a box

  Rows() : Rows(0) {}
  // Space for so many rows; those that are not written take no memory.
  explicit Rows(std::size_t room) {
    allocate_together(room, width(entries), width(image_ids), width(labels), width(scores), width(corners, 4),
                      width(extents, 2));
  }

  // Appends rows that were written further back, and adds to their entries.
  void append(std::size_t from, std::size_t rows, std::int64_t first_entry) {
    if (from != count) {
      move(entries, from, rows);
      move(image_ids, from, rows);
      move(labels, from, rows);
      move(scores, from, rows);
      move(corners, from, rows, 4);
      move(extents, from, rows, 2);
    }
    for (std::size_t row = count; first_entry != 0 && row < count + rows; ++row) entries[row] += first_entry;
    count += rows;
  }

 private:
  template <class T>
  void move(const BlockArray<T>& column, std::size_t from, std::size_t rows, std::size_t values = 1) const {
    std::copy_n(column.data() + from * values, rows * values, column.data() + count * values);
  }
};

// Values of some detections of a results file, and what it has beyond them, in the order of the file.
struct Others {
  std::size_t rows = 0;  // detections that were read
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

// The columns of a results file.
struct Results {
  Rows rows;
  Others others;
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
      : ResultsReader(in, problems, known, limits, nullptr, 0, 0) {}

  Results read(const Sharing& sharing = {}) {
    Results results;
    rows_ = &results.rows;
    std::vector<Adopted<Others>> pieces;
    problems_.guard([&] {
      if (in_.peek() != '[') in_.mismatch(words::list_of_detections);
      in_.enter_array();
      const std::vector<const char*> cuts = places_to_cut(in_, sharing, BetweenObjects(in_.at()));
      const std::vector<std::size_t> room = room_of_pieces(cuts, sharing.threads);
      results.rows = Rows(room.back());
      pieces = read_pieces<Others>(in_, cuts, sharing.threads, [&](std::size_t k, auto& in, auto stop, auto& wanted) {
        return read_piece(in, stop, wanted, room[k], room[k + 1]);
      });
      for (std::size_t k = 0; k < pieces.size(); ++k) {
        results.rows.append(room[k], pieces[k].part.rows, pieces[k].first);
      }
      row_ = results.rows.count;
      limit_ = room.back();
      while (in_.next_item()) read_row();
      in_.finish();
    });
    results.rows.count += others_.rows;
    if (pieces.empty()) {
      results.others = std::move(others_);
      return results;
    }
    pieces.push_back({std::move(others_), 0});
    results.others = joined(pieces, sharing.threads);
    return results;
  }

 private:
  // Reads into rows of its own.
  ResultsReader(json::Reader& in, Problems& problems, const Known& known, const SegmentationLimits& limits, Rows* rows,
                std::size_t row, std::size_t limit)
      : in_(in), problems_(problems), known_(known), limits_(limits), rows_(rows), row_(row), limit_(limit),
        masks_(limits, others_.masks) {}

  void read_row() {
    problems_.row(in_, [this](auto& image) { read_detection(image); });
  }

  // Reads a piece; it ends early if it was cut at a wrong place and needs more rows than a detection per brace.
  template <class Wanted>
  std::optional<Others> read_piece(json::Reader& in, const char* stop, const Wanted& wanted, std::size_t row,
                                   std::size_t limit) const {
    Problems problems(/*lenient=*/false, /*max_examples=*/0);
    ResultsReader own(in, problems, known_, limits_, rows_, row, limit);
    const auto go_on = [&] { return own.row_ < limit && wanted(); };
    problems.guard([&] { read_values(in, stop, go_on, [&own] { own.read_row(); }); });
    if (!problems.groups().empty()) return std::nullopt;
    return std::move(own.others_);
  }

  // The first row of each piece, and the end of the last: space for as many detections as it can have. Rows that are
  // not written take no memory.
  std::vector<std::size_t> room_of_pieces(const std::vector<const char*>& cuts, int threads) const {
    constexpr std::string_view shortest = R"({"image_id":1,"masks_file":"","cls_prob":[]})";
    std::vector<const char*> edges{in_.at()};
    edges.insert(edges.end(), cuts.begin(), cuts.end());
    edges.push_back(in_.end());
    std::vector<std::size_t> room(edges.size(), 0);
    for_each_index(static_cast<std::ptrdiff_t>(cuts.size() + 1), threads, [&](int, std::ptrdiff_t index) {
      const auto k = static_cast<std::size_t>(index);
      const std::size_t braces = count_of('}', edges[k], edges[k + 1]);
      const auto bytes = static_cast<std::size_t>(edges[k + 1] - edges[k]);
      room[k + 1] = std::min(braces, bytes / shortest.size() + 1);
    });
    std::partial_sum(room.begin(), room.end(), room.begin());
    return room;
  }

  static Others joined(std::vector<Adopted<Others>>& pieces, int threads) {
    Others all;
    std::vector<std::int64_t> first_rows{0};
    for (const Adopted<Others>& piece : pieces) {
      first_rows.push_back(first_rows.back() + static_cast<std::int64_t>(piece.part.rows));
      all.unknown_image_rows += piece.part.unknown_image_rows;
    }
    const auto first_row = [&](std::size_t k) { return first_rows[k]; };
    JoinedColumns<Others> join(pieces, threads);
    all.all_scores = join.some_rows(&Others::all_scores, first_row);
    all.cls_prob_rows = join.column(&Others::cls_prob_rows, first_row);
    all.covariances = join.some_rows(&Others::covariances, first_row);
    all.unknown_images = join.column(&Others::unknown_images);
    std::size_t numbers = 0;
    for (const Adopted<Others>& piece : pieces) numbers += piece.part.masks.segmentations.numbers.size();
    all.masks.segmentations.numbers.reserve(numbers);
    for (std::size_t at = 0; at < pieces.size(); ++at) {
      Adopted<Others>& piece = pieces[at];
      Others& part = piece.part;
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
  // Numbers of keys, in SeenKeys too.
  struct Key {
    enum : int {
      image_id,
      category_id,
      bbox,
      score,
      all_scores,
      covars,
      cls_prob,
      bbox_covar,
      file_name,
      segmentation,
      masks_file,
      mask_id
    };
  };
  static constexpr std::string_view key_names[] = {"image_id",   "category_id",  "bbox",       "score",
                                                   "all_scores", "covars",       "cls_prob",   "bbox_covar",
                                                   "file_name",  "segmentation", "masks_file", "mask_id"};

  void read_detection(std::optional<std::int64_t>& image) {
    int key;
    SeenKeys seen;
    std::int64_t image_id = 0;
    double box[4] = {unknown, unknown, unknown, unknown};
    double score = 0;
    double covariances[8];
    const std::int64_t entry = in_.index();
    name_.clear();
    masks_.clear();
    in_.enter_object();
    while (in_.next_key(keys_, key)) {
      switch (key) {
        case Key::image_id:
          seen.mark(in_, Key::image_id);
          if (in_.peek() == '"') {
            const std::string_view text = in_.string();
            if (name_.empty()) name_ = text;
          } else {
            image = image_id = in_.integer();
          }
          break;
        case Key::file_name:
          if (in_.peek() != '"') {
            in_.skip();
            break;
          }
          seen.mark(in_, Key::file_name);
          if (const std::string_view text = in_.string(); !text.empty()) name_ = text;
          break;
        case Key::category_id:
          seen.mark(in_, Key::category_id);
          column_ = column_of(in_.integer());
          break;
        case Key::bbox:
          seen.mark(in_, Key::bbox);
          in_.numbers(box, 4);
          break;
        case Key::score:
          seen.mark(in_, Key::score);
          score = in_.number();
          check_score(score);
          break;
        case Key::all_scores:
          seen.mark(in_, Key::all_scores);
          read_all_scores();
          break;
        case Key::covars:
          seen.mark(in_, Key::covars);
          read_covariances(in_, covariances);
          break;
        case Key::cls_prob:  // another name for all_scores, optionally with background last
          seen.mark(in_, Key::all_scores);
          seen.mark(in_, Key::cls_prob);
          read_all_scores(/*background=*/1);
          break;
        case Key::bbox_covar:
          seen.mark(in_, Key::bbox_covar);
          if (read_box_covariance(covariances)) seen.mark(in_, Key::covars);
          break;
        case Key::segmentation:
        case Key::masks_file:
        case Key::mask_id:
          masks_.read(in_, key_names[key]);
          break;
        default:
          in_.skip();
      }
    }
    seen.require(in_, Key::image_id, "image_id");
    if (!masks_.has_pixels()) seen.require(in_, Key::bbox, "bbox");
    if (!seen.has(Key::all_scores)) {
      seen.require(in_, Key::category_id, "category_id");
      seen.require(in_, Key::score, "score");
    }
    if (!name_.empty() || !image) {
      others_.add_name(name_, entry, image.value_or(0), image ? 1 : 0);
      const auto found = known_.images_by_name.find(name_);
      if (found != known_.images_by_name.end()) {
        image = image_id = found->second;
      } else if (!image && known_.given) {
        ++others_.unknown_image_rows;
        return;
      }
    }
    if (!image_known(image_id)) {
      ++others_.unknown_image_rows;
      if (others_.unknown_images.empty() || others_.unknown_images.back() != image_id) {
        others_.unknown_images.push_back(image_id);
      }
      return;
    }
    const auto row = static_cast<std::int64_t>(others_.rows);
    masks_.commit(row, seen.has(Key::bbox));
    if (seen.has(Key::all_scores) && known_.given) {
      if (!seen.has(Key::category_id)) {
        column_ = static_cast<std::int32_t>(std::max_element(probabilities_.begin(), probabilities_.end()) -
                                            probabilities_.begin());
      }
      if (!seen.has(Key::score)) {
        score = probabilities_.empty() ? 0.0 : probabilities_[static_cast<std::size_t>(column_)];
      }
      others_.all_scores.rows.push_back(row);
      if (seen.has(Key::cls_prob)) others_.cls_prob_rows.push_back(row);
      for (const double probability : probabilities_)
        others_.all_scores.values.push_back(static_cast<float>(probability));
    }
    if (seen.has(Key::covars)) {
      others_.covariances.rows.push_back(row);
      others_.covariances.values.insert(others_.covariances.values.end(), covariances, covariances + 8);
    }
    add_row(entry, image_id, score, box);
  }

  void add_row(std::int64_t entry, std::int64_t image_id, double score, const double* box) {
    if (row_ == limit_) throw std::length_error("rows");  // there is space for every closing brace
    rows_->entries[row_] = entry;
    rows_->image_ids[row_] = image_id;
    rows_->labels[row_] = column_;
    rows_->scores[row_] = score;
    double* corners = rows_->corners.data() + 4 * row_;
    corners[0] = box[0];
    corners[1] = box[1];
    corners[2] = box[0] + box[2];
    corners[3] = box[1] + box[3];
    double* extents = rows_->extents.data() + 2 * row_;
    extents[0] = box[2];
    extents[1] = box[3];
    ++row_;
    ++others_.rows;
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
  Rows* rows_ = nullptr;
  std::size_t row_ = 0, limit_ = 0;  // the next row, and the end of those that this reader may write
  Others others_;
  ResultMasksReader masks_;
  json::RepeatedKeys keys_{key_names};
  std::int32_t column_ = 0;
  std::optional<std::int64_t> last_known_;
  std::string name_;
  std::vector<double> probabilities_;
};

}  // namespace probox::coco
