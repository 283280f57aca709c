// Writers of JSON files: columns in, bytes out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "coco_results.hpp"
#include "json_writer.hpp"

namespace nb = nanobind;
using namespace probox;

namespace {

template <class T, std::size_t N>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

void check(bool fits) {
  if (!fits) throw std::invalid_argument("columns do not fit together");
}

// Boxes are x, y, width, height; covariances have no rows if there are none.
nb::bytes format_coco_results(Array<std::int64_t, 1> image_ids, Array<std::int32_t, 1> labels,
                              Array<std::int64_t, 1> category_ids, Array<double, 2> boxes, Array<double, 1> scores,
                              Array<float, 2> label_probs, Array<double, 2> covariances,
                              Array<std::uint8_t, 1> has_covariances) {
  const std::size_t n = image_ids.shape(0);
  const std::size_t classes = category_ids.shape(0);
  check(labels.shape(0) == n && boxes.shape(0) == n && boxes.shape(1) == 4 && scores.shape(0) == n &&
        label_probs.shape(0) == n && label_probs.shape(1) == classes && has_covariances.shape(0) == n &&
        covariances.shape(1) == 8 && (covariances.shape(0) == n || covariances.shape(0) == 0));
  json::Writer out;
  {
    nb::gil_scoped_release unlocked;
    std::vector<float> even(classes);
    out.text("[");
    for (std::size_t row = 0; row < n; ++row) {
      const auto label = static_cast<std::size_t>(labels(row));
      check(label < classes);
      out.text(row > 0 ? ",\n{\"image_id\":" : "\n{\"image_id\":");
      out.integer(image_ids(row));
      out.text(",\"category_id\":");
      out.integer(category_ids(label));
      out.text(",\"bbox\":");
      out.list(boxes.data() + 4 * row, 4);
      out.text(",\"score\":");
      out.number(scores(row));
      const float* probs = label_probs.data() + classes * row;
      coco::spread_evenly(scores(row), label, even.data(), classes);
      if (!std::equal(even.begin(), even.end(), probs)) {
        out.text(",\"all_scores\":");
        out.list(probs, classes);
      }
      if (has_covariances(row) && covariances.shape(0) > 0) {
        out.text(",\"covars\":");
        out.covariances(covariances.data() + 8 * row);
      }
      out.text("}");
    }
    out.text("\n]\n");
  }
  return to_bytes(out.result());
}

// Detections of image k are rows offsets[k]..offsets[k + 1]. `mask_names` are JSON strings already.
nb::bytes format_rvc1(Array<std::int64_t, 1> offsets, Array<double, 2> boxes, Array<float, 2> label_probs,
                      Array<double, 2> covariances, Array<std::uint8_t, 1> has_covariances,
                      const std::vector<std::string>& mask_names, Array<std::int32_t, 1> mask_files,
                      Array<std::int64_t, 1> mask_ids) {
  const std::size_t n = boxes.shape(0);
  const std::size_t classes = label_probs.shape(1);
  const std::size_t images = offsets.shape(0) - 1;
  check(offsets.shape(0) > 0 && offsets(0) == 0 && offsets(images) == static_cast<std::int64_t>(n) &&
        boxes.shape(1) == 4 && label_probs.shape(0) == n && has_covariances.shape(0) == n && covariances.shape(1) == 8 &&
        (covariances.shape(0) == n || covariances.shape(0) == 0) && mask_files.shape(0) == n && mask_ids.shape(0) == n);
  json::Writer out;
  {
    nb::gil_scoped_release unlocked;
    out.text("[");
    for (std::size_t image = 0; image < images; ++image) {
      check(offsets(image) <= offsets(image + 1));
      out.text(image > 0 ? ",\n[" : "\n[");
      for (auto row = static_cast<std::size_t>(offsets(image)); row < static_cast<std::size_t>(offsets(image + 1)); ++row) {
        out.text(row > static_cast<std::size_t>(offsets(image)) ? ",\n {\"bbox\":" : "\n {\"bbox\":");
        out.list(boxes.data() + 4 * row, 4);
        out.text(",\"label_probs\":");
        out.list(label_probs.data() + classes * row, classes);
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

void bind_json_writer(nb::module_& m) {
  m.def("format_coco_results", &format_coco_results, nb::arg("image_ids"), nb::arg("labels"), nb::arg("category_ids"),
        nb::arg("boxes"), nb::arg("scores"), nb::arg("label_probs"), nb::arg("covariances"), nb::arg("has_covariances"));
  m.def("format_rvc1", &format_rvc1, nb::arg("offsets"), nb::arg("boxes"), nb::arg("label_probs"),
        nb::arg("covariances"), nb::arg("has_covariances"), nb::arg("mask_names"), nb::arg("mask_files"),
        nb::arg("mask_ids"));
}
