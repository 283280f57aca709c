// Arrays that Python hands in: their types, and checks that they fit each other. No number in them is trusted.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace probox {

namespace nb = nanobind;

template <class T, std::size_t N>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T>
using Column = Array<T, 1>;
template <class T>
using Table = Array<T, 2>;

// What is said here is for who calls the kernel wrongly, never for a user: Python checks what users give first.
inline void require(bool fits, const char* what) {
  if (!fits) throw std::invalid_argument(what);
}

// Ascending from 0 to `total`, one more than `count`.
inline void require_offsets(const Column<std::int64_t>& offsets, std::size_t count, std::size_t total,
                            const char* what) {
  require(offsets.shape(0) == count + 1 && offsets.data()[0] == 0 &&
              offsets.data()[count] == static_cast<std::int64_t>(total),
          what);
  for (std::size_t i = 0; i < count; ++i) require(offsets.data()[i] <= offsets.data()[i + 1], what);
}

}  // namespace probox
