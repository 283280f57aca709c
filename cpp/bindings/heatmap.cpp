// P(x in S) of one box, and its Gaussian distributions.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

#include "arrays.hpp"
#include "kernel/gaussian.hpp"
#include "kernel/pixel_probability.hpp"
#include "to_numpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

nb::object heatmap(const Settings& settings, ArrayOf<double, nb::shape<4>> box, Array<double, 3> covariances, int width,
                   int height) {
  require_sides(width, height);
  const bool plain = covariances.size() == 0;
  require(plain || covariances.size() == 8, "expected covariances of shape 2 x 2 x 2");
  require(all_finite(box.data(), 4) && all_finite(covariances.data(), covariances.size()),
          "expected a finite box and covariances");
  const auto columns = static_cast<std::size_t>(width), rows = static_cast<std::size_t>(height);
  std::vector<double> image(volume(columns, rows));
  const auto fill = settings.single_precision ? heatmap_of_box<float> : heatmap_of_box<double>;
  fill(box.data(), plain ? nullptr : covariances.data(), width, height, settings, image.data());
  return to_numpy(std::move(image), {rows, columns});
}

}  // namespace

void bind_heatmap(nb::module_& m) {
  m.def("heatmap", &heatmap, "settings"_a, nb::kw_only(), "box"_a, "covariances"_a, "width"_a, "height"_a,
        "Return the H x W probabilities of one box; covariances of size 0: a box without covariance.");
  m.def("bivariate_cdf", &bivariate_cdf, "h"_a, "k"_a, "rho"_a, "Return Pr(X <= h, Y <= k) of standard Gaussians.");
  m.def(
      "normal_cdf_table", [](double x) { return NormalTable::get().cdf(x); }, "x"_a,
      "Return Phi(x) from the kernel's interpolation table.");
}
