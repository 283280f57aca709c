// Assignment of the pairs of many images.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "assignment.hpp"
#include "parallel.hpp"
#include "sparse_assignment.hpp"

namespace probox {

// Pairs of a detection and an object with their quality, finite and >= 0. Each pair occurs once.
struct PairList {
  const std::int64_t* detection;
  const std::int64_t* object;
  const double* quality;
};

namespace detail {

// Numbers the distinct values of a column from 0, ascending.
class Numbering {
 public:
  // Writes the number of each value to `number`; returns the count of distinct values.
  int operator()(const std::int64_t* values, std::size_t count, std::vector<int>& number) {
    number.resize(count);
    if (count == 0) return 0;
    const auto [least, greatest] = std::minmax_element(values, values + count);
    const auto range = static_cast<std::uint64_t>(*greatest) - static_cast<std::uint64_t>(*least);
    return range < 8 * count ? by_place(values, count, *least, range + 1, number) : by_search(values, count, number);
  }

 private:
  int by_place(const std::int64_t* values, std::size_t count, std::int64_t least, std::size_t range,
               std::vector<int>& number) {
    number_of_.assign(range, 0);
    for (std::size_t k = 0; k < count; ++k) number_of_[values[k] - least] = 1;
    int next = 0;
    for (int& entry : number_of_)
      if (entry) entry = next++;
    for (std::size_t k = 0; k < count; ++k) number[k] = number_of_[values[k] - least];
    return next;
  }

  int by_search(const std::int64_t* values, std::size_t count, std::vector<int>& number) {
    distinct_.assign(values, values + count);
    std::sort(distinct_.begin(), distinct_.end());
    distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
    for (std::size_t k = 0; k < count; ++k)
      number[k] = static_cast<int>(std::lower_bound(distinct_.begin(), distinct_.end(), values[k]) - distinct_.begin());
    return static_cast<int>(distinct_.size());
  }

  std::vector<int> number_of_;
  std::vector<std::int64_t> distinct_;
};

}  // namespace detail

// Assigns the pairs of one image at a time; reuses its memory.
class PairAssigner {
 public:
  PairAssigner(const PairList& pairs, bool greedy, CheckInterrupt check_interrupt)
      : pairs_(pairs), greedy_(greedy), check_interrupt_(check_interrupt) {}

  // Sets `matched` for the pairs begin <= pair < end of an image that are matches.
  void assign(std::int64_t begin, std::int64_t end, bool* matched) {
    if (begin == end) return;
    const auto count = static_cast<std::size_t>(end - begin);
    const int objects = number_(pairs_.object + begin, count, object_);
    const int detections = number_(pairs_.detection + begin, count, detection_);
    image_.resize(count);
    std::iota(image_.begin(), image_.end(), 0);
    const Group whole{image_.data(), image_.data() + count, objects, detections};
    quality_ = pairs_.quality + begin;
    matched_ = matched + begin;
    if (greedy_)
      match_greedily(whole);
    else if (whole.cells() <= kLargeTable)
      match_optimally(whole);
    else
      for_each_group(objects, detections, [&](const Group& group) { match_optimally(group); });
  }

 private:
  static constexpr std::size_t kLargeTable = std::size_t{1} << 22;  // cells
  static constexpr std::size_t kSmallTable = std::size_t{1} << 10;  // cells

  // Competing pairs of the image, ascending, and their numbers of objects and detections. `object_` and `detection_`
  // number these.
  struct Group {
    const std::int64_t *begin, *end;
    int objects, detections;

    std::size_t cells() const { return static_cast<std::size_t>(objects) * detections; }
    std::size_t pairs() const { return static_cast<std::size_t>(end - begin); }
  };

  // Pairs compete if they share an object or a detection, directly or through other pairs. Calls
  // visit(group) for each group of competing pairs.
  template <class Visit>
  void for_each_group(int objects, int detections, Visit&& visit) {
    std::vector<int> parent(static_cast<std::size_t>(objects) + detections);
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int node) {
      while (parent[node] != node) node = parent[node] = parent[parent[node]];
      return node;
    };
    const std::size_t count = image_.size();
    for (std::size_t k = 0; k < count; ++k) parent[root(objects + detection_[k])] = root(object_[k]);

    std::vector<int> group_of(parent.size(), -1);
    std::vector<std::size_t> start{0};
    for (std::size_t k = 0; k < count; ++k) {
      int& group = group_of[root(object_[k])];
      if (group < 0) {
        group = static_cast<int>(start.size()) - 1;
        start.push_back(0);
      }
      ++start[group + 1];
    }
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<std::size_t> next(start.begin(), start.end() - 1);
    for (std::size_t k = 0; k < count; ++k) image_[next[group_of[root(object_[k])]]++] = static_cast<std::int64_t>(k);

    // Numbers objects and detections within their group, in the same order.
    std::vector<std::int64_t> members;
    std::vector<int> number;
    for (std::size_t g = 0; g + 1 < start.size(); ++g) {
      check_interrupt_();
      Group group{image_.data() + start[g], image_.data() + start[g + 1], 0, 0};
      group.objects = renumber(group, object_, members, number);
      group.detections = renumber(group, detection_, members, number);
      visit(group);
    }
  }

  int renumber(const Group& group, std::vector<int>& column, std::vector<std::int64_t>& members,
               std::vector<int>& number) {
    members.clear();
    for (const std::int64_t* k = group.begin; k != group.end; ++k) members.push_back(column[*k]);
    const int count = number_(members.data(), members.size(), number);
    for (std::size_t i = 0; i < members.size(); ++i) column[group.begin[i]] = number[i];
    return count;
  }

  // Takes the best remaining pair repeatedly; ties go to the first object, then the first detection.
  void match_greedily(const Group& group) {
    std::vector<std::int64_t> order;
    for (const std::int64_t* k = group.begin; k != group.end; ++k)
      if (quality_[*k] > 0.0) order.push_back(*k);
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      if (quality_[a] != quality_[b]) return quality_[a] > quality_[b];
      return object_[a] != object_[b] ? object_[a] < object_[b] : detection_[a] < detection_[b];
    });
    std::vector<char> object_taken(group.objects, 0), detection_taken(group.detections, 0);
    for (const std::int64_t k : order) {
      if (object_taken[object_[k]] || detection_taken[detection_[k]]) continue;
      object_taken[object_[k]] = detection_taken[detection_[k]] = 1;
      matched_[k] = true;
    }
  }

  void match_optimally(const Group& group) {
    // If few cells have a pair, the other cells dominate time and memory; the sparse method finds the same matches.
    if (group.cells() > kSmallTable && group.cells() > 8 * group.pairs())
      match_pairs(group);
    else
      match_table(group);
  }

  void match_table(const Group& group) {
    table_.assign(group.cells(), 0.0);
    pair_at_.assign(group.cells(), -1);
    for (const std::int64_t* k = group.begin; k != group.end; ++k) {
      if ((k - group.begin) % 4096 == 0) check_interrupt_();
      const std::size_t cell = static_cast<std::size_t>(object_[*k]) * group.detections + detection_[*k];
      table_[cell] = quality_[*k];
      pair_at_[cell] = *k;
    }
    const std::vector<int> chosen = assign_optimally(table_, group.objects, group.detections, check_interrupt_);
    for (int row = 0; row < group.objects; ++row) {
      if (chosen[row] < 0) continue;
      const std::size_t cell = static_cast<std::size_t>(row) * group.detections + chosen[row];
      if (table_[cell] > 0.0) matched_[pair_at_[cell]] = true;
    }
  }

  // The rows of the table are objects or detections, whichever are fewer.
  void match_pairs(const Group& group) {
    const bool turned = group.objects > group.detections;
    const std::vector<int>&row_of = turned ? detection_ : object_, &column_of = turned ? object_ : detection_;
    SparseTable table;
    table.rows = std::min(group.objects, group.detections);
    table.columns = std::max(group.objects, group.detections);
    table.begin.assign(static_cast<std::size_t>(table.rows) + 1, 0);
    for (const std::int64_t* k = group.begin; k != group.end; ++k) table.begin[row_of[*k] + 1] += quality_[*k] > 0.0;
    std::partial_sum(table.begin.begin(), table.begin.end(), table.begin.begin());
    table.column.resize(table.begin.back());
    table.quality.resize(table.begin.back());
    pair_at_.resize(table.begin.back());
    std::vector<std::size_t> next(table.begin.begin(), table.begin.end() - 1);
    for (const std::int64_t* k = group.begin; k != group.end; ++k) {
      if (!(quality_[*k] > 0.0)) continue;
      const std::size_t at = next[row_of[*k]]++;
      table.column[at] = column_of[*k];
      table.quality[at] = quality_[*k];
      pair_at_[at] = *k;
    }
    const std::vector<int> chosen = assign_sparsely(table, check_interrupt_);
    for (int row = 0; row < table.rows; ++row)
      for (std::size_t at = table.begin[row]; at < table.begin[row + 1]; ++at)
        if (table.column[at] == chosen[row]) matched_[pair_at_[at]] = true;
  }

  PairList pairs_;
  bool greedy_;
  CheckInterrupt check_interrupt_;
  detail::Numbering number_;
  std::vector<std::int64_t> image_, pair_at_;
  std::vector<int> object_, detection_;  // of each pair of the image
  const double* quality_ = nullptr;      // of each pair of the image
  bool* matched_ = nullptr;
  std::vector<double> table_;
};

// Sets `matched` for the pairs of all images that are matches; those of image i are offsets[i]..offsets[i + 1]. Images
// are distributed over threads in batches, because most take a microsecond.
inline void assign_images(const PairList& pairs, const std::int64_t* offsets, std::size_t images, bool greedy,
                          int threads, Stop& stop, bool* matched) {
  constexpr std::size_t share = 16;
  const auto shares = static_cast<std::ptrdiff_t>((images + share - 1) / share);
  // Starting a thread takes as long as several thousand pairs.
  const std::int64_t worth = images ? offsets[images] / 4096 : 0;
  threads = static_cast<int>(std::clamp<std::int64_t>(std::min<std::int64_t>(shares, worth), 1, std::max(threads, 1)));
  std::vector<PairAssigner> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(pairs, greedy, CheckInterrupt{&stop, i});
  for_each_index(shares, threads, stop, [&](int worker, std::ptrdiff_t part) {
    const std::size_t first = static_cast<std::size_t>(part) * share;
    for (std::size_t i = first; i < std::min(first + share, images); ++i) {
      stop.check(worker);
      workers[worker].assign(offsets[i], offsets[i + 1], matched);
    }
  });
}

}  // namespace probox
