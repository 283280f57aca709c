// Masks and heatmaps of COCO results: the keys "segmentation", "masks_file" and "mask_id".
#pragma once

#include <cstdint>
#include <string_view>

#include "coco_segmentation.hpp"
#include "heatmap_files.hpp"
#include "json_reader.hpp"
#include "large_column.hpp"
#include "problems.hpp"

namespace probox::coco {

// The rows of detections without a box, of those with a mask, and of those with a heatmap.
struct ResultMasks {
  LargeColumn<std::int64_t> boxless_rows, rows;
  Segmentations segmentations;  // of these rows
  LargeColumn<std::int64_t> heatmap_rows, mask_ids;
  LargeColumn<std::int32_t> heatmap_files;
  HeatmapFiles files;

  // Adds the masks of a later piece of the file; its first detection is this row of all.
  void append(const ResultMasks& more, std::int64_t first_row) {
    segmentations.append(more.segmentations);
    for (const std::int64_t row : more.boxless_rows) boxless_rows.push_back(row + first_row);
    for (const std::int64_t row : more.rows) rows.push_back(row + first_row);
    const std::vector<std::int32_t> numbers = files.numbers_of(more.files);
    for (std::size_t k = 0; k < more.heatmap_rows.size(); ++k) {
      heatmap_rows.push_back(more.heatmap_rows[k] + first_row);
      mask_ids.push_back(more.mask_ids[k]);
      heatmap_files.push_back(numbers[static_cast<std::size_t>(more.heatmap_files[k])]);
    }
  }
};

// Reads the mask of one detection at a time, and adds it to the columns when the detection is complete.
class ResultMasksReader {
 public:
  ResultMasksReader(const SegmentationLimits& limits, ResultMasks& masks)
      : masks_(masks), segmentation_(limits, masks.segmentations) {}

  void clear() {
    segmentation_.clear();
    seen_ = SeenKeys();
    file_ = -1;
    mask_id_ = no_mask_id;
  }

  // Reads the value of a key of masks; returns false for other keys.
  bool read(json::Reader& in, std::string_view key) {
    if (key == "segmentation") {
      seen_.mark(in, 0);
      segmentation_.read(in);
    } else if (key == "masks_file") {
      seen_.mark(in, 1);
      if (in.next_is_null())
        in.null();
      else
        file_ = masks_.files.number(in.string());
    } else if (key == "mask_id") {
      seen_.mark(in, 2);
      if (in.next_is_null())
        in.null();
      else
        mask_id_ = in.integer();
    } else {
      return false;
    }
    return true;
  }

  // Whether the box may be missing.
  bool has_pixels() const { return segmentation_.kind() != no_mask || file_ >= 0; }

  void commit(std::int64_t row, bool has_box) {
    if (!has_box) masks_.boxless_rows.push_back(row);
    if (segmentation_.kind() != no_mask) {
      masks_.rows.push_back(row);
      segmentation_.commit();
    }
    if (file_ >= 0) {
      masks_.heatmap_rows.push_back(row);
      masks_.heatmap_files.push_back(file_);
      masks_.mask_ids.push_back(mask_id_);
    }
  }

 private:
  ResultMasks& masks_;
  SegmentationReader segmentation_;
  SeenKeys seen_;
  std::int32_t file_ = -1;
  std::int64_t mask_id_ = no_mask_id;
};

}  // namespace probox::coco
