// The Python module `probox._core`. Each concept has its own binding file beside this one.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_assignment(nb::module_& m);
void bind_box_checks(nb::module_& m);
void bind_box_measures(nb::module_& m);
void bind_box_resampling(nb::module_& m);
void bind_clustering(nb::module_& m);
void bind_heatmap(nb::module_& m);
void bind_image_groups(nb::module_& m);
void bind_instruction_sets(nb::module_& m);
void bind_labels(nb::module_& m);
void bind_mask_overlaps(nb::module_& m);
void bind_masks(nb::module_& m);
void bind_optimal_lrp(nb::module_& m);
void bind_pairs(nb::module_& m);
void bind_pmb_nll(nb::module_& m);
void bind_readers(nb::module_& m);
void bind_settings(nb::module_& m);
void bind_verdicts(nb::module_& m);
void bind_writers(nb::module_& m);

NB_MODULE(_core, m) {
  m.doc() = "The kernel of probox: functions of arrays.";
  bind_settings(m);
  bind_heatmap(m);
  bind_pairs(m);
  bind_assignment(m);
  bind_verdicts(m);
  bind_box_checks(m);
  bind_box_measures(m);
  bind_optimal_lrp(m);
  bind_box_resampling(m);
  bind_clustering(m);
  bind_image_groups(m);
  bind_instruction_sets(m);
  bind_labels(m);
  bind_mask_overlaps(m);
  bind_masks(m);
  bind_pmb_nll(m);
  bind_readers(m);
  bind_writers(m);
}
