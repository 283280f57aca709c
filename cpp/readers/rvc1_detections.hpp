// Detections of the Robotic Vision Challenge, parsed into columns.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heatmap_files.hpp"
#include "joined_columns.hpp"
#include "json_reader.hpp"
#include "large_column.hpp"
#include "pieces.hpp"
#include "problems.hpp"
#include "some_rows.hpp"

namespace probox::rvc1 {

// Columns of a detections file, in the order of the file.
struct Detections {
  std::vector<std::string> classes;
  std::vector<std::string> image_names;
  std::int64_t images = 0;
  LargeColumn<std::int64_t> image_rows, entries;  // index of the image, and of the detection in it
  LargeColumn<double> boxes;                      // NaN if only a heatmap is given
  LargeColumn<float> label_probs;
  SomeRows<double> covariances;
  LargeColumn<std::int32_t> mask_files;  // -1: none
  LargeColumn<std::int64_t> mask_ids;    // no_mask_id: none
  HeatmapFiles files;
  std::vector<std::string> other_keys;
  bool has_classes = false, has_image_names = false, has_detections = false;
};

class DetectionsReader {
 public:
  DetectionsReader(json::Reader& in, Problems& problems) : in_(in), problems_(problems) {}

  Detections read(const Sharing& sharing = {}) {
    sharing_ = sharing;
    problems_.guard([this] { read_file(); });
    if (!pieces_.empty()) join();
    return std::move(found_);
  }

 private:
  void read_file() {
    std::string_view key;
    SeenKeys seen;
    std::optional<json::Reader::Mark> postponed;
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "classes") {
        seen.mark(in_, 0);
        read_classes();
      } else if (key == "detections") {
        seen.mark(in_, 1);
        found_.has_detections = true;
        if (found_.has_classes) {
          read_images();
        } else {
          // The number of probabilities is known only after the classes: read the detections later.
          postponed = in_.mark();
          in_.skip();
        }
      } else if (key == "img_names") {
        seen.mark(in_, 2);
        found_.has_image_names = true;
        in_.enter_array();
        while (in_.next_item()) found_.image_names.emplace_back(in_.string());
      } else {
        if (found_.other_keys.size() < 5) found_.other_keys.emplace_back(key.substr(0, 40));
        in_.skip();
      }
    }
    in_.finish();
    if (postponed && found_.has_classes) {
      in_.rewind(*postponed);
      read_images();
    }
  }

  void read_classes() {
    found_.has_classes = true;
    in_.enter_array();
    while (in_.next_item()) found_.classes.emplace_back(in_.string());
  }

  void read_images() {
    in_.enter_array();
    pieces_ = read_pieces<Detections>(
        in_, places_to_cut(in_, sharing_, BetweenLists{}), sharing_.threads,
        [this](std::size_t, auto& in, auto stop, auto& wanted) { return read_piece(in, stop, wanted); });
    for (const Adopted<Detections>& piece : pieces_) found_.images += piece.part.images;
    while (in_.next_item()) read_image();
  }

  void read_image() {
    const std::int64_t image = found_.images++;
    problems_.row(in_, [this, image](auto&) {
      if (in_.peek() != '[') in_.mismatch(words::detections_of_image);
      in_.enter_array();
      while (in_.next_item()) {
        const std::size_t labels = found_.label_probs.size();
        const bool good = problems_.row(in_, [this, image](auto&) { read_detection(image); });
        if (!good) found_.label_probs.resize(labels);
      }
    });
  }

  template <class Wanted>
  std::optional<Detections> read_piece(json::Reader& in, const char* stop, const Wanted& wanted) const {
    Problems problems(/*lenient=*/false, /*max_examples=*/0);
    DetectionsReader own(in, problems);
    own.found_.classes = found_.classes;
    problems.guard([&] { read_values(in, stop, wanted, [&own] { own.read_image(); }); });
    if (!problems.groups().empty()) return std::nullopt;
    return std::move(own.found_);
  }

  // Inserts the values read in pieces before those read later.
  void join() {
    std::vector<std::int64_t> first_images, first_rows{0};
    std::int64_t images = 0;
    for (const Adopted<Detections>& piece : pieces_) {
      first_images.push_back(images);
      images += piece.part.images;
      first_rows.push_back(first_rows.back() + static_cast<std::int64_t>(piece.part.entries.size()));
    }
    first_images.push_back(0);  // index offset of the values read later
    pieces_.push_back({Detections{}, 0});
    std::swap(pieces_.back().part, found_);
    number_files();
    Detections& last = pieces_.back().part;
    found_.classes = std::move(last.classes);
    found_.image_names = std::move(last.image_names);
    found_.images = last.images;
    found_.other_keys = std::move(last.other_keys);
    found_.has_classes = last.has_classes;
    found_.has_image_names = last.has_image_names;
    found_.has_detections = last.has_detections;
    const auto first_image = [&](std::size_t k) { return first_images[k]; };
    const auto first_row = [&](std::size_t k) { return first_rows[k]; };
    JoinedColumns<Detections> join(pieces_, sharing_.threads);
    found_.image_rows = join.column(&Detections::image_rows, first_image);
    found_.entries = join.column(&Detections::entries);
    found_.boxes = join.column(&Detections::boxes);
    found_.label_probs = join.column(&Detections::label_probs);
    found_.covariances = join.some_rows(&Detections::covariances, first_row);
    found_.mask_files = join.column(&Detections::mask_files);
    found_.mask_ids = join.column(&Detections::mask_ids);
  }

  // Replaces the numbers of heatmap files, which each piece counts separately, by those of the whole file.
  void number_files() {
    for (Adopted<Detections>& piece : pieces_) {
      const std::vector<std::int32_t> numbers = found_.files.numbers_of(piece.part.files);
      for (std::int32_t& file : piece.part.mask_files) {
        if (file >= 0) file = numbers[static_cast<std::size_t>(file)];
      }
    }
  }

  void read_detection(std::int64_t image) {
    std::string_view key;
    SeenKeys seen;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    double box[4] = {nan, nan, nan, nan};
    double covariances[8];
    std::int32_t file = -1;
    std::int64_t mask_id = no_mask_id;
    const std::int64_t entry = in_.index();
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "bbox") {
        seen.mark(in_, 0);
        in_.numbers(box, 4);
      } else if (key == "label_probs") {
        seen.mark(in_, 1);
        read_label_probs();
      } else if (key == "covars") {
        seen.mark(in_, 2);
        read_covariances(in_, covariances);
      } else if (key == "masks_file") {
        seen.mark(in_, 3);
        file = found_.files.number(in_.string());
      } else if (key == "mask_id") {
        seen.mark(in_, 4);
        mask_id = in_.integer();
      } else {
        in_.skip();
      }
    }
    seen.require(in_, 1, "label_probs");
    if (!seen.has(3)) seen.require(in_, 0, "bbox");
    if (seen.has(2)) {
      found_.covariances.rows.push_back(static_cast<std::int64_t>(found_.image_rows.size()));
      found_.covariances.values.insert(found_.covariances.values.end(), covariances, covariances + 8);
    }
    found_.image_rows.push_back(image);
    found_.entries.push_back(entry);
    found_.boxes.insert(found_.boxes.end(), box, box + 4);
    found_.mask_files.push_back(file);
    found_.mask_ids.push_back(mask_id);
  }

  void read_label_probs() {
    const json::Reader::Mark start = in_.mark();
    if (in_.peek() != '[') in_.mismatch(words::list_of_numbers);
    in_.enter_array();
    const std::size_t classes = found_.classes.size();
    const std::size_t before = found_.label_probs.size();
    found_.label_probs.resize(before + classes);
    float* out = found_.label_probs.data() + before;
    std::size_t count = 0;
    while (in_.next_item()) {
      const double value = in_.number();
      if (count < classes) out[count] = static_cast<float>(value);
      ++count;
    }
    if (count != classes) {
      in_.rewind(start);
      in_.fail(Trouble::label_probs_length, classes, count);
    }
  }

  json::Reader& in_;
  Problems& problems_;
  Sharing sharing_;
  std::vector<Adopted<Detections>> pieces_;
  Detections found_;
};

}  // namespace probox::rvc1
