// Optimal assignment of a large table with few qualities above 0.
//
// The same search as `assign_optimally`, which visits every cell of the table, with the same tie-breaking. Cells of
// quality 0 need not be visited one by one: all give the same distance to a free column, and never a shorter one to an
// assigned column.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "parallel.hpp"

namespace probox {

// The pairs of row r are begin[r]..begin[r + 1]. Qualities are finite and > 0; a row has each column at most once.
struct SparseTable {
  int rows, columns;
  std::vector<std::size_t> begin;
  std::vector<int> column;
  std::vector<double> quality;
};

namespace detail {

// Columns that a search has not settled, in the order of `assign_optimally`: from the last column to the first; the gap
// of a settled column is filled with the last of the list. A reset costs as much as the settled columns.
class ColumnsLeft {
 public:
  explicit ColumnsLeft(int columns) : left_(columns), column_(columns), place_(columns), free_from_(columns + 1) {
    for (int c = 0; c < columns; ++c) column_[c] = place_[c] = columns - 1 - c;
    std::iota(free_from_.begin(), free_from_.end(), 0);
  }

  void restart() {
    for (const int place : holes_) put(count() - 1 - place, place);
    for (int place = left_; place < count(); ++place) put(count() - 1 - place, place);
    holes_.clear();
    left_ = count();
  }

  int place(int column) const { return place_[column]; }

  void settle(int column) {
    const int hole = place_[column];
    put(column_[--left_], hole);
    holes_.push_back(hole);
  }

  bool is_free(int column) const { return free_from_[column] == column; }
  void take(int column) { free_from_[column] = column + 1; }

  // The free column that is last in the list. At least one must exist.
  int last_free() {
    int best = first_free_from(count() - left_);  // columns that were never moved
    int at = best < count() ? count() - 1 - best : -1;
    for (const int hole : holes_)
      if (hole < left_ && hole > at && is_free(column_[hole])) {
        at = hole;
        best = column_[hole];
      }
    return best;
  }

 private:
  int count() const { return static_cast<int>(column_.size()); }

  void put(int column, int place) {
    column_[place] = column;
    place_[column] = place;
  }

  int first_free_from(int column) {
    int last = column;
    while (free_from_[last] != last) last = free_from_[last];
    while (free_from_[column] != last) column = std::exchange(free_from_[column], last);
    return last;
  }

  int left_;
  std::vector<int> column_, place_;  // by position, by column
  std::vector<int> holes_;  // positions whose column has changed
  std::vector<int> free_from_;  // path to the next free column; itself if it is free
};

class SparseAssigner {
 public:
  SparseAssigner(const SparseTable& table, const CheckInterrupt& check_interrupt)
      : table_(table), check_interrupt_(check_interrupt), left_(table.columns), u_(table.rows, 0.0),
        v_(table.columns, 0.0), column_of_row_(table.rows, -1), row_of_column_(table.columns, -1),
        reached_(table.columns) {}

  std::vector<int> run() {
    for (int row = 0; row < table_.rows; ++row) augment(row, search(row));
    return std::move(column_of_row_);
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  struct Reached {
    double distance = kInfinity;
    int row = -1;  // predecessor
    int step = 0;  // step of the search
    int search = -1;  // the search in which these values were set
    bool settled = false;
  };
  using Near = std::pair<double, int>;  // distance, column

  // Finds the column that ends the shortest path from `start`; sets `distance_`.
  int search(int start) {
    left_.restart();
    settled_.clear();
    near_.clear();
    by_nothing_ = {kInfinity, -1};
    distance_ = 0.0;
    for (int row = start, step = 0;; ++step) {
      check_interrupt_();
      scan(row, start, step);
      const double nearest = nearest_distance();
      if (by_nothing_.first <= nearest) {
        distance_ = by_nothing_.first;
        const int sink = left_.last_free();
        Reached& at = reached_[sink];
        // Of two paths of equal length the first one wins.
        if (at.search != start || at.distance != distance_ || at.step > step_of_nothing_) at.row = by_nothing_.second;
        return sink;
      }
      distance_ = nearest;
      const int column = take_nearest();
      if (left_.is_free(column)) return column;
      reached_[column].settled = true;
      settled_.push_back(column);
      left_.settle(column);
      row = row_of_column_[column];
    }
  }

  // Continues from `row` at distance `distance_`. Sums have the order of assign_optimally, so they are bit-identical.
  void scan(int row, int search, int step) {
    for (std::size_t k = table_.begin[row]; k < table_.begin[row + 1]; ++k)
      reach(table_.column[k], distance_ - table_.quality[k] - u_[row] - v_[table_.column[k]], row, search, step);
    for (const int column : raised_) reach(column, distance_ - u_[row] - v_[column], row, search, step);
    if (distance_ - u_[row] < by_nothing_.first) {
      by_nothing_ = {distance_ - u_[row], row};
      step_of_nothing_ = step;
    }
  }

  void reach(int column, double distance, int row, int search, int step) {
    Reached& at = reached_[column];
    if (at.search != search) at = {kInfinity, -1, 0, search, false};
    if (at.settled || !(distance < at.distance)) return;
    at.distance = distance;
    at.row = row;
    at.step = step;
    near_.emplace_back(distance, column);
    std::push_heap(near_.begin(), near_.end(), std::greater<Near>());
  }

  bool outdated(const Near& near) const {
    const Reached& at = reached_[near.second];
    return at.settled || at.distance != near.first;
  }

  Near pop() {
    std::pop_heap(near_.begin(), near_.end(), std::greater<Near>());
    const Near last = near_.back();
    near_.pop_back();
    return last;
  }

  double nearest_distance() {
    while (!near_.empty() && outdated(near_.front())) pop();
    return near_.empty() ? kInfinity : near_.front().first;
  }

  // The last free column of the list among the nearest, which ends the search; without one, the first of the list.
  int take_nearest() {
    tied_.clear();
    const double nearest = near_.front().first;
    int best = -1;
    while (!near_.empty() && near_.front().first == nearest) {
      const Near near = pop();
      if (outdated(near)) continue;
      tied_.push_back(near);
      if (best < 0 || goes_before(near.second, best)) best = near.second;
    }
    for (const Near& near : tied_)
      if (near.second != best) {
        near_.push_back(near);
        std::push_heap(near_.begin(), near_.end(), std::greater<Near>());
      }
    return best;
  }

  bool goes_before(int column, int other) const {
    const bool free = left_.is_free(column);
    if (free != left_.is_free(other)) return free;
    return free == (left_.place(column) > left_.place(other));
  }

  // Changes columns along the path from `start` to `sink`, and updates the duals.
  void augment(int start, int sink) {
    u_[start] += distance_;
    for (const int column : settled_) {
      const double shorter = distance_ - reached_[column].distance;
      u_[row_of_column_[column]] += shorter;
      const bool was_raised = v_[column] > 0.0;
      v_[column] -= shorter;
      if (v_[column] > 0.0 && !was_raised) raised_.push_back(column);
      if (!(v_[column] > 0.0) && was_raised) raised_.erase(std::find(raised_.begin(), raised_.end(), column));
    }
    left_.take(sink);
    for (int column = sink;;) {
      const int row = reached_[column].row;
      row_of_column_[column] = row;
      std::swap(column_of_row_[row], column);
      if (row == start) break;
    }
  }

  const SparseTable& table_;
  const CheckInterrupt& check_interrupt_;
  ColumnsLeft left_;
  std::vector<double> u_, v_;
  std::vector<int> column_of_row_, row_of_column_;
  // Columns with a dual above 0, which only rounding causes. To these a cell of quality 0 is shorter than to a free
  // column.
  std::vector<int> raised_;

  // State of the current search.
  std::vector<Reached> reached_;
  std::vector<int> settled_;
  std::vector<Near> near_, tied_;      // near_ is a heap
  std::pair<double, int> by_nothing_;  // distance of free columns through a cell of quality 0, and its row
  int step_of_nothing_ = 0;
  double distance_ = 0.0;
};

}  // namespace detail

// The column of each row that `assign_optimally` would find, without cells of quality 0; needs at least as many columns
// as rows. A row may be assigned a column without a pair.
inline std::vector<int> assign_sparsely(const SparseTable& table, const CheckInterrupt& check_interrupt) {
  return detail::SparseAssigner(table, check_interrupt).run();
}

}  // namespace probox
