// Writers of JSON files: columns in, bytes out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "kernel/rasteriser.hpp"
#include "label_table.hpp"
#include "mask_table.hpp"
#include "readers/coco_run_lengths.hpp"
#include "readers/json_writer.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

void check(bool fits) { require(fits, "columns do not fit together"); }

// Writes the run lengths of one mask after the other.
class MaskWriter {
 public:
  void write(const Mask& mask, std::int64_t width, std::int64_t height, json::Writer& out) {
    // Column-major runs are the row-major ones of the transposed mask.
    transposed_.start(/*height=*/width, /*width=*/height);
    for (std::int64_t y = mask.y0; mask.count == 0 && y <= mask.y1; ++y)
      transposed_.add_interval(y * width + mask.x0, y * width + mask.x1 + 1);
    for (std::int64_t k = 0; k < mask.count; ++k) {
      const std::int32_t* run = mask.runs + 3 * k;
      transposed_.add_interval(run[0] * width + run[1], run[0] * width + run[2]);
    }
    out.text("{\"size\":[");
    out.integer(height);
    out.text(",");
    out.integer(width);
    out.text("],\"counts\":\"");
    for (const char c : coco::encode_counts(coco::counts_of(transposed_.finish(), height, width))) {
      if (c == '\\') out.text("\\");
      out.text({&c, 1});
    }
    out.text("\"}");
  }

 private:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  Rasteriser transposed_{{unlimited, unlimited, unlimited}};
};

// Boxes are x, y, width, height; covariances have 0 rows if there are none. Masks have 0 rows if there are none;
// otherwise widths and heights are those of the images of rows with a mask.
nb::bytes format_coco_results(Column<std::int64_t> image_ids, Column<std::int32_t> labels,
                              Column<std::int64_t> category_ids, Table<double> boxes, Column<double> scores,
                              const LabelTable& label_probs, Table<double> covariances,
                              Column<std::uint8_t> has_covariances, Column<std::uint8_t> has_mask,
                              Column<std::int32_t> widths, Column<std::int32_t> heights, Table<std::int32_t> mask_boxes,
                              Column<std::int64_t> mask_pixels, Column<std::int64_t> run_offsets,
                              Table<std::int32_t> runs) {
  const MaskTable masks(mask_boxes, mask_pixels, run_offsets, runs);
  const std::size_t n = image_ids.shape(0);
  const std::size_t classes = category_ids.shape(0);
  check(labels.shape(0) == n && boxes.shape(0) == n && boxes.shape(1) == 4 && scores.shape(0) == n &&
        label_probs.rows == n && label_probs.columns() == classes && has_covariances.shape(0) == n &&
        covariances.shape(1) == 8 && (covariances.shape(0) == n || covariances.shape(0) == 0));
  require_rows(labels, classes, "expected labels that count in categories");
  const bool with_masks = masks.count() > 0;
  if (with_masks) {
    check(masks.count() == n && has_mask.shape(0) == n && widths.shape(0) == n && heights.shape(0) == n);
    masks.check_offsets();
    for (std::size_t row = 0; row < n; ++row) {
      if (!has_mask(row)) continue;
      require_sides(widths(row), heights(row));
      masks.check(static_cast<std::int64_t>(row), static_cast<std::int64_t>(row) + 1, widths(row), heights(row),
                  /*allow_empty=*/true);
    }
  }
  json::Writer out;
  {
    nb::gil_scoped_release unlocked;
    label_probs.check();
    const LabelRows<float> all_probs = label_probs.view();
    std::vector<float> probs(classes), even(classes);
    MaskWriter mask_writer;
    out.text("[");
    for (std::size_t row = 0; row < n; ++row) {
      const auto label = static_cast<std::size_t>(labels(row));
      out.text(row > 0 ? ",\n{\"image_id\":" : "\n{\"image_id\":");
      out.integer(image_ids(row));
      out.text(",\"category_id\":");
      out.integer(category_ids(label));
      out.text(",\"bbox\":");
      out.list(boxes.data() + 4 * row, 4);
      out.text(",\"score\":");
      out.number(scores(row));
      all_probs.expand(row, probs.data());
      std::fill(even.begin(), even.end(), even_rest(scores(row), classes));
      even[label] = static_cast<float>(scores(row));
      if (probs != even) {
        out.text(",\"all_scores\":");
        out.list(probs.data(), classes);
      }
      if (has_covariances(row) && covariances.shape(0) > 0) {
        out.text(",\"covars\":");
        out.covariances(covariances.data() + 8 * row);
      }
      if (with_masks && has_mask(row)) {
        out.text(",\"segmentation\":");
        mask_writer.write(masks[static_cast<std::int64_t>(row)], widths(row), heights(row), out);
      }
      out.text("}");
    }
    out.text("\n]\n");
  }
  return to_bytes(out.result());
}

// Detections of image k are rows offsets[k]..offsets[k + 1]. `mask_names` are JSON strings.
nb::bytes format_rvc1(Column<std::int64_t> offsets, Table<double> boxes, const LabelTable& label_probs,
                      Table<double> covariances, Column<std::uint8_t> has_covariances,
                      const std::vector<std::string>& mask_names, Column<std::int32_t> mask_files,
                      Column<std::int64_t> mask_ids) {
  const std::size_t n = boxes.shape(0);
  const std::size_t classes = label_probs.columns();
  check(offsets.shape(0) > 0);
  const std::size_t images = offsets.shape(0) - 1;
  require_offsets(offsets, images, n, "offsets of detections");
  check(boxes.shape(1) == 4 && label_probs.rows == n && has_covariances.shape(0) == n && covariances.shape(1) == 8 &&
        (covariances.shape(0) == n || covariances.shape(0) == 0) && mask_files.shape(0) == n && mask_ids.shape(0) == n);
  json::Writer out;
  {
    nb::gil_scoped_release unlocked;
    label_probs.check();
    const LabelRows<float> all_probs = label_probs.view();
    std::vector<float> probs(classes);
    out.text("[");
    for (std::size_t image = 0; image < images; ++image) {
      out.text(image > 0 ? ",\n[" : "\n[");
      for (auto row = static_cast<std::size_t>(offsets(image)); row < static_cast<std::size_t>(offsets(image + 1));
           ++row) {
        out.text(row > static_cast<std::size_t>(offsets(image)) ? ",\n {\"bbox\":" : "\n {\"bbox\":");
        out.list(boxes.data() + 4 * row, 4);
        out.text(",\"label_probs\":");
        all_probs.expand(row, probs.data());
        out.list(probs.data(), classes);
        if (has_covariances(row) && covariances.shape(0) > 0) {
          out.text(",\"covars\":");
          out.covariances(covariances.data() + 8 * row);
        }
        if (mask_files(row) >= 0) {
          check(static_cast<std::size_t>(mask_files(row)) < mask_names.size());
          out.text(",\"masks_file\":");
          out.text(mask_names[static_cast<std::size_t>(mask_files(row))]);
          out.text(",\"mask_id\":");
          out.integer(mask_ids(row));
        }
        out.text("}");
      }
      out.text("]");
    }
    out.text("\n]");
  }
  return to_bytes(out.result());
}

}  // namespace

void bind_writers(nb::module_& m) {
  m.def("format_coco_results", &format_coco_results, nb::kw_only(), "image_ids"_a, "labels"_a, "category_ids"_a,
        "boxes"_a, "scores"_a, "label_probs"_a, "covariances"_a, "has_covariances"_a, "has_mask"_a, "widths"_a,
        "heights"_a, "mask_boxes"_a, "mask_pixels"_a, "run_offsets"_a, "runs"_a, "Return COCO results as JSON.");
  m.def("format_rvc1", &format_rvc1, nb::kw_only(), "offsets"_a, "boxes"_a, "label_probs"_a, "covariances"_a,
        "has_covariances"_a, "mask_names"_a, "mask_files"_a, "mask_ids"_a,
        "Return the lists of detections of the robotic vision challenge as JSON.");
}
