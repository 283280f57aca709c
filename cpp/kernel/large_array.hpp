// Uninitialised memory for large columns; on Linux in huge pages, whose first access is much cheaper.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace probox {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using LargeArray = std::unique_ptr<T[], Free>;

template <class T>
LargeArray<T> make_large_array(std::size_t count) {
  if (count > (std::size_t{1} << 62) / sizeof(T)) throw std::bad_alloc();
  const std::size_t bytes = count > 0 ? count * sizeof(T) : 1;
#if defined(__linux__)
  constexpr std::size_t page = std::size_t{1} << 21;
  if (bytes >= 2 * page) {
    void* memory = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, bytes, MADV_HUGEPAGE);
    return LargeArray<T>(static_cast<T*>(memory));
  }
#endif
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return LargeArray<T>(static_cast<T*>(memory));
}

}  // namespace probox
