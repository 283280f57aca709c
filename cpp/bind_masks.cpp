// Masks: geometry in, runs out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "coco_truth.hpp"
#include "parallel.hpp"
#include "png.hpp"
#include "runs.hpp"
#include "signals.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace probox;

namespace {

template <class T, std::size_t N>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

nb::tuple run_columns(RunTable&& table) {
  const std::size_t n = table.pixels.size();
  const std::size_t runs = table.runs.size() / 3;
  return nb::make_tuple(to_numpy(std::move(table.boxes), {n, 4}), to_numpy(std::move(table.pixels)),
                        to_numpy(std::move(table.offsets)), to_numpy(std::move(table.runs), {runs, 3}));
}

// Rasterise objects `order` of the geometry columns that read_coco_truth gives, each in an image of its own size. Masks
// that take more than what a file of so many bytes may are not finished: fewer objects come back than were asked for.
nb::tuple rasterise(Array<std::int64_t, 1> order, Array<std::uint8_t, 1> kinds, Array<std::int64_t, 1> piece_offsets,
                    Array<std::int64_t, 1> number_offsets, Array<double, 1> numbers, Array<std::int32_t, 2> box_pixels,
                    Array<std::int32_t, 1> heights, Array<std::int32_t, 1> widths, std::int64_t file_bytes) {
  const std::size_t objects = kinds.shape(0);
  const std::int64_t pieces = static_cast<std::int64_t>(number_offsets.shape(0)) - 1;
  if (piece_offsets.shape(0) != objects + 1 || heights.shape(0) != objects || widths.shape(0) != objects ||
      box_pixels.shape(0) != objects || box_pixels.shape(1) != 4 || pieces < 0 ||
      piece_offsets(objects) != pieces ||
      number_offsets(static_cast<std::size_t>(pieces)) != static_cast<std::int64_t>(numbers.shape(0))) {
    throw std::invalid_argument("geometry columns do not fit together");
  }
  RunTable table;
  {
    nb::gil_scoped_release unlocked;
    Stop stop(listen_to_python);
    Rasteriser rasteriser(MaskBudget::of_file(file_bytes));
    const std::size_t count = order.shape(0);
    table.boxes.reserve(4 * count);
    table.pixels.reserve(count);
    table.offsets.reserve(count + 1);
    for (std::size_t k = 0; k < count; ++k) {
      stop.check(0);
      const auto object = static_cast<std::size_t>(order(k));
      if (object >= objects) throw std::invalid_argument("order names an object that is not there");
      if (kinds(object) == coco::no_mask) {
        const std::int32_t* box = box_pixels.data() + 4 * object;
        table.add_box(box[0], box[1], box[2], box[3]);
        continue;
      }
      rasteriser.start(heights(object), widths(object));
      const auto first = static_cast<std::size_t>(piece_offsets(object));
      const auto last = static_cast<std::size_t>(piece_offsets(object + 1));
      try {
        for (std::size_t piece = first; piece < last; ++piece) {
          const double* values = numbers.data() + number_offsets(piece);
          const std::int64_t size = number_offsets(piece + 1) - number_offsets(piece);
        if (size == 0) continue;
          if (kinds(object) == coco::run_lengths) {
            rasteriser.add_counts(values, size);
          } else {
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

// The runs of the pixels that have each of these values, in one pass over the image. Nothing comes back if there are more
// than `most_runs`.
template <class T>
nb::object label_runs(Array<T, 2> image, Array<std::int64_t, 1> values, std::int64_t most_runs) {
  const std::size_t height = image.shape(0);
  const std::size_t width = image.shape(1);
  const std::size_t count = values.shape(0);
  RunTable table;
  std::int64_t left = most_runs;
  {
    nb::gil_scoped_release unlocked;
    std::vector<std::int32_t> object_of(65536, -1);
    for (std::size_t k = 0; k < count; ++k) {
      if (values(k) >= 0 && values(k) < 65536) object_of[static_cast<std::size_t>(values(k))] = static_cast<std::int32_t>(k);
    }
    std::vector<std::vector<std::int32_t>> runs(count);
    for (std::size_t y = 0; y < height && left >= 0; ++y) {
      const T* row = image.data() + y * width;
      for (std::size_t x = 0; x < width;) {
        const T value = row[x];
        const std::size_t begin = x;
        do ++x;
        while (x < width && row[x] == value);
        const std::int32_t object = object_of[value];
        if (object >= 0) {
          if (--left < 0) break;
          runs[static_cast<std::size_t>(object)].insert(
              runs[static_cast<std::size_t>(object)].end(),
              {static_cast<std::int32_t>(y), static_cast<std::int32_t>(begin), static_cast<std::int32_t>(x)});
        }
      }
    }
    for (auto& object_runs : runs) {
      table.add_runs(object_runs);
      std::vector<std::int32_t>().swap(object_runs);
    }
  }
  if (left < 0) return nb::none();
  return run_columns(std::move(table));
}

// Undo the filters of some of a PNG's rows; each row is led by the number of its filter. `above` is the row before them,
// unfiltered: zeros before the first.
nb::object png_unfilter(nb::bytes data, Array<std::uint8_t, 1> above, std::size_t pixel_bytes) {
  const std::size_t row_bytes = above.shape(0);
  const std::size_t height = data.size() / (row_bytes + 1);
  if (pixel_bytes == 0 || row_bytes == 0 || data.size() != height * (row_bytes + 1)) {
    throw std::invalid_argument("the image data has the wrong length");
  }
  std::vector<std::uint8_t> rows(height * row_bytes);
  {
    nb::gil_scoped_release unlocked;
    const auto* source = reinterpret_cast<const std::uint8_t*>(data.c_str());
    if (!png::unfilter(source, rows.data(), above.data(), height, row_bytes, pixel_bytes)) {
      throw std::invalid_argument("a row has an unknown filter");
    }
  }
  return to_numpy(std::move(rows), {height, row_bytes});
}

}  // namespace

void bind_masks(nb::module_& m) {
  m.def("rasterise", &rasterise, nb::arg("order"), nb::arg("kinds"), nb::arg("piece_offsets"),
        nb::arg("number_offsets"), nb::arg("numbers"), nb::arg("box_pixels"), nb::arg("heights"), nb::arg("widths"),
        nb::arg("file_bytes"));
  m.def("label_runs", &label_runs<std::uint8_t>, nb::arg("image"), nb::arg("values"), nb::arg("most_runs"));
  m.def("label_runs", &label_runs<std::uint16_t>, nb::arg("image"), nb::arg("values"), nb::arg("most_runs"));
  m.def("png_unfilter", &png_unfilter, nb::arg("data"), nb::arg("above"), nb::arg("pixel_bytes"));
}
