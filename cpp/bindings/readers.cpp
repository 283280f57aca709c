// Readers of JSON files: bytes in, columns and problems out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "readers/coco_results.hpp"
#include "readers/coco_truth.hpp"
#include "readers/file_bytes.hpp"
#include "readers/json_reader.hpp"
#include "readers/problems.hpp"
#include "readers/rvc1_detections.hpp"
#include "readers/rvc1_labels.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

using Ids = Column<std::int64_t>;

// Paths and values may contain truncated parts of the file: invalid UTF-8 is replaced.
nb::object text(const std::string& value) {
  PyObject* decoded = PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal(decoded);
}

nb::list problem_list(const Problems& problems) {
  nb::list groups;
  for (const TroubleGroup& group : problems.groups()) {
    nb::list examples;
    for (const Example& example : group.examples) {
      nb::object image = example.image ? nb::cast(*example.image) : nb::none();
      nb::list values;
      for (const std::string& value : example.values) values.append(text(value));
      examples.append(nb::make_tuple(example.order, image, text(example.entry), values));
    }
    groups.append(nb::make_tuple(name_of(group.trouble), group.fatal, group.count, examples));
  }
  return groups;
}

nb::dict segmentation_columns(coco::Segmentations&& given) {
  const std::size_t n = given.kinds.size();
  nb::dict columns;
  columns["kinds"] = to_numpy(std::move(given.kinds));
  columns["rle_sizes"] = to_numpy(std::move(given.rle_sizes), {n, 2});
  columns["piece_offsets"] = to_numpy(coco::starts_of(given.piece_counts));
  columns["number_offsets"] = to_numpy(coco::starts_of(given.number_counts));
  columns["numbers"] = to_numpy(std::move(given.numbers));
  return columns;
}

nb::object bytes_of_file(int descriptor, std::size_t size, int threads) {
  nb::object content = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!content.is_valid()) throw nb::python_error();
  char* memory = PyBytes_AsString(content.ptr());
  bool complete = false;
  {
    nb::gil_scoped_release unlocked;
    use_huge_pages(memory, size);
    complete = read_file(descriptor, memory, size, threads);
  }
  return complete ? content : nb::none();
}

nb::tuple read_coco_truth(nb::bytes data, bool lenient, std::size_t max_examples, std::int64_t max_side,
                          std::int64_t max_pixels, std::size_t max_mask_numbers, std::size_t max_numbers) {
  require(max_side >= 0 && max_side < (std::int64_t{1} << 31), "expected sides of images below 2^31");
  Problems problems(lenient, max_examples);
  coco::Truth truth;
  {
    nb::gil_scoped_release unlocked;
    json::Reader in(data.c_str(), data.size());
    truth = coco::TruthReader(in, problems, {max_pixels, {max_side, max_mask_numbers, max_numbers}}).read();
  }
  const std::size_t n = truth.images.size();
  nb::dict columns;
  columns["image_ids"] = to_numpy(std::move(truth.image_ids));
  columns["widths"] = to_numpy(std::move(truth.widths));
  columns["heights"] = to_numpy(std::move(truth.heights));
  columns["file_names"] = nb::cast(truth.file_names);
  columns["category_ids"] = to_numpy(std::move(truth.category_ids));
  columns["category_names"] = nb::cast(truth.category_names);
  columns["entries"] = to_numpy(std::move(truth.entries));
  columns["ids"] = to_numpy(std::move(truth.ids));
  columns["has_id"] = to_numpy(std::move(truth.has_id));
  columns["images"] = to_numpy(std::move(truth.images));
  columns["categories"] = to_numpy(std::move(truth.categories));
  columns["boxes"] = to_numpy(std::move(truth.boxes), {n, 4});
  columns["areas"] = to_numpy(std::move(truth.areas));
  columns["crowd"] = to_numpy(std::move(truth.crowd));
  columns["segmentations"] = segmentation_columns(std::move(truth.segmentations));
  columns["other_keys"] = nb::cast(truth.other_keys);
  columns["negative_images"] = to_numpy(std::move(truth.negatives.images));
  columns["negative_categories"] = to_numpy(std::move(truth.negatives.categories));
  columns["not_exhaustive_images"] = to_numpy(std::move(truth.not_exhaustive.images));
  columns["not_exhaustive_categories"] = to_numpy(std::move(truth.not_exhaustive.categories));
  columns["frequencies"] = to_numpy(std::move(truth.frequencies));
  columns["image_counts"] = to_numpy(std::move(truth.image_counts));
  columns["has_images"] = truth.has_images;
  columns["has_annotations"] = truth.has_annotations;
  columns["has_categories"] = truth.has_categories;
  return nb::make_tuple(columns, problem_list(problems));
}

nb::tuple read_coco_results(nb::bytes data, std::optional<Ids> image_ids, std::optional<Ids> category_ids, bool lenient,
                            std::size_t max_examples, std::int64_t max_side, std::size_t max_mask_numbers,
                            std::size_t max_numbers, const std::vector<std::string>& names,
                            std::optional<Ids> name_image_ids, int threads, std::size_t least_piece) {
  require(names.size() == (name_image_ids ? name_image_ids->shape(0) : 0), "expected an image id for each name");
  require(max_side >= 0 && max_side < (std::int64_t{1} << 31), "expected sides of images below 2^31");
  require(image_ids.has_value() == category_ids.has_value(), "expected the ids of images and categories, or neither");
  Problems problems(lenient, max_examples);
  coco::Results results;
  LargeColumn<double> covariances;
  {
    coco::Known known{false, nullptr, 0, nullptr, 0};
    if (image_ids) {
      known = {true, image_ids->data(), image_ids->shape(0), category_ids->data(), category_ids->shape(0)};
    }
    for (std::size_t k = 0; k < names.size(); ++k) known.images_by_name.emplace(names[k], name_image_ids->data()[k]);
    nb::gil_scoped_release unlocked;
    json::Reader in(data.c_str(), data.size());
    const coco::SegmentationLimits limits{max_side, max_mask_numbers, max_numbers};
    results = coco::ResultsReader(in, problems, known, limits).read({threads, least_piece});
    if (!results.others.covariances.rows.empty()) {
      covariances = std::move(results.others.covariances).spread(results.rows.count, 8);
    }
  }
  coco::Rows& rows = results.rows;
  coco::Others& others = results.others;
  const std::size_t n = rows.count;
  nb::dict columns;
  columns["entries"] = to_numpy(rows.entries, {n});
  columns["image_ids"] = to_numpy(rows.image_ids, {n});
  columns["labels"] = to_numpy(rows.labels, {n});
  columns["scores"] = to_numpy(rows.scores, {n});
  columns["boxes"] = to_numpy(rows.corners, {n, 4});
  columns["extents"] = to_numpy(rows.extents, {n, 2});
  columns["all_scores_rows"] = to_numpy(std::move(others.all_scores.rows));
  columns["all_scores"] = to_numpy(std::move(others.all_scores.values));
  columns["cls_prob_rows"] = to_numpy(std::move(others.cls_prob_rows));
  columns["covariances"] =
      others.covariances.rows.empty() ? nb::none() : to_numpy(std::move(covariances), {n, 2, 2, 2});
  columns["unknown_image_rows"] = others.unknown_image_rows;
  columns["boxless_rows"] = to_numpy(std::move(others.masks.boxless_rows));
  columns["mask_rows"] = to_numpy(std::move(others.masks.rows));
  columns["segmentations"] = segmentation_columns(std::move(others.masks.segmentations));
  columns["heatmap_rows"] = to_numpy(std::move(others.masks.heatmap_rows));
  columns["mask_files"] = to_numpy(std::move(others.masks.heatmap_files));
  columns["mask_ids"] = to_numpy(std::move(others.masks.mask_ids));
  columns["mask_file_names"] = nb::cast(others.masks.files.names());
  columns["unknown_images"] = to_numpy(std::move(others.unknown_images));
  columns["names"] = nb::cast(others.names);
  columns["name_entries"] = to_numpy(std::move(others.name_entries));
  columns["name_ids"] = to_numpy(std::move(others.name_ids));
  columns["name_has_id"] = to_numpy(std::move(others.name_has_id));
  return nb::make_tuple(columns, problem_list(problems));
}

nb::tuple read_rvc1(nb::bytes data, bool lenient, std::size_t max_examples, int threads, std::size_t least_piece) {
  Problems problems(lenient, max_examples);
  rvc1::Detections found;
  LargeColumn<double> covariances;
  {
    nb::gil_scoped_release unlocked;
    json::Reader in(data.c_str(), data.size());
    found = rvc1::DetectionsReader(in, problems).read({threads, least_piece});
    const std::size_t rows = found.image_rows.size();
    if (!found.covariances.rows.empty()) covariances = std::move(found.covariances).spread(rows, 8);
  }
  const std::size_t n = found.image_rows.size();
  const std::size_t classes = found.classes.size();
  found.label_probs.resize(n * classes);
  nb::dict columns;
  columns["classes"] = nb::cast(found.classes);
  columns["images"] = found.images;
  columns["image_names"] = nb::cast(found.image_names);
  columns["image_rows"] = to_numpy(std::move(found.image_rows));
  columns["entries"] = to_numpy(std::move(found.entries));
  columns["boxes"] = to_numpy(std::move(found.boxes), {n, 4});
  columns["label_probs"] = to_numpy(std::move(found.label_probs), {n, classes});
  columns["covariances"] = found.covariances.rows.empty() ? nb::none() : to_numpy(std::move(covariances), {n, 2, 2, 2});
  columns["mask_files"] = to_numpy(std::move(found.mask_files));
  columns["mask_ids"] = to_numpy(std::move(found.mask_ids));
  columns["mask_file_names"] = nb::cast(found.files.names());
  columns["other_keys"] = nb::cast(found.other_keys);
  columns["has_classes"] = found.has_classes;
  columns["has_detections"] = found.has_detections;
  columns["has_image_names"] = found.has_image_names;
  return nb::make_tuple(columns, problem_list(problems));
}

nb::tuple read_rvc1_labels(nb::bytes data, bool lenient, std::size_t max_examples) {
  Problems problems(lenient, max_examples);
  rvc1::Labels labels;
  {
    nb::gil_scoped_release unlocked;
    json::Reader in(data.c_str(), data.size());
    labels = rvc1::LabelsReader(in, problems).read();
  }
  const std::size_t objects = labels.mask_ids.size();
  nb::dict columns;
  columns["images"] = nb::cast(labels.images);
  columns["mask_names"] = nb::cast(labels.mask_names);
  columns["channels"] = to_numpy(std::move(labels.channels));
  columns["object_images"] = to_numpy(std::move(labels.object_images));
  columns["object_keys"] = nb::cast(labels.object_keys);
  columns["object_classes"] = nb::cast(labels.object_classes);
  columns["mask_ids"] = to_numpy(std::move(labels.mask_ids));
  columns["boxes"] = to_numpy(std::move(labels.boxes), {objects, 4});
  columns["has_mask"] = to_numpy(std::move(labels.has_mask));
  return nb::make_tuple(columns, problem_list(problems));
}

}  // namespace

void bind_readers(nb::module_& m) {
  nb::list troubles;
  for (const char* name : trouble_names) troubles.append(name);
  m.attr("TROUBLES") = nb::tuple(troubles);
  m.attr("NO_MASK_ID") = no_mask_id;
  m.def("read_file", &bytes_of_file, "descriptor"_a, "size"_a, "threads"_a,
        "Return the first bytes of an open file; None if it is shorter or cannot be read by several threads.");
  m.def("read_coco_truth", &read_coco_truth, "data"_a, nb::kw_only(), "lenient"_a, "max_examples"_a, "max_side"_a,
        "max_pixels"_a, "max_mask_numbers"_a, "max_numbers"_a, "Return columns and problems of COCO ground truth.");
  m.def("read_coco_results", &read_coco_results, "data"_a, nb::kw_only(), "image_ids"_a.none(), "category_ids"_a.none(),
        "lenient"_a, "max_examples"_a, "max_side"_a, "max_mask_numbers"_a, "max_numbers"_a,
        "names"_a = std::vector<std::string>(), "name_image_ids"_a = nb::none(), "threads"_a = 1, "least_piece"_a = 1,
        "Return columns and problems of COCO results; without ids (sorted), only the structure is checked.");
  m.def("read_rvc1", &read_rvc1, "data"_a, nb::kw_only(), "lenient"_a, "max_examples"_a, "threads"_a = 1,
        "least_piece"_a = 1, "Return columns and problems of the robotic vision challenge's detections.");
  m.def("read_rvc1_labels", &read_rvc1_labels, "data"_a, nb::kw_only(), "lenient"_a, "max_examples"_a,
        "Return columns and problems of the robotic vision challenge's labels.json.");
}
