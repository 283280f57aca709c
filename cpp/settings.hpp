// The numbers of a convention that the kernel needs; Python's `Convention` explains each.
#pragma once

namespace probox {

struct Settings {
  double epsilon = 1e-14;
  bool region_of_interest = true;
  double rough_sigmas = 5.0;
  double mahalanobis = 3.439;
  double min_determinant = 1e-8;
  double min_probability = 0.0027;
  bool single_precision = true;
  double snap_zero = 1e-8;
  double snap_one = 1.001e-5;
  double min_quality = 0.0;
  double label_weight = 0.5;
  bool mask_background = false;
};

}  // namespace probox
