// C++ columns as read-only NumPy arrays that own the memory, without a copy. All results use this conversion.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/large_array.hpp"
#include "kernel/shared_block.hpp"

namespace probox {

namespace nb = nanobind;

template <class T, class Allocator>
nb::object to_numpy(std::vector<T, Allocator>&& values, std::initializer_list<std::size_t> shape) {
  auto owner = std::make_unique<std::vector<T, Allocator>>(std::move(values));
  if (owner->capacity() == 0) owner->reserve(1);  // an empty array needs an address, too
  const T* data = owner->data();
  nb::capsule deleter(owner.release(), [](void* p) noexcept { delete static_cast<std::vector<T, Allocator>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, const T>(data, shape, deleter));
}

template <class T, class Allocator>
nb::object to_numpy(std::vector<T, Allocator>&& values) {
  const std::size_t size = values.size();
  return to_numpy(std::move(values), {size});
}

template <class T>
nb::object to_numpy(LargeArray<T>&& values, std::initializer_list<std::size_t> shape) {
  const T* data = values.get();
  nb::capsule deleter(values.release(), [](void* p) noexcept { std::free(p); });
  return nb::cast(nb::ndarray<nb::numpy, const T>(data, shape, deleter));
}

// The array keeps the whole block.
template <class T>
nb::object to_numpy(const BlockArray<T>& values, std::initializer_list<std::size_t> shape) {
  auto owner = std::make_unique<BlockArray<T>>(values);
  nb::capsule deleter(owner.release(), [](void* p) noexcept { delete static_cast<BlockArray<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, const T>(values.data(), shape, deleter));
}

}  // namespace probox
