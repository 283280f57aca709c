// The robotic vision challenge's JSON, detections and the labels of ground truth, straight into columns.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coco_results.hpp"
#include "json.hpp"
#include "problems.hpp"

namespace probox::rvc1 {

constexpr std::int64_t no_mask_id = std::numeric_limits<std::int64_t>::min();

// Columns of a detections file, in the order of the file.
struct Detections {
  std::vector<std::string> classes;
  std::vector<std::string> image_names;
  std::int64_t images = 0;
  std::vector<std::int64_t> image_rows, entries;  // position of the image, and of the detection in it
  std::vector<double> boxes;                      // NaN where only a heatmap is given
  std::vector<float> label_probs;
  coco::SomeRows<double> covariances;
  std::vector<std::int32_t> mask_files;  // -1: none
  std::vector<std::int64_t> mask_ids;    // no_mask_id: none
  std::vector<std::string> mask_file_names;
  std::vector<std::string> other_keys;
  bool has_classes = false, has_image_names = false, has_detections = false;
};

class DetectionsReader {
 public:
  DetectionsReader(json::Reader& in, Problems& problems) : in_(in), problems_(problems) {}

  Detections read() {
    problems_.guard([this] { read_file(); });
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
          // How many probabilities a detection has is only known after the classes: come back then.
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
    while (in_.next_item()) {
      const std::int64_t image = found_.images++;
      problems_.row(in_, [this, image](auto&) {
        if (in_.peek() != '[') in_.mismatch("a list of the image's detections");
        in_.enter_array();
        while (in_.next_item()) {
          const std::size_t labels = found_.label_probs.size();
          const bool good = problems_.row(in_, [this, image](auto&) { read_detection(image); });
          if (!good) found_.label_probs.resize(labels);
        }
      });
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
        coco::read_covariances(in_, covariances);
      } else if (key == "masks_file") {
        seen.mark(in_, 3);
        file = file_number(in_.string());
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
    if (in_.peek() != '[') in_.mismatch("a list of numbers");
    in_.enter_array();
    const std::size_t expected = found_.classes.size();
    const std::size_t before = found_.label_probs.size();
    found_.label_probs.resize(before + expected);
    float* out = found_.label_probs.data() + before;
    std::size_t count = 0;
    while (in_.next_item()) {
      const double value = in_.number();
      if (count < expected) out[count] = static_cast<float>(value);
      ++count;
    }
    if (count != expected) {
      in_.rewind(start);
      in_.fail("wrong length", "expected one probability for each of the " + std::to_string(expected) +
                                   " classes, but got " + std::to_string(count),
               "write label_probs in the order of \"classes\"");
    }
  }

  std::int32_t file_number(std::string_view name) {
    const auto next = static_cast<std::int32_t>(found_.mask_file_names.size());
    const auto [entry, added] = file_numbers_.try_emplace(std::string(name), next);
    if (added) found_.mask_file_names.emplace_back(name);
    return entry->second;
  }

  json::Reader& in_;
  Problems& problems_;
  Detections found_;
  std::unordered_map<std::string, std::int32_t> file_numbers_;
};

// Columns of a sequence's labels.json: images by key, their mask files, and the objects in them.
struct Labels {
  std::vector<std::string> images, mask_names;
  std::vector<std::int64_t> channels;
  std::vector<std::int64_t> object_images, mask_ids;
  std::vector<std::string> object_keys, object_classes;
  std::vector<double> boxes;  // NaN where an object has none
  std::vector<std::uint8_t> has_mask;  // of each image
};

class LabelsReader {
 public:
  LabelsReader(json::Reader& in, Problems& problems) : in_(in), problems_(problems) {}

  Labels read() {
    problems_.guard([this] {
      std::string_view key;
      in_.enter_object();
      while (in_.next_key(key)) {
        std::string name(key);
        const std::size_t objects = labels_.mask_ids.size();
        if (!problems_.row(in_, [&](auto&) { read_image(name); })) drop_objects(objects);
      }
      in_.finish();
    });
    return std::move(labels_);
  }

 private:
  void read_image(const std::string& name) {
    const auto image = static_cast<std::int64_t>(labels_.images.size());
    std::string_view key;
    bool has_metadata = false;
    std::string mask_name;
    std::int64_t channel = 0;
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "_metadata") {
        if (has_metadata) in_.fail("duplicate key", "the same key stands here twice", "keep one of them");
        has_metadata = true;
        read_metadata(mask_name, channel);
      } else if (!key.empty() && key.front() == '_') {
        in_.skip();
      } else {
        std::string object(key);
        problems_.row(in_, [&](auto&) { read_object(image, object); });
      }
    }
    labels_.images.push_back(name);
    labels_.has_mask.push_back(has_metadata);
    labels_.mask_names.push_back(mask_name);
    labels_.channels.push_back(channel);
  }

  // Forget the objects of an image that could not be read.
  void drop_objects(std::size_t kept) {
    labels_.object_images.resize(kept);
    labels_.mask_ids.resize(kept);
    labels_.object_keys.resize(kept);
    labels_.object_classes.resize(kept);
    labels_.boxes.resize(4 * kept);
  }

  void read_metadata(std::string& mask_name, std::int64_t& channel) {
    std::string_view key;
    SeenKeys seen;
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "mask_name") {
        seen.mark(in_, 0);
        mask_name = in_.string();
      } else if (key == "mask_channel") {
        seen.mark(in_, 1);
        channel = in_.integer();
      } else {
        in_.skip();
      }
    }
    seen.require(in_, 0, "mask_name");
  }

  void read_object(std::int64_t image, const std::string& object) {
    std::string_view key;
    SeenKeys seen;
    std::string name;
    std::int64_t mask_id = 0;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    double box[4] = {nan, nan, nan, nan};
    in_.enter_object();
    while (in_.next_key(key)) {
      if (key == "class") {
        seen.mark(in_, 0);
        name = in_.string();
      } else if (key == "mask_id") {
        seen.mark(in_, 1);
        mask_id = in_.integer();
      } else if (key == "bounding_box") {
        seen.mark(in_, 2);
        in_.numbers(box, 4);
        // Written so that NaN, which would look like a missing box, is refused too.
        if (!(std::abs(box[0]) <= 1e9 && std::abs(box[1]) <= 1e9 && box[0] <= box[2] && box[1] <= box[3] &&
              box[2] <= 1e9 && box[3] <= 1e9)) {
          in_.fail("unusable box", "expected [left, top, right, bottom] with left <= right and top <= bottom",
                   "write the first and the last pixel's column and row");
        }
      } else {
        in_.skip();
      }
    }
    seen.require(in_, 0, "class");
    seen.require(in_, 1, "mask_id");
    labels_.object_images.push_back(image);
    labels_.object_keys.push_back(object);
    labels_.object_classes.push_back(name);
    labels_.mask_ids.push_back(mask_id);
    labels_.boxes.insert(labels_.boxes.end(), box, box + 4);
  }

  json::Reader& in_;
  Problems& problems_;
  Labels labels_;
};

}  // namespace probox::rvc1
