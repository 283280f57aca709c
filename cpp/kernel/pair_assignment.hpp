// Which pairs of many images are matches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "assignment.hpp"
#include "parallel.hpp"

namespace probox {

// Pairs of a detection and an object with their quality, finite and >= 0. No pair stands twice.
struct PairList {
  const std::int64_t* detection;
  const std::int64_t* object;
  const double* quality;
};

// Decides the pairs of one image after the other; keeps its memory between them.
class PairAssigner {
 public:
  PairAssigner(const PairList& pairs, bool greedy, Pulse pulse) : pairs_(pairs), greedy_(greedy), pulse_(pulse) {}

  // Sets `matched` for the pairs begin <= pair < end of an image that are matches.
  void assign(std::int64_t begin, std::int64_t end, bool* matched) {
    if (begin == end) return;
    image_.resize(end - begin);
    std::iota(image_.begin(), image_.end(), begin);
    list_rows_and_columns(image_);
    if (rows_.size() * columns_.size() <= kLargeTable) {
      match(image_, matched);
      return;
    }
    for (const std::vector<std::int64_t>& group : competing(begin, end)) {
      list_rows_and_columns(group);
      match(group, matched);
    }
  }

 private:
  static constexpr std::size_t kLargeTable = std::size_t{1} << 22;  // cells: more are mostly empty, and far slower

  // Pairs that share an object or a detection, directly or by way of others, compete; the others do not. Returns each
  // group's pairs in their order.
  std::vector<std::vector<std::int64_t>> competing(std::int64_t begin, std::int64_t end) const {
    std::unordered_map<std::int64_t, std::int64_t> pair_of_object, pair_of_detection;
    std::vector<std::int64_t> parent(end - begin);
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](std::int64_t k) {
      while (parent[k] != k) k = parent[k] = parent[parent[k]];
      return k;
    };
    for (std::int64_t k = 0; k < end - begin; ++k) {
      const std::int64_t first = pair_of_object.emplace(pairs_.object[begin + k], k).first->second;
      const std::int64_t second = pair_of_detection.emplace(pairs_.detection[begin + k], k).first->second;
      parent[root(k)] = root(first);
      parent[root(k)] = root(second);
    }
    std::unordered_map<std::int64_t, std::size_t> group_of;
    std::vector<std::vector<std::int64_t>> groups;
    for (std::int64_t k = 0; k < end - begin; ++k) {
      const auto [at, is_new] = group_of.emplace(root(k), groups.size());
      if (is_new) groups.emplace_back();
      groups[at->second].push_back(begin + k);
    }
    return groups;
  }

  // The table that `match` fills has a row for each object and a column for each detection.
  void list_rows_and_columns(const std::vector<std::int64_t>& pairs) {
    distinct(rows_, pairs, pairs_.object);
    distinct(columns_, pairs, pairs_.detection);
  }

  static void distinct(std::vector<std::int64_t>& values, const std::vector<std::int64_t>& pairs,
                       const std::int64_t* column) {
    values.clear();
    for (const std::int64_t k : pairs) values.push_back(column[k]);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }

  static std::size_t position(const std::vector<std::int64_t>& sorted, std::int64_t value) {
    return static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
  }

  void match(const std::vector<std::int64_t>& pairs, bool* matched) {
    table_.assign(rows_.size() * columns_.size(), 0.0);
    pair_at_.assign(table_.size(), -1);
    for (std::size_t at = 0; at < pairs.size(); ++at) {
      if (at % 4096 == 0) pulse_();
      const std::int64_t k = pairs[at];
      const std::size_t cell =
          position(rows_, pairs_.object[k]) * columns_.size() + position(columns_, pairs_.detection[k]);
      table_[cell] = pairs_.quality[k];
      pair_at_[cell] = k;
    }
    const int rows = static_cast<int>(rows_.size()), columns = static_cast<int>(columns_.size());
    const std::vector<int> chosen =
        greedy_ ? assign_greedily(table_, rows, columns) : assign_optimally(table_, rows, columns, pulse_);
    for (int row = 0; row < rows; ++row) {
      if (chosen[row] < 0) continue;
      const std::size_t cell = static_cast<std::size_t>(row) * columns_.size() + chosen[row];
      if (table_[cell] > 0.0) matched[pair_at_[cell]] = true;
    }
  }

  PairList pairs_;
  bool greedy_;
  Pulse pulse_;
  std::vector<std::int64_t> image_, rows_, columns_, pair_at_;
  std::vector<double> table_;
};

}  // namespace probox
