// Outcomes of detections and objects.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "arrays.hpp"
#include "kernel/verdicts.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

nb::tuple columns_of(JudgedColumns&& judged) {
  const std::size_t n = judged.count, width = judged.width;
  return nb::make_tuple(to_numpy(std::move(judged.verdicts), {n}), to_numpy(std::move(judged.partners), {n}),
                        to_numpy(std::move(judged.qualities), {n, width}));
}

nb::tuple judge(Column<bool> matched, Column<std::int64_t> detections, Column<std::int64_t> objects,
                Table<double> qualities, std::size_t detection_count, Column<bool> ignored_objects,
                std::uint8_t ignored, std::uint8_t right, std::uint8_t wrong, std::uint8_t missed) {
  const std::size_t n = matched.shape(0), object_count = ignored_objects.shape(0);
  require(detections.shape(0) == n && objects.shape(0) == n && qualities.shape(0) == n,
          "pair columns differ in length");
  require(qualities.shape(1) >= 1, "a pair needs a quality");
  require_rows(detections, detection_count, "a pair has an unknown row");
  require_rows(objects, object_count, "a pair has an unknown row");
  volume(detection_count, qualities.shape(1));
  volume(object_count, qualities.shape(1));
  JudgedColumns found(detection_count, qualities.shape(1)), there(object_count, qualities.shape(1));
  judge_matches({n, qualities.shape(1), detections.data(), objects.data(), qualities.data()}, matched.data(),
                ignored_objects.data(), {ignored, right, wrong, missed}, found, there);
  return nb::make_tuple(columns_of(std::move(found)), columns_of(std::move(there)));
}

}  // namespace

void bind_verdicts(nb::module_& m) {
  m.def(
      "judge_matches", &judge, nb::kw_only(), "matched"_a, "detections"_a, "objects"_a, "qualities"_a,
      "detection_count"_a, "ignored_objects"_a, "ignored"_a, "right"_a, "wrong"_a, "missed"_a,
      "Return outcomes, matches and qualities of all detections, and of all objects; the last four are outcome codes.");
}
