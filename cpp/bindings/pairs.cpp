// Qualities of pairs: images, objects and detections in, pairs out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "kernel/large_array.hpp"
#include "kernel/pairs.hpp"
#include "label_table.hpp"
#include "mask_table.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace probox {
namespace {

using Maps = std::vector<Usable<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>>;  // of the settings' precision

struct Images {
  Column<std::int32_t> widths, heights;

  Images(Column<std::int32_t> widths, Column<std::int32_t> heights) : widths(widths), heights(heights) {
    require(heights.shape(0) == count(), "heights do not fit widths");
  }

  std::size_t count() const { return widths.shape(0); }

  // Contents are checked before each use, because Python may have changed them.
  void check() const {
    for (std::size_t i = 0; i < count(); ++i) require_sides(widths.data()[i], heights.data()[i]);
  }
};

void check_masks(const MaskTable& masks, const Images& images, const Column<std::int64_t>& offsets, bool allow_empty) {
  masks.check_offsets();
  for (std::size_t i = 0; i < images.count(); ++i)
    masks.check(offsets.data()[i], offsets.data()[i + 1], images.widths.data()[i], images.heights.data()[i],
                allow_empty);
}

// The objects of image i are rows offsets[i]..offsets[i + 1].
struct Objects {
  Column<std::int64_t> offsets;
  Column<std::int32_t> labels;
  MaskTable masks;

  Objects(Column<std::int64_t> offsets, Column<std::int32_t> labels, Table<std::int32_t> mask_boxes,
          Column<std::int64_t> mask_pixels, Column<std::int64_t> run_offsets, Table<std::int32_t> runs)
      : offsets(offsets), labels(labels), masks(mask_boxes, mask_pixels, run_offsets, runs) {
    require(labels.shape(0) == count(), "labels do not fit mask_pixels");
  }

  std::size_t count() const { return masks.count(); }

  void check(const Images& images, std::size_t class_count) const {
    require_offsets(offsets, images.count(), count(), "offsets of objects");
    require_rows(labels, class_count, "a class is out of range");
    check_masks(masks, images, offsets, /*allow_empty=*/false);
  }
};

// The detections of image i are rows offsets[i]..offsets[i + 1]. Row heatmap_rows[k] has heatmaps[k], which begins at
// column and row heatmap_corners[k] of the image. All rows have a mask, or none.
struct Found {
  Column<std::int64_t> offsets;
  Table<double> boxes;
  Array<double, 4> covariances;  // first axis 0 if there are no Gaussian boxes
  Column<std::uint8_t> kinds;
  LabelTable label_probs;
  Maps heatmaps;
  std::vector<std::int64_t> heatmap_rows;
  std::vector<HeatmapBlock> heatmap_of;  // of each row
  MaskTable masks;

  Found(Column<std::int64_t> offsets, Table<double> boxes, Array<double, 4> covariances, Column<std::uint8_t> kinds,
        const LabelTable& label_probs, Maps given, Column<std::int64_t> given_rows, Table<std::int32_t> given_corners,
        Table<std::int32_t> mask_boxes, Column<std::int64_t> mask_pixels, Column<std::int64_t> run_offsets,
        Table<std::int32_t> runs)
      : offsets(offsets), boxes(boxes), covariances(covariances), kinds(kinds), label_probs(label_probs),
        heatmaps(std::move(given)), heatmap_rows(given_rows.data(), given_rows.data() + given_rows.shape(0)),
        heatmap_of(count()), masks(mask_boxes, mask_pixels, run_offsets, runs) {
    require(masks.count() == 0 || masks.count() == count(), "masks do not fit boxes");
    require(boxes.shape(1) == 4, "boxes need four columns");
    require(kinds.shape(0) == count() && label_probs.rows == count(), "detection columns differ in length");
    const std::size_t covariance_rows = covariances.shape(0);
    require(covariance_rows == 0 || (covariance_rows == count() && covariances.size() == 8 * count()),
            "covariances do not fit boxes");
    require(heatmaps.size() == heatmap_rows.size() && given_corners.shape(0) == heatmap_rows.size() &&
                given_corners.shape(1) == 2,
            "one heatmap per row number");
    require_rows(given_rows, count(), "heatmap row out of range");
    for (std::size_t k = 0; k < heatmaps.size(); ++k) {
      constexpr std::size_t most = 1 << 30;
      require(heatmaps[k].ndim() == 2 && heatmaps[k].shape(0) <= most && heatmaps[k].shape(1) <= most,
              "expected heatmaps of up to 2^30 pixels a side");
      const int width = static_cast<int>(heatmaps[k].shape(1)), height = static_cast<int>(heatmaps[k].shape(0));
      heatmap_of[heatmap_rows[k]] = {true, heatmaps[k].data(), given_corners(k, 0), given_corners(k, 1), width, height};
    }
  }

  std::size_t count() const { return boxes.shape(0); }

  void check(const Images& images, bool single_precision) const {
    require_offsets(offsets, images.count(), count(), "offsets of detections");
    label_probs.check();
    const std::int64_t *begin = offsets.data(), *end = begin + offsets.shape(0);
    for (std::size_t k = 0; k < heatmaps.size(); ++k) {
      const auto image = std::upper_bound(begin, end, heatmap_rows[k]) - begin - 1;
      const HeatmapBlock& block = heatmap_of[heatmap_rows[k]];
      require(block.x >= 0 && block.y >= 0 && block.x <= images.widths.data()[image] - block.width &&
                  block.y <= images.heights.data()[image] - block.height,
              "a heatmap leaves its image");
      require(heatmaps[k].dtype() == (single_precision ? nb::dtype<float>() : nb::dtype<double>()),
              "a heatmap is not of the settings' precision");
    }
    if (masks.count() > 0) check_masks(masks, images, offsets, /*allow_empty=*/true);
    for (std::size_t d = 0; d < count(); ++d) check_kind(d);
  }

 private:
  void check_kind(std::size_t d) const {
    require(kinds.data()[d] <= static_cast<std::uint8_t>(Kind::mask), "unknown kind of detection");
    const auto kind = static_cast<Kind>(kinds.data()[d]);
    if (kind == Kind::heatmap) return require(heatmap_of[d].given, "a heatmap is missing");
    if (kind == Kind::mask) return require(masks.count() > 0, "a mask is missing");
    require(all_finite(boxes.data() + 4 * d, 4), "a box is not finite");
    if (kind == Kind::plain) return;
    require(covariances.shape(0) > 0, "a Gaussian box without covariance");
    require(all_finite(covariances.data() + 8 * d, 8), "a covariance is not finite");
  }
};

void check(const Settings& settings, const Images& images, const Objects& objects, const Found& found) {
  images.check();
  objects.check(images, found.label_probs.columns());
  found.check(images, settings.single_precision);
}

ImageCounts counts_at(std::size_t i, const Objects& objects, const Found& found) {
  return {objects.offsets.data()[i + 1] - objects.offsets.data()[i],
          found.offsets.data()[i + 1] - found.offsets.data()[i]};
}

Image image_at(std::size_t i, const Images& images, const Objects& objects, const Found& found) {
  const std::int64_t o0 = objects.offsets.data()[i], o1 = objects.offsets.data()[i + 1];
  const std::int64_t d0 = found.offsets.data()[i], d1 = found.offsets.data()[i + 1];
  const auto masks_of = [](const MaskTable& table, std::int64_t begin, std::int64_t end) {
    std::vector<Mask> masks;
    for (std::int64_t row = begin; row < end; ++row) masks.push_back(table[row]);
    return masks;
  };
  return {images.widths.data()[i],
          images.heights.data()[i],
          masks_of(objects.masks, o0, o1),
          objects.labels.data() + o0,
          static_cast<int>(d1 - d0),
          found.boxes.data() + 4 * d0,
          found.covariances.shape(0) ? found.covariances.data() + 8 * d0 : nullptr,
          found.kinds.data() + d0,
          found.heatmap_of.data() + d0,
          found.masks.count() ? masks_of(found.masks, d0, d1) : std::vector<Mask>(),
          found.label_probs.view(),
          static_cast<std::size_t>(d0)};
}

nb::tuple score(const Settings& settings, const Images& images, const Objects& objects, const Found& found,
                std::size_t max_pairs, int threads) {
  check(settings, images, objects, found);
  PairColumns pairs = [&] {
    nb::gil_scoped_release release;
    Stop stop(check_python_signals);
    const auto counts = [&](std::size_t i) { return counts_at(i, objects, found); };
    const auto image = [&](std::ptrdiff_t i) { return image_at(i, images, objects, found); };
    const std::size_t count = images.count();
    return settings.single_precision ? score_images<float>(count, counts, image, settings, max_pairs, threads, stop)
                                     : score_images<double>(count, counts, image, settings, max_pairs, threads, stop);
  }();
  return nb::make_tuple(to_numpy(std::move(pairs.detection), {pairs.count}),
                        to_numpy(std::move(pairs.object), {pairs.count}),
                        to_numpy(std::move(pairs.qualities), {pairs.count, kQualities}));
}

nb::object pair_qualities(const Settings& settings, const Images& images, const Objects& objects, const Found& found) {
  check(settings, images, objects, found);
  require(images.count() == 1, "expected one image");
  auto qualities = make_large_array<double>(volume(objects.count(), found.count(), kQualities));
  {
    nb::gil_scoped_release release;
    Stop stop(check_python_signals);
    const auto fill = settings.single_precision ? qualities_of_all_pairs<float> : qualities_of_all_pairs<double>;
    fill(image_at(0, images, objects, found), settings, stop, qualities.get());
  }
  return to_numpy(std::move(qualities), {objects.count(), found.count(), kQualities});
}

// Raised with the image row as its only argument; Python writes the message.
void bind_too_many_pairs(nb::module_& m) {
  nb::object type = nb::steal(PyErr_NewException("probox._core.TooManyPairsError", PyExc_Exception, nullptr));
  if (!type.is_valid()) throw nb::python_error();
  m.attr("TooManyPairsError") = type;
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const TooManyPairs& error) {
          PyErr_SetObject(static_cast<PyObject*>(type), nb::cast(error.image).ptr());
        }
      },
      type.ptr());
}

}  // namespace
}  // namespace probox

void bind_pairs(nb::module_& m) {
  using namespace probox;
  bind_too_many_pairs(m);
  m.attr("PLAIN") = static_cast<int>(Kind::plain);
  m.attr("GAUSSIAN") = static_cast<int>(Kind::gaussian);
  m.attr("HEATMAP") = static_cast<int>(Kind::heatmap);
  m.attr("MASK") = static_cast<int>(Kind::mask);
  nb::class_<Images>(m, "Images", "The sizes of images in pixels.")
      .def(nb::init<Column<std::int32_t>, Column<std::int32_t>>(), nb::kw_only(), "widths"_a, "heights"_a);
  nb::class_<Objects>(m, "Objects", "The objects of images, sorted by image; those of image i start at offsets[i].")
      .def(nb::init<Column<std::int64_t>, Column<std::int32_t>, Table<std::int32_t>, Column<std::int64_t>,
                    Column<std::int64_t>, Table<std::int32_t>>(),
           nb::kw_only(), "offsets"_a, "labels"_a, "mask_boxes"_a, "mask_pixels"_a, "run_offsets"_a, "runs"_a);
  nb::class_<Found>(m, "Found", "The detections of images, sorted by image; those of image i start at offsets[i].")
      .def(nb::init<Column<std::int64_t>, Table<double>, Array<double, 4>, Column<std::uint8_t>, const LabelTable&,
                    Maps, Column<std::int64_t>, Table<std::int32_t>, Table<std::int32_t>, Column<std::int64_t>,
                    Column<std::int64_t>, Table<std::int32_t>>(),
           nb::kw_only(), "offsets"_a, "boxes"_a, "covariances"_a, "kinds"_a, "label_probs"_a, "heatmaps"_a,
           "heatmap_rows"_a, "heatmap_corners"_a, "mask_boxes"_a, "mask_pixels"_a, "run_offsets"_a, "runs"_a);
  m.def("score_images", &score, "settings"_a, "images"_a, "objects"_a, "found"_a, nb::kw_only(), "max_pairs"_a,
        "threads"_a,
        "Return the pairs of positive quality: detection rows, object rows, five qualities each.\n\n"
        "An image with more than `max_pairs` raises TooManyPairsError, whose argument is its row.");
  m.def("pair_qualities", &pair_qualities, "settings"_a, "images"_a, "objects"_a, "found"_a,
        "Return the five qualities of every pair of one image, objects x detections x 5.");
}
