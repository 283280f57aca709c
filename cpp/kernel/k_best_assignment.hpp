// The k assignments of lowest cost, in ascending order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "parallel.hpp"

namespace probox {

// Costs of assigning columns to rows. Each row gets a column of its own, or none; columns may be unused. Entries are
// finite, or infinite if a row must not have the column, or must have one.
struct AssignmentCosts {
  int rows = 0, columns = 0;
  const double* pair = nullptr;   // rows x columns, row by row
  const double* alone = nullptr;  // of each row without a column

  // Columns from `columns` on belong to rows: column columns + r means "none" for row r.
  int width() const { return columns + rows; }
  double at(int row, int column) const {
    return column < columns ? pair[static_cast<std::size_t>(row) * columns + column] : alone[row];
  }
};

// Ranks assignments (Murty, 1968); each differs from an earlier one by one shortest path (Miller, Stone and Cox, 1997).
// Reuses its memory between problems.
//
// A row without a column has its own "none" column, which no other row may use. So every assignment gives each row
// exactly one column and occurs once, independent of the unused columns. Duals are those of the square problem in which
// identical rows of cost 0 hold the unused columns: reduced costs cost - u[row] - v[column] are not negative, and 0 for
// assigned pairs; v <= 0, and 0 for unused columns.
class AssignmentRanker {
 public:
  explicit AssignmentRanker(CheckInterrupt check_interrupt = {}) : check_interrupt_(check_interrupt) {}

  // Finds up to k assignments; fewer if there are no more. The order of equal costs depends on the costs alone.
  void rank(const AssignmentCosts& costs, int k) {
    costs_ = costs;
    solved_.clear();
    found_.clear();
    totals_.clear();
    queue_ = {};
    made_ = 0;
    if (k < 1 || !solve_first()) return;
    queue_.push({solved_[0].total, made_++, 0, 0, true, {}});
    while (!queue_.empty() && static_cast<int>(found_.size()) < k) {
      Branch next = queue_.top();
      queue_.pop();
      if (!next.solved) {
        // Until now only a lower bound of its cost was known.
        const int solution = solve_branch(next);
        if (solution < 0) continue;
        next.solution = solution;
        next.solved = true;
        next.total = solved_[solution].total;
        queue_.push(std::move(next));
        continue;
      }
      found_.push_back(next.solution);
      if (static_cast<int>(found_.size()) < k) partition(next);
    }
    sort_by_total();
  }

  int count() const { return static_cast<int>(found_.size()); }
  // The column of a row, or -1.
  int column(int which, int row) const {
    const int c = solved_[found_[which]].column[row];
    return c < costs_.columns ? c : -1;
  }
  double total(int which) const { return totals_[which]; }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr int kLeftOver = -1;  // the "row" of unused columns

  struct Solution {
    double total;
    std::vector<int> column;  // of each row, "none" columns included
    std::vector<double> u, v;  // duals of rows and columns
  };

  // Assignments with the columns of `solution` in rows 0..row - 1, and none of `forbidden` in `row`. Once solved,
  // `solution` is the best of them.
  struct Branch {
    double total;  // cost of the best of them, or a lower bound
    long order;
    int solution, row;
    bool solved;
    std::vector<int> forbidden;

    bool operator<(const Branch& other) const {  // the top of the queue is the largest
      return total > other.total || (total == other.total && order > other.order);
    }
  };

  bool solve_first() {
    Solution first{0.0, std::vector<int>(costs_.rows, -1), std::vector<double>(costs_.rows, 0.0),
                   std::vector<double>(costs_.width(), 0.0)};
    row_of_.assign(costs_.width(), kLeftOver);
    excluded_.assign(costs_.width(), 0);
    for (int row = 0; row < costs_.rows; ++row) {
      check_interrupt_();
      first.u[row] = cheapest(first.v, row);
      if (first.u[row] == kInfinity) return false;
      const int sink = search(first, row, -1, nullptr);
      if (sink < 0) return false;
      update(first, row, sink);
    }
    for (int row = 0; row < costs_.rows; ++row) first.total += costs_.at(row, first.column[row]);
    solved_.push_back(std::move(first));
    return true;
  }

  // The minimum cost of a row, given the columns' duals: as its dual it makes all reduced costs nonnegative.
  double cheapest(const std::vector<double>& v, int row) const {
    double least = costs_.alone[row] - v[costs_.columns + row];
    for (int c = 0; c < costs_.columns; ++c) least = std::min(least, costs_.at(row, c) - v[c]);
    return least;
  }

  // Splits a branch without its best assignment, by the first row with another column.
  void partition(const Branch& branch) {
    const Solution& best = solved_[branch.solution];
    excluded_.assign(costs_.width(), 0);
    for (int row = 0; row < branch.row; ++row) excluded_[best.column[row]] = 1;
    for (int row = branch.row; row < costs_.rows; ++row) {
      Branch child{best.total, 0, branch.solution, row, false, {}};
      if (row == branch.row) child.forbidden = branch.forbidden;
      child.forbidden.push_back(best.column[row]);
      excluded_[best.column[row]] = 1;
      // The cheapest other column is a lower bound of the change in cost.
      double least = kInfinity;
      const auto relax = [&](int c) {
        if (excluded_[c] || is_in(child.forbidden, c)) return;
        least = std::min(least, costs_.at(row, c) - best.u[row] - best.v[c]);
      };
      for (int c = 0; c < costs_.columns; ++c) relax(c);
      relax(costs_.columns + row);
      if (least == kInfinity) continue;
      child.total += std::max(least, 0.0);
      child.order = made_++;
      queue_.push(std::move(child));
    }
  }

  // The best of a branch; -1 if it is empty.
  int solve_branch(const Branch& branch) {
    check_interrupt_();
    Solution next = solved_[branch.solution];
    row_of_.assign(costs_.width(), kLeftOver);
    excluded_.assign(costs_.width(), 0);
    for (int row = 0; row < costs_.rows; ++row) {
      row_of_[next.column[row]] = row;
      if (row < branch.row) excluded_[next.column[row]] = 1;
    }
    const int freed = next.column[branch.row];
    row_of_[freed] = kLeftOver;
    if (search(next, branch.row, freed, &branch.forbidden) < 0) return -1;
    next.total += shortest_[freed];
    update(next, branch.row, freed);
    solved_.push_back(std::move(next));
    return static_cast<int>(solved_.size()) - 1;
  }

  // Shortest distances from row `start` (Dijkstra) until `sink` is reached, or any unused column if `sink` is -1.
  // Returns the column reached, or -1.
  //
  // On the way to a given `sink` an unused column may be taken. Another column then becomes unused, which costs -v of
  // that column: the sink, or the column of a row that changes.
  int search(const Solution& from, int start, int sink, const std::vector<int>* forbidden) {
    const int width = costs_.width();
    shortest_.assign(width, kInfinity);
    path_.assign(width, kLeftOver);
    settled_.assign(width, 0);
    left_over_at_ = kInfinity;
    entered_ = -1;
    const auto reach = [&](int row, int c, double distance) {
      if (settled_[c] || excluded_[c] || !(distance < shortest_[c])) return;
      shortest_[c] = distance;
      path_[c] = row;
    };
    const auto scan = [&](int row, double at) {
      const double base = at - from.u[row];
      const double* pair = costs_.pair + static_cast<std::size_t>(row) * costs_.columns;
      const auto step = [&](int c, double cost) {
        if (row == start && forbidden != nullptr && is_in(*forbidden, c)) return;
        // Rounding must not make a step negative.
        if (cost < kInfinity) reach(row, c, std::max(at, base + cost - from.v[c]));
      };
      for (int c = 0; c < costs_.columns; ++c) step(c, pair[c]);
      step(costs_.columns + row, costs_.alone[row]);
    };
    scan(start, 0.0);
    while (true) {
      int nearest = -1;
      double lowest = kInfinity;
      for (int c = 0; c < width; ++c) {
        if (settled_[c] || !(shortest_[c] < kInfinity)) continue;
        if (shortest_[c] < lowest || (shortest_[c] == lowest && c == sink)) {
          lowest = shortest_[c];
          nearest = c;
        }
      }
      if (nearest < 0) return -1;
      settled_[nearest] = 1;
      if (nearest == sink || (sink < 0 && row_of_[nearest] == kLeftOver)) return nearest;
      if (row_of_[nearest] != kLeftOver) {
        scan(row_of_[nearest], lowest);
      } else if (entered_ < 0) {
        entered_ = nearest;
        left_over_at_ = lowest;
        for (int c = 0; c < width; ++c)
          if (row_of_[c] != kLeftOver || c == sink) reach(kLeftOver, c, std::max(lowest, lowest - from.v[c]));
      }
    }
  }

  // Changes columns along the path to `sink`, and updates the duals.
  void update(Solution& solution, int start, int sink) {
    const double distance = shortest_[sink];
    // Unused columns have dual 0: all others are shifted relative to it.
    const double level = entered_ >= 0 ? left_over_at_ : distance;
    for (int row = 0; row < costs_.rows; ++row) {
      const int c = solution.column[row];
      if (row == start)
        solution.u[row] += level;
      else if (c >= 0)
        solution.u[row] += level - (settled_[c] ? shortest_[c] : distance);
    }
    for (int c = 0; c < costs_.width(); ++c) {
      if (row_of_[c] == kLeftOver && c != sink) continue;  // unused columns keep dual 0
      solution.v[c] += (settled_[c] ? shortest_[c] : distance) - level;
    }
    for (int c = sink;;) {
      const int row = path_[c];
      if (row == kLeftOver) {
        row_of_[c] = kLeftOver;
        c = entered_;
        continue;
      }
      const int before = solution.column[row];
      solution.column[row] = c;
      row_of_[c] = row;
      if (row == start) break;
      c = before;
    }
  }

  // Sums totals again in row order, so that they do not depend on the path; then sorts by total.
  void sort_by_total() {
    std::vector<double> sums(found_.size(), 0.0);
    for (std::size_t i = 0; i < found_.size(); ++i)
      for (int row = 0; row < costs_.rows; ++row) sums[i] += costs_.at(row, solved_[found_[i]].column[row]);
    std::vector<int> order(found_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return sums[a] < sums[b]; });
    std::vector<int> sorted;
    for (const int i : order) {
      sorted.push_back(found_[i]);
      totals_.push_back(sums[i]);
    }
    found_ = std::move(sorted);
  }

  static bool is_in(const std::vector<int>& list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  CheckInterrupt check_interrupt_;
  AssignmentCosts costs_;
  std::vector<Solution> solved_;
  std::vector<int> found_;  // the k best of `solved_`
  std::vector<double> totals_;
  std::priority_queue<Branch> queue_;
  long made_ = 0;

  // State of the current search.
  std::vector<double> shortest_;
  std::vector<int> path_, row_of_;
  std::vector<char> settled_, excluded_;
  double left_over_at_ = 0.0;  // distance of the unused columns
  int entered_ = -1;  // the unused column that was reached first
};

}  // namespace probox
