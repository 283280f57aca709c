// The label probabilities of a table, as columns from Python.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arrays.hpp"
#include "kernel/label_probabilities.hpp"

namespace probox {

// A matrix (no offsets), or listed classes, see LabelRows. Columns are checked before each use, because Python may have
// changed them.
struct LabelTable {
  std::size_t rows;
  Column<std::int64_t> offsets;
  Column<std::int32_t> indices;
  Column<float> values, rest;
  Column<bool> sharing;

  LabelTable(std::size_t rows, Column<std::int64_t> offsets, Column<std::int32_t> indices, Column<float> values,
             Column<float> rest, Column<bool> sharing)
      : rows(rows), offsets(offsets), indices(indices), values(values), rest(rest), sharing(sharing) {
    require(columns() < (std::size_t{1} << 31), "expected fewer classes");
    if (is_matrix()) require(values.shape(0) == volume(rows, columns()), "one probability per row and class");
    else require(rest.shape(0) == rows && values.shape(0) == indices.shape(0), "label columns differ in length");
  }

  std::size_t columns() const { return sharing.shape(0); }
  bool is_matrix() const { return offsets.shape(0) == 0; }

  void check() const {
    if (is_matrix()) return;
    require_offsets(offsets, rows, values.shape(0), "offsets of listed classes");
    require_rows(indices, columns(), "expected listed classes that count in columns");
    for (std::size_t row = 0; row < rows; ++row)
      for (std::int64_t k = offsets(row) + 1; k < offsets(row + 1); ++k)
        require(indices(k - 1) < indices(k), "expected listed classes in ascending order");
  }

  LabelRows<float> view() const {
    if (is_matrix()) return {columns(), values.data()};
    return {columns(), values.data(), offsets.data(), indices.data(), rest.data(), sharing.data()};
  }
};

}  // namespace probox
