// Columns that a reader fills: vectors with uninitialised memory in huge pages.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "kernel/large_array.hpp"

namespace probox {

template <class T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <class Other>
  LargeAllocator(const LargeAllocator<Other>&) noexcept {}

  T* allocate(std::size_t count) { return make_large_array<T>(count).release(); }
  void deallocate(T* memory, std::size_t) noexcept { std::free(memory); }

  // New elements of `resize` are overwritten: initialising them would waste time.
  template <class Other>
  void construct(Other* place) noexcept {
    ::new (static_cast<void*>(place)) Other;
  }
  template <class Other, class... Given>
  void construct(Other* place, Given&&... given) {
    ::new (static_cast<void*>(place)) Other(std::forward<Given>(given)...);
  }

  friend bool operator==(const LargeAllocator&, const LargeAllocator&) { return true; }
  friend bool operator!=(const LargeAllocator&, const LargeAllocator&) { return false; }
};

template <class T>
using LargeColumn = std::vector<T, LargeAllocator<T>>;

}  // namespace probox
