// Constants of a convention that the kernel needs. Python's `Convention` documents them and has the defaults; the
// kernel has none, which avoids a second set of defaults.
#pragma once

namespace probox {

struct Settings {
  double epsilon;
  bool region_of_interest;
  double reach_sigmas;  // a corner's distribution is computed within this many standard deviations of its mean
  double mahalanobis;
  double min_determinant;
  double min_probability;
  bool single_precision;
  double snap_zero;
  double snap_one;
  double min_quality;
  double label_weight;
  bool mask_background;
};

}  // namespace probox
