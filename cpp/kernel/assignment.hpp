// Optimal assignment of a dense table of qualities.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "parallel.hpp"

namespace probox {

// The assignment of rows to columns with the largest total quality, by shortest augmenting paths
// (Jonker and Volgenant, 1987; rectangular form of Crouse, 2016). Returns the column of each row, or -1.
// `quality` is rows x columns, row by row, all entries finite and >= 0.
inline std::vector<int> assign_optimally(const std::vector<double>& quality, int rows, int columns,
                                         const CheckInterrupt& check_interrupt) {
  std::vector<int> column_of_row(rows, -1);
  if (rows == 0 || columns == 0) return column_of_row;
  if (rows > columns) {
    std::vector<double> transposed(quality.size());
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        transposed[static_cast<std::size_t>(c) * rows + r] = quality[static_cast<std::size_t>(r) * columns + c];
    const std::vector<int> row_of_column = assign_optimally(transposed, columns, rows, check_interrupt);
    for (int c = 0; c < columns; ++c)
      if (row_of_column[c] >= 0) column_of_row[row_of_column[c]] = c;
    return column_of_row;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> u(rows, 0.0), v(columns, 0.0), shortest(columns);
  std::vector<int> row_of_column(columns, -1), path(columns), remaining(columns);
  std::vector<char> row_seen(rows), column_seen(columns);
  for (int start = 0; start < rows; ++start) {
    check_interrupt();
    std::fill(shortest.begin(), shortest.end(), infinity);
    std::fill(row_seen.begin(), row_seen.end(), 0);
    std::fill(column_seen.begin(), column_seen.end(), 0);
    int left = columns;
    for (int i = 0; i < columns; ++i) remaining[i] = columns - 1 - i;
    double distance = 0.0;
    int row = start, sink = -1;
    while (sink < 0) {
      row_seen[row] = 1;
      int best = -1;
      double lowest = infinity;
      for (int i = 0; i < left; ++i) {
        const int c = remaining[i];
        const double cost = -quality[static_cast<std::size_t>(row) * columns + c];
        const double reduced = distance + cost - u[row] - v[c];
        if (reduced < shortest[c]) {
          shortest[c] = reduced;
          path[c] = row;
        }
        // A free column ends the search, so it wins ties.
        if (shortest[c] < lowest || (shortest[c] == lowest && row_of_column[c] < 0)) {
          lowest = shortest[c];
          best = i;
        }
      }
      distance = lowest;
      const int c = remaining[best];
      if (row_of_column[c] < 0)
        sink = c;
      else
        row = row_of_column[c];
      column_seen[c] = 1;
      remaining[best] = remaining[--left];
    }
    u[start] += distance;
    for (int r = 0; r < rows; ++r)
      if (row_seen[r] && r != start) u[r] += distance - shortest[column_of_row[r]];
    for (int c = 0; c < columns; ++c)
      if (column_seen[c]) v[c] -= distance - shortest[c];
    for (int c = sink;;) {
      const int r = path[c];
      row_of_column[c] = r;
      std::swap(column_of_row[r], c);
      if (r == start) break;
    }
  }
  return column_of_row;
}

}  // namespace probox
