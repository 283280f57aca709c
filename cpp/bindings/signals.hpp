// Ctrl-C while Python waits for the kernel.
#pragma once

#include <nanobind/nanobind.h>

namespace probox {

// Lets Python handle the signals that have arrived; throws what a handler raises. Only Python's main thread handles any.
inline void check_python_signals() {
  const nanobind::gil_scoped_acquire held;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace probox
