// Uninitialised memory for large columns; on Linux in huge pages, whose first access is much cheaper.
#pragma once

#include <cstddef>
#include <cstdint>
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

constexpr std::size_t huge_page = std::size_t{1} << 21;

// Requests huge pages for those that lie within this memory.
inline void use_huge_pages(void* memory, std::size_t bytes) {
#if defined(__linux__)
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), end = begin + bytes;
  const auto first = (begin + huge_page - 1) / huge_page * huge_page;
  if (first + huge_page <= end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#else
  static_cast<void>(memory), static_cast<void>(bytes);
#endif
}

template <class T>
LargeArray<T> make_large_array(std::size_t count) {
  if (count > (std::size_t{1} << 62) / sizeof(T)) throw std::bad_alloc();
  const std::size_t bytes = count > 0 ? count * sizeof(T) : 1;
#if defined(__linux__)
  if (bytes >= 2 * huge_page) {
    void* memory = std::aligned_alloc(huge_page, (bytes + huge_page - 1) / huge_page * huge_page);
    if (memory == nullptr) throw std::bad_alloc();
    use_huge_pages(memory, bytes);
    return LargeArray<T>(static_cast<T*>(memory));
  }
#endif
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return LargeArray<T>(static_cast<T*>(memory));
}

}  // namespace probox
