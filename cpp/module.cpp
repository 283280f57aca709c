// The Python module `probox._core`. Each concept has its own binding file beside this one.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_boxes(nb::module_& m);
void bind_fusion(nb::module_& m);
void bind_json(nb::module_& m);
void bind_json_writer(nb::module_& m);
void bind_labels(nb::module_& m);
void bind_masks(nb::module_& m);
void bind_pdq(nb::module_& m);

NB_MODULE(_core, m) {
  m.doc() = "The kernel of probox: arrays in, arrays out.";
  bind_boxes(m);
  bind_fusion(m);
  bind_json(m);
  bind_json_writer(m);
  bind_labels(m);
  bind_masks(m);
  bind_pdq(m);
}
