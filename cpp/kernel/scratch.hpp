// Reusable memory.
#pragma once

#include <cstddef>
#include <vector>

namespace probox {

// Makes room for n values; never shrinks, so that reused memory is not cleared repeatedly.
template <class T>
void make_room(std::vector<T>& values, std::size_t n) {
  if (values.size() < n) values.resize(n);
}

// Reusable memory for the computation of corner maps.
template <class T>
struct CornerScratch {
  std::vector<double> across, marginal, value, table;
  std::vector<T> left, upright;
};

}  // namespace probox
