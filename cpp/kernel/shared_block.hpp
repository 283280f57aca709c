// Arrays of different types in one block of memory, which lives as long as the last of them.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "large_array.hpp"

namespace probox {

template <class T>
class BlockArray {
 public:
  BlockArray() = default;
  BlockArray(std::shared_ptr<char[]> block, T* values) : block_(std::move(block)), values_(values) {}

  T& operator[](std::size_t k) const { return values_[k]; }
  T* data() const { return values_; }
  const std::shared_ptr<char[]>& block() const { return block_; }

 private:
  std::shared_ptr<char[]> block_;
  T* values_ = nullptr;
};

// An array to allocate, with so many values per row.
template <class T>
struct Width {
  BlockArray<T>& array;
  std::size_t values;
};

template <class T>
Width<T> width(BlockArray<T>& array, std::size_t values = 1) {
  return {array, values};
}

// Allocates uninitialised arrays in one block: several smaller ones share its huge pages.
template <class... Types>
void allocate_together(std::size_t rows, Width<Types>... columns) {
  constexpr std::size_t line = 64;  // of the cache
  if (rows > (std::size_t{1} << 62) / (((sizeof(Types) * columns.values) + ...) + 1)) throw std::bad_alloc();
  const auto bytes = [rows](std::size_t of_row) { return (rows * of_row + line - 1) / line * line; };
  const std::size_t total = (bytes(sizeof(Types) * columns.values) + ...);
  const std::shared_ptr<char[]> block(make_large_array<char>(total).release(), Free{});
  char* at = block.get();
  const auto place = [&](auto& array, std::size_t of_row) {
    using Pointer = decltype(array.data());
    array = {block, reinterpret_cast<Pointer>(at)};
    at += bytes(of_row);
  };
  (place(columns.array, sizeof(Types) * columns.values), ...);
}

}  // namespace probox
