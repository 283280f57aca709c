// Names of heatmap files, which the detections of a file give by number.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace probox {

constexpr std::int64_t no_mask_id = std::numeric_limits<std::int64_t>::min();

class HeatmapFiles {
 public:
  // The number of a name; new names get the next one.
  std::int32_t number(std::string_view name) {
    const auto next = static_cast<std::int32_t>(names_.size());
    const auto [entry, added] = numbers_.try_emplace(std::string(name), next);
    if (added) names_.emplace_back(name);
    return entry->second;
  }

  // The numbers here of another table's names.
  std::vector<std::int32_t> numbers_of(const HeatmapFiles& other) {
    std::vector<std::int32_t> numbers;
    numbers.reserve(other.names_.size());
    for (const std::string& name : other.names_) numbers.push_back(number(name));
    return numbers;
  }

  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

}  // namespace probox
