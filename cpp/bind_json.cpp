// Readers of JSON files: bytes in, columns and problems out. The columns are None when the file was not read to its end.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "coco_results.hpp"
#include "coco_truth.hpp"
#include "json.hpp"
#include "problems.hpp"
#include "rvc1.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace probox;

namespace {

using Ids = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Paths and messages may hold pieces of the file, cut anywhere: what is no UTF-8 is replaced.
nb::object text(const std::string& value) {
  PyObject* decoded = PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal(decoded);
}

nb::list problem_list(const Problems& problems) {
  nb::list groups;
  for (const ProblemGroup& group : problems.groups()) {
    nb::list examples;
    for (const Problem& example : group.examples) {
      nb::object image = example.image ? nb::cast(*example.image) : nb::none();
      examples.append(nb::make_tuple(image, text(example.entry), text(example.text), text(example.remedy)));
    }
    groups.append(nb::make_tuple(group.kind, group.fatal, group.count, examples));
  }
  return groups;
}

nb::tuple read_coco_truth(nb::bytes data, bool lenient) {
  Problems problems(lenient);
  coco::Truth truth;
  {
    nb::gil_scoped_release unlocked;
    json::Reader in(data.c_str(), data.size());
    truth = coco::TruthReader(in, problems, data.size()).read();
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
  columns["kinds"] = to_numpy(std::move(truth.kinds));
  columns["rle_sizes"] = to_numpy(std::move(truth.rle_sizes), {n, 2});
  columns["piece_offsets"] = to_numpy(std::move(truth.piece_offsets));
  columns["number_offsets"] = to_numpy(std::move(truth.number_offsets));
  columns["numbers"] = to_numpy(std::move(truth.numbers));
  columns["other_keys"] = nb::cast(truth.other_keys);
  columns["has_images"] = truth.has_images;
  columns["has_annotations"] = truth.has_annotations;
  columns["has_categories"] = truth.has_categories;
  return nb::make_tuple(columns, problem_list(problems));
}

nb::tuple read_coco_results(nb::bytes data, bool ids_known, Ids image_ids, Ids category_ids, bool lenient) {
  Problems problems(lenient);
  coco::Results results;
  LargeArray<float> labels;
  bool fits = true;
  std::vector<double> covariances;
  const std::size_t columns_of_labels = category_ids.shape(0);
  {
    const coco::Known known{ids_known, image_ids.data(), image_ids.shape(0), category_ids.data(), columns_of_labels};
    nb::gil_scoped_release unlocked;
    json::Reader in(data.c_str(), data.size());
    results = coco::ResultsReader(in, problems, known).read();
    fits = coco::label_matrix_fits(results.labels.size(), columns_of_labels);
    if (fits) labels = coco::label_matrix(results, columns_of_labels);
    if (!results.covariances.rows.empty()) covariances = results.covariances.spread(results.labels.size(), 8);
  }
  const std::size_t n = results.labels.size();
  nb::dict columns;
  columns["entries"] = to_numpy(std::move(results.entries));
  columns["image_ids"] = to_numpy(std::move(results.image_ids));
  columns["labels"] = to_numpy(std::move(results.labels));
  columns["scores"] = to_numpy(std::move(results.scores));
  columns["boxes"] = to_numpy(std::move(results.corners), {n, 4});
  columns["sizes"] = to_numpy(std::move(results.sizes), {n, 2});
  columns["label_probs"] = fits ? to_numpy(std::move(labels), {n, columns_of_labels}) : nb::none();
  columns["covariances"] =
      results.covariances.rows.empty() ? nb::none() : to_numpy(std::move(covariances), {n, 2, 2, 2});
  columns["unknown_image_rows"] = results.unknown_image_rows;
  columns["unknown_images"] = to_numpy(std::move(results.unknown_images));
  return nb::make_tuple(columns, problem_list(problems));
}

nb::tuple read_rvc1(nb::bytes data, bool lenient) {
  Problems problems(lenient);
  rvc1::Detections found;
  std::vector<double> covariances;
  {
    nb::gil_scoped_release unlocked;
    json::Reader in(data.c_str(), data.size());
    found = rvc1::DetectionsReader(in, problems).read();
    if (!found.covariances.rows.empty()) covariances = found.covariances.spread(found.image_rows.size(), 8);
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
  columns["mask_file_names"] = nb::cast(found.mask_file_names);
  columns["other_keys"] = nb::cast(found.other_keys);
  columns["has_classes"] = found.has_classes;
  columns["has_detections"] = found.has_detections;
  columns["has_image_names"] = found.has_image_names;
  return nb::make_tuple(columns, problem_list(problems));
}

nb::tuple read_rvc1_labels(nb::bytes data, bool lenient) {
  Problems problems(lenient);
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

void bind_json(nb::module_& m) {
  m.def("read_coco_truth", &read_coco_truth, nb::arg("data"), nb::arg("lenient"));
  m.def("read_coco_results", &read_coco_results, nb::arg("data"), nb::arg("ids_known"), nb::arg("image_ids"),
        nb::arg("category_ids"), nb::arg("lenient"));
  m.def("label_matrix_fits", &coco::label_matrix_fits, nb::arg("rows"), nb::arg("columns"));
  m.def("read_rvc1", &read_rvc1, nb::arg("data"), nb::arg("lenient"));
  m.def("read_rvc1_labels", &read_rvc1_labels, nb::arg("data"), nb::arg("lenient"));
}
