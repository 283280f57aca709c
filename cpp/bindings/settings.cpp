// The constants of a convention, each given by name.
#include <nanobind/nanobind.h>

#include <cmath>

#include "arrays.hpp"
#include "kernel/settings.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using probox::require;
using probox::Settings;

void bind_settings(nb::module_& m) {
  nb::class_<Settings>(m, "Settings", "The constants of a convention that the kernel needs; none has a default.")
      .def(
          "__init__",
          [](Settings* self, double epsilon, bool region_of_interest, double reach_sigmas, double mahalanobis,
             double min_determinant, double min_probability, bool single_precision, double snap_zero, double snap_one,
             double min_quality, double label_weight, bool mask_background) {
            for (const double number : {epsilon, mahalanobis, min_determinant, min_probability, snap_zero, snap_one,
                                        min_quality, label_weight})
              require(std::isfinite(number), "expected finite settings");
            require(reach_sigmas >= 0.0 && reach_sigmas <= 1000.0, "expected a reach of 0 to 1000 standard deviations");
            new (self) Settings{epsilon,         region_of_interest, reach_sigmas,     mahalanobis,
                                min_determinant, min_probability,    single_precision, snap_zero,
                                snap_one,        min_quality,        label_weight,     mask_background};
          },
          nb::kw_only(), "epsilon"_a, "region_of_interest"_a, "reach_sigmas"_a, "mahalanobis"_a, "min_determinant"_a,
          "min_probability"_a, "single_precision"_a, "snap_zero"_a, "snap_one"_a, "min_quality"_a, "label_weight"_a,
          "mask_background"_a);
}
