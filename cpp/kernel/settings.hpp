// The numbers of a convention that the kernel needs. Python's `Convention` explains each and has their usual values: here
// is none, so that no second one can differ.
#pragma once

namespace probox {

struct Settings {
  double epsilon;
  bool region_of_interest;
  double reach_sigmas;  // a corner's distribution is computed within so many standard deviations of its mean
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
