// Labels of the Robotic Vision Challenge's ground truth, parsed into columns.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "json_reader.hpp"
#include "problems.hpp"

namespace probox::rvc1 {

// Columns of a sequence's labels.json: images by key, their mask files, and the objects in them.
struct Labels {
  std::vector<std::string> images, mask_names;
  std::vector<std::int64_t> channels;
  std::vector<std::int64_t> object_images, mask_ids;
  std::vector<std::string> object_keys, object_classes;
  std::vector<double> boxes;  // NaN for objects without a box
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
        if (has_metadata) in_.fail(Trouble::duplicate_key);
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

  // Discards the objects of an image that could not be read.
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
        // The negated condition also refuses NaN, which would look like a missing box.
        if (!(std::abs(box[0]) <= 1e9 && std::abs(box[1]) <= 1e9 && box[0] <= box[2] && box[1] <= box[3] &&
              box[2] <= 1e9 && box[3] <= 1e9)) {
          in_.fail(Trouble::box_of_pixels);
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
