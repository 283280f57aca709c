// Masks: runs from geometry or label images; and the rows of a PNG.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "kernel/parallel.hpp"
#include "kernel/rasteriser.hpp"
#include "kernel/runs.hpp"
#include "readers/coco_truth.hpp"
#include "readers/png.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

nb::tuple run_columns(RunTable&& table) {
  const std::size_t n = table.pixels.size();
  const std::size_t runs = table.runs.size() / 3;
  return nb::make_tuple(to_numpy(std::move(table.boxes), {n, 4}), to_numpy(std::move(table.pixels)),
                        to_numpy(std::move(table.offsets)), to_numpy(std::move(table.runs), {runs, 3}));
}

// Checks that run lengths fit the image.
void require_run_lengths(const double* lengths, std::int64_t count, std::int32_t height, std::int32_t width) {
  const double pixels = static_cast<double>(height) * width;
  double total = 0.0;
  for (std::int64_t k = 0; k < count; ++k) {
    require(lengths[k] >= 0.0 && lengths[k] <= pixels, "expected run lengths within the image");
    total += lengths[k];
  }
  require(total <= pixels, "expected run lengths within the image");
}

// Rasterises objects `order` of the geometry columns of read_coco_truth, each in an image of its own size. Masks above
// the limits are not finished: the result then has fewer objects.
nb::tuple rasterise(Column<std::int64_t> order, Column<std::uint8_t> kinds, Column<std::int64_t> piece_offsets,
                    Column<std::int64_t> number_offsets, Column<double> numbers, Table<std::int32_t> box_pixels,
                    Column<std::int32_t> heights, Column<std::int32_t> widths, std::int64_t max_runs,
                    std::int64_t max_crossings, std::int64_t max_object_crossings) {
  const std::size_t objects = kinds.shape(0);
  const std::int64_t pieces = static_cast<std::int64_t>(number_offsets.shape(0)) - 1;
  require(piece_offsets.shape(0) == objects + 1 && heights.shape(0) == objects && widths.shape(0) == objects &&
              box_pixels.shape(0) == objects && box_pixels.shape(1) == 4 && pieces >= 0,
          "geometry columns do not fit together");
  require_offsets(piece_offsets, objects, static_cast<std::size_t>(pieces), "offsets of pieces");
  require_offsets(number_offsets, static_cast<std::size_t>(pieces), numbers.shape(0), "offsets of numbers");
  require_rows(order, objects, "order contains an unknown object");
  require(max_runs >= 0 && max_crossings >= 0 && max_object_crossings >= 0, "expected limits of 0 or more");
  RunTable table;
  {
    nb::gil_scoped_release unlocked;
    Stop stop(check_python_signals);
    Rasteriser rasteriser({max_runs, max_crossings, max_object_crossings});
    const std::size_t count = order.shape(0);
    table.boxes.reserve(4 * count);
    table.pixels.reserve(count);
    table.offsets.reserve(count + 1);
    for (std::size_t k = 0; k < count; ++k) {
      stop.check(0);
      const auto object = static_cast<std::size_t>(order(k));
      if (kinds(object) == coco::no_mask) {
        const std::int32_t* box = box_pixels.data() + 4 * object;
        require(std::all_of(box, box + 4, [](std::int32_t side) { return side >= -1 && side <= 1 << 30; }),
                "expected boxes of pixels from -1 to 2^30");
        table.add_box(box[0], box[1], box[2], box[3]);
        continue;
      }
      require_sides(widths(object), heights(object));
      rasteriser.start(heights(object), widths(object));
      const auto first = static_cast<std::size_t>(piece_offsets(object));
      const auto last = static_cast<std::size_t>(piece_offsets(object + 1));
      try {
        for (std::size_t piece = first; piece < last; ++piece) {
          const double* values = numbers.data() + number_offsets(piece);
          const std::int64_t size = number_offsets(piece + 1) - number_offsets(piece);
          if (size == 0) continue;
          if (kinds(object) == coco::run_lengths) {
            require_run_lengths(values, size, heights(object), widths(object));
            rasteriser.add_counts(values, size);
          } else {
            require(std::all_of(values, values + size, [](double value) { return std::abs(value) <= 1e9; }),
                    "expected corners of polygons up to 1e9");
            rasteriser.add_polygon(values, size / 2);
          }
        }
        table.add_runs(rasteriser.finish());
      } catch (const MaskTooLarge&) {
        break;
      }
    }
  }
  return run_columns(std::move(table));
}

template <class T>
nb::object runs_of_labels(Table<T> image, Column<std::int64_t> values, std::int64_t max_runs) {
  require(max_runs >= 0, "expected a limit of runs of at least 0");
  const std::size_t height = image.size() > 0 ? image.shape(0) : 0;
  require(height < (1u << 31) && image.shape(1) < (1u << 31), "expected a smaller image");
  std::optional<RunTable> table;
  {
    nb::gil_scoped_release unlocked;
    table = label_runs(image.data(), height, image.shape(1), values.data(), values.shape(0), max_runs);
  }
  return table ? nb::object(run_columns(std::move(*table))) : nb::none();
}

// Undoes the filters of rows of a PNG; each row starts with its filter type. `above` is the unfiltered previous row:
// zeros before the first.
nb::object png_unfilter(nb::bytes data, Column<std::uint8_t> above, std::size_t pixel_bytes) {
  const std::size_t row_bytes = above.shape(0);
  const std::size_t height = data.size() / (row_bytes + 1);
  require(pixel_bytes > 0 && row_bytes > 0 && data.size() == height * (row_bytes + 1),
          "the image data has the wrong length");
  std::vector<std::uint8_t> rows(height * row_bytes);
  {
    nb::gil_scoped_release unlocked;
    const auto* source = reinterpret_cast<const std::uint8_t*>(data.c_str());
    require(png::unfilter(source, rows.data(), above.data(), height, row_bytes, pixel_bytes),
            "a row has an unknown filter");
  }
  return to_numpy(std::move(rows), {height, row_bytes});
}

}  // namespace

void bind_masks(nb::module_& m) {
  m.attr("NO_MASK") = static_cast<int>(coco::no_mask);
  m.attr("POLYGONS") = static_cast<int>(coco::polygons);
  m.attr("RUN_LENGTHS") = static_cast<int>(coco::run_lengths);
  m.def(
      "rasterise", &rasterise, nb::kw_only(), "order"_a, "kinds"_a, "piece_offsets"_a, "number_offsets"_a, "numbers"_a,
      "box_pixels"_a, "heights"_a, "widths"_a, "max_runs"_a, "max_crossings"_a, "max_object_crossings"_a,
      "Return boxes, pixels, offsets and runs of the masks of these objects; fewer if a mask exceeds a limit.");
  const char* label_runs_doc =
      "Return boxes, pixels, offsets and runs of the pixels that have each of these values, or None if there are more "
      "than `max_runs`.";
  m.def("label_runs", &runs_of_labels<std::uint8_t>, "image"_a, "values"_a, "max_runs"_a, label_runs_doc);
  m.def("label_runs", &runs_of_labels<std::uint16_t>, "image"_a, "values"_a, "max_runs"_a, label_runs_doc);
  m.def("png_unfilter", &png_unfilter, "data"_a, "above"_a, "pixel_bytes"_a,
        "Return rows of a PNG with their filters undone; `above` is the row before them, zeros before the first.");
}
