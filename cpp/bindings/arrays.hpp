// Types of arrays passed from Python, and consistency checks. Their content is untrusted.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace probox {

namespace nb = nanobind;

// An array aligned to its item size, with booleans of 0 or 1. Other arrays, such as a field of packed records, are
// copied.
template <class Base>
struct Usable : Base {
  Usable() = default;
  explicit Usable(Base&& base) : Base(std::move(base)) {}
};

template <class T, class Shape>
using ArrayOf = Usable<nb::ndarray<const T, Shape, nb::c_contig, nb::device::cpu>>;
template <class T, std::size_t N>
using Array = ArrayOf<T, nb::ndim<N>>;
template <class T>
using Column = Array<T, 1>;
template <class T>
using Table = Array<T, 2>;

// Errors for wrong calls of the kernel, not for users: Python validates user input first.
inline void require(bool fits, const char* what) {
  if (!fits) throw std::invalid_argument(what);
}

// Checks offsets: `count` + 1 entries, ascending from 0 to `total`.
inline void require_offsets(const Column<std::int64_t>& offsets, std::size_t count, std::size_t total,
                            const char* what) {
  require(offsets.shape(0) == count + 1 && offsets.data()[0] == 0 &&
              offsets.data()[count] == static_cast<std::int64_t>(total),
          what);
  for (std::size_t i = 0; i < count; ++i) require(offsets.data()[i] <= offsets.data()[i + 1], what);
}

// Checks that every entry is a row number below `count`.
template <class T>
void require_rows(const Column<T>& rows, std::size_t count, const char* what) {
  for (std::size_t k = 0; k < rows.shape(0); ++k)
    require(rows.data()[k] >= 0 && static_cast<std::size_t>(rows.data()[k]) < count, what);
}

// Scores are sorted. NaN breaks the order, and a sort with it may access memory outside the array.
inline void require_scores(const Column<double>& scores) {
  for (std::size_t k = 0; k < scores.shape(0); ++k) require(!std::isnan(scores.data()[k]), "expected no score of NaN");
}

// The product of lengths. Arrays above 2^60 cannot exist, and products of int64 would overflow.
template <class... Lengths>
std::size_t volume(Lengths... lengths) {
  std::size_t product = 1;
  bool empty = false, fits = true;
  for (const std::size_t length : {static_cast<std::size_t>(lengths)...}) {
    empty = empty || length == 0;
    fits = fits && length <= (std::size_t{1} << 60) / product;
    if (fits && length > 0) product *= length;
  }
  require(fits, "expected fewer rows or columns");
  return empty ? 0 : product;
}

// The size of an image; sums of its sides fit an int.
template <class T>
void require_sides(T width, T height) {
  constexpr T most = 1 << 30;
  require(width > 0 && height > 0 && width <= most && height <= most, "expected images of 1 to 2^30 pixels a side");
}

inline bool all_finite(const double* values, std::size_t count) {
  return std::all_of(values, values + count, [](double value) { return std::isfinite(value); });
}

}  // namespace probox

namespace nanobind::detail {

template <class Base>
struct type_caster<probox::Usable<Base>> {
  using Item = std::remove_const_t<typename Base::Scalar>;
  static constexpr bool kBooleans = std::is_same_v<Item, bool>;

  NB_TYPE_CASTER(probox::Usable<Base>, make_caster<Base>::Name)

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<Base> given;
    if (!given.from_python(source, flags, cleanup)) return false;
    try {
      value = probox::Usable<Base>(is_usable(given.value) ? std::move(given.value) : copied(given.value));
      return true;
    } catch (...) {
      PyErr_Clear();
      return false;
    }
  }

 private:
  static const std::uint8_t* bytes_of(const Base& array) {
    return static_cast<const std::uint8_t*>(static_cast<const void*>(array.data()));
  }

  static bool is_usable(const Base& array) {
    if (!array.is_valid() || array.nbytes() == 0) return true;
    const std::uint8_t* data = bytes_of(array);
    if (reinterpret_cast<std::uintptr_t>(data) % array.itemsize() != 0) return false;
    return !kBooleans || std::all_of(data, data + array.nbytes(), [](std::uint8_t byte) { return byte <= 1; });
  }

  static Base copied(const Base& array) {
    const std::uint8_t* data = bytes_of(array);
    auto* memory = static_cast<std::uint8_t*>(std::malloc(array.nbytes()));
    if (memory == nullptr) throw std::bad_alloc();
    capsule owner(memory, [](void* p) noexcept { std::free(p); });
    std::transform(data, data + array.nbytes(), memory,
                   [](std::uint8_t byte) { return kBooleans ? static_cast<std::uint8_t>(byte != 0) : byte; });
    const std::vector<std::size_t> shape(array.shape_ptr(), array.shape_ptr() + array.ndim());
    return Base(memory, shape.size(), shape.data(), owner, nullptr, array.dtype());
  }
};

}  // namespace nanobind::detail
