// COCO ground truth, parsed into columns.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coco_segmentation.hpp"
#include "json_reader.hpp"
#include "problems.hpp"

namespace probox::coco {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();
// Limits of image sizes and masks.
struct TruthLimits {
  std::int64_t max_pixels;
  SegmentationLimits masks;
};

// Columns of a ground-truth file, in the order of the file.
struct Truth {
  std::vector<std::int64_t> image_ids;
  std::vector<std::int32_t> widths, heights;
  std::vector<std::string> file_names;
  std::vector<std::int64_t> category_ids;
  std::vector<std::string> category_names;
  // One entry per annotation.
  std::vector<std::int64_t> entries, ids, images, categories;
  std::vector<std::uint8_t> has_id, crowd;
  std::vector<double> boxes, areas;
  Segmentations segmentations;
  std::vector<std::string> other_keys;  // keys of the file itself, for messages
  // LVIS: categories that were checked and are absent, and those with more objects than are annotated; `images` are
  // positions among the images.
  struct Listed {
    std::vector<std::int64_t> images, categories;
  };
  Listed negatives, not_exhaustive;
  std::vector<std::uint8_t> frequencies;   // of categories: r, c, f or 0
  std::vector<std::int64_t> image_counts;  // of categories: training images, or -1
  bool has_images = false, has_annotations = false, has_categories = false;
};

class TruthReader {
 public:
  TruthReader(json::Reader& in, Problems& problems, const TruthLimits& limits)
      : in_(in), problems_(problems), limits_(limits), segmentation_(limits.masks, truth_.segmentations) {}

  Truth read() {
    problems_.guard([this] { read_file(); });
    return std::move(truth_);
  }

 private:
  void read_file() {
    std::string_view key;
    SeenKeys seen;
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "images") {
        seen.mark(in_, 0);
        truth_.has_images = true;
        each_row([this](auto& image) { read_image(image); });
      } else if (key == "categories") {
        seen.mark(in_, 1);
        truth_.has_categories = true;
        each_row([this](auto&) { read_category(); });
      } else if (key == "annotations") {
        seen.mark(in_, 2);
        truth_.has_annotations = true;
        each_row([this](auto& image) { read_annotation(image); });
      } else {
        if (truth_.other_keys.size() < 5) truth_.other_keys.emplace_back(key.substr(0, 40));
        in_.skip();
      }
    }
    in_.finish();
  }

  template <class ReadRow>
  void each_row(ReadRow&& read_row) {
    in_.enter_array();
    while (in_.next_item()) problems_.row(in_, read_row);
  }

  void read_image(std::optional<std::int64_t>& image) {
    std::string_view key;
    SeenKeys seen;
    std::int64_t id = 0, width = 0, height = 0;
    std::string file_name;
    std::vector<std::int64_t> negatives, not_exhaustive;
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "id") {
        seen.mark(in_, 0);
        image = id = in_.integer();
      } else if (key == "width") {
        seen.mark(in_, 1);
        width = side();
      } else if (key == "height") {
        seen.mark(in_, 2);
        height = side();
      } else if (key == "file_name") {
        seen.mark(in_, 3);
        if (in_.next_is_null())
          in_.null();
        else
          file_name = in_.string();
      } else if (key == "neg_category_ids") {
        seen.mark(in_, 4);
        negatives = read_categories();
      } else if (key == "not_exhaustive_category_ids") {
        seen.mark(in_, 5);
        not_exhaustive = read_categories();
      } else {
        in_.skip();
      }
    }
    seen.require(in_, 0, "id");
    seen.require(in_, 1, "width");
    seen.require(in_, 2, "height");
    if (width * height > limits_.max_pixels) in_.fail(Trouble::image_pixels, limits_.max_pixels, width, height);
    list_categories(negatives, truth_.negatives);
    list_categories(not_exhaustive, truth_.not_exhaustive);
    truth_.image_ids.push_back(id);
    truth_.widths.push_back(static_cast<std::int32_t>(width));
    truth_.heights.push_back(static_cast<std::int32_t>(height));
    truth_.file_names.push_back(std::move(file_name));
  }

  // Returns the ids in a list; null is an empty one.
  std::vector<std::int64_t> read_categories() {
    std::vector<std::int64_t> ids;
    if (in_.next_is_null()) {
      in_.null();
      return ids;
    }
    in_.enter_array();
    while (in_.next_item()) ids.push_back(in_.integer());
    return ids;
  }

  // Adds the categories of the image that is committed next.
  void list_categories(const std::vector<std::int64_t>& ids, Truth::Listed& to) const {
    to.images.insert(to.images.end(), ids.size(), static_cast<std::int64_t>(truth_.image_ids.size()));
    to.categories.insert(to.categories.end(), ids.begin(), ids.end());
  }

  std::int64_t side() {
    const std::int64_t size = in_.integer();
    if (size < 1 || size > limits_.masks.max_side) in_.fail(Trouble::image_side, limits_.masks.max_side, size);
    return size;
  }

  void read_category() {
    std::string_view key;
    SeenKeys seen;
    std::int64_t id = 0, image_count = -1;
    std::uint8_t frequency = 0;
    std::string name;
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "id") {
        seen.mark(in_, 0);
        id = in_.integer();
      } else if (key == "name") {
        seen.mark(in_, 1);
        name = in_.string();
      } else if (key == "frequency" && in_.peek() == '"') {
        const std::string_view word = in_.string();
        frequency = word == "r" || word == "c" || word == "f" ? static_cast<std::uint8_t>(word[0]) : 0;
      } else if (key == "image_count" && in_.peek() >= '0' && in_.peek() <= '9') {
        const double images = in_.number();
        image_count = images < 1e9 ? static_cast<std::int64_t>(images) : -1;
      } else {
        in_.skip();
      }
    }
    seen.require(in_, 0, "id");
    seen.require(in_, 1, "name");
    truth_.frequencies.push_back(frequency);
    truth_.image_counts.push_back(image_count);
    truth_.category_ids.push_back(id);
    truth_.category_names.push_back(std::move(name));
  }

  // Numbers of keys, in SeenKeys too.
  struct Key {
    enum : int { id, image_id, category_id, bbox, area, iscrowd, segmentation };
  };
  static constexpr std::string_view key_names[] = {"id",   "image_id", "category_id", "bbox",
                                                   "area", "iscrowd",  "segmentation"};

  void read_annotation(std::optional<std::int64_t>& image) {
    int key;
    SeenKeys seen;
    std::int64_t id = 0, image_id = 0, category = 0;
    double box[4] = {missing, missing, missing, missing};
    double area = missing;
    bool crowd = false;
    segmentation_.clear();
    const std::int64_t entry = in_.index();
    in_.enter_object();
    while (in_.next_key(keys_, key)) {
      if (key != json::RepeatedKeys::unknown) seen.mark(in_, key);
      switch (key) {
        case Key::id:
          id = in_.integer();
          break;
        case Key::image_id:
          image = image_id = in_.integer();
          break;
        case Key::category_id:
          category = in_.integer();
          break;
        case Key::bbox:
          in_.numbers(box, 4);
          check_box(box);
          break;
        case Key::area:
          area = in_.number();
          if (!(area >= 0 && area <= std::numeric_limits<double>::max())) in_.fail(Trouble::area);
          break;
        case Key::iscrowd:
          crowd = read_crowd();
          break;
        case Key::segmentation:
          segmentation_.read(in_);
          break;
        default:
          in_.skip();
      }
    }
    seen.require(in_, Key::image_id, "image_id");
    seen.require(in_, Key::category_id, "category_id");
    if (segmentation_.kind() == no_mask) seen.require(in_, Key::bbox, "bbox");
    truth_.entries.push_back(entry);
    truth_.ids.push_back(id);
    truth_.has_id.push_back(seen.has(Key::id));
    truth_.images.push_back(image_id);
    truth_.categories.push_back(category);
    truth_.boxes.insert(truth_.boxes.end(), box, box + 4);
    truth_.areas.push_back(area);
    truth_.crowd.push_back(crowd);
    segmentation_.commit();
  }

  void check_box(const double* box) const {
    for (int k = 0; k < 4; ++k) {
      if (!(std::abs(box[k]) <= 1e9)) in_.fail(Trouble::box_not_finite);  // true for NaN as well
    }
    if (box[2] < 0 || box[3] < 0) in_.fail(Trouble::box_inverted);
  }

  bool read_crowd() {
    const char first = in_.peek();
    if (first == 't' || first == 'f') return in_.boolean();
    const std::int64_t value = in_.integer();
    if (value != 0 && value != 1) in_.fail(Trouble::iscrowd, value);
    return value == 1;
  }

  json::Reader& in_;
  Problems& problems_;
  TruthLimits limits_;
  Truth truth_;
  SegmentationReader segmentation_;
  json::RepeatedKeys keys_{key_names};
};

}  // namespace probox::coco
