// Ctrl-C during a call of the kernel.
#pragma once

#include <nanobind/nanobind.h>

namespace probox {

// Handles pending signals in Python and throws a handler's exception. Only Python's main thread handles signals.
inline void check_python_signals() {
  const nanobind::gil_scoped_acquire held;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace probox
