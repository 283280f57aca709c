// Groups the rows of a table by image.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "arrays.hpp"
#include "kernel/image_groups.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

nb::tuple grouped(Column<std::int64_t> image_ids, Column<std::int64_t> known) {
  ImageGroups groups = group_by_image(image_ids.data(), image_ids.shape(0), known.data(), known.shape(0));
  return nb::make_tuple(to_numpy(std::move(groups.image_rows)), to_numpy(std::move(groups.numbers)),
                        to_numpy(std::move(groups.order)), groups.in_order);
}

nb::object found_rows(Column<std::int64_t> image_ids, Column<std::int64_t> known) {
  return to_numpy(rows_of_ids(image_ids.data(), image_ids.shape(0), known.data(), known.shape(0)));
}

nb::object offsets_of(Column<std::int64_t> image_rows, std::size_t images) {
  volume(images, 2);
  return to_numpy(image_offsets(image_rows.data(), image_rows.shape(0), images));
}

}  // namespace

void bind_image_groups(nb::module_& m) {
  m.def(
      "group_by_image", &grouped, "image_ids"_a, "known"_a,
      "Return each row's image (index into the ascending `known` ids) and its number in it, both -1 for unknown ids;\n"
      "the rows of known images, by image; and whether these are all rows in their original order.");
  m.def("rows_of_ids", &found_rows, "image_ids"_a, "known"_a,
        "Return the index of each id in the ascending `known` ids, -1 for unknown ids.");
  m.def("image_offsets", &offsets_of, "image_rows"_a, "images"_a,
        "Return the start of each image's rows in a column of ascending image rows; one more entry than images.");
}
