// Problems of a file: the first one in strict mode, all with a few examples each in lenient mode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json_reader.hpp"
#include "troubles.hpp"

namespace probox {

struct Example {
  std::int64_t order;  // number of problems found before it
  std::optional<std::int64_t> image;
  std::string entry;
  std::vector<std::string> values;
};

struct TroubleGroup {
  Trouble trouble;
  bool fatal = false;
  std::int64_t count = 0;
  std::vector<Example> examples;
};

class Problems {
 public:
  Problems(bool lenient, std::size_t max_examples) : lenient_(lenient), max_examples_(max_examples) {}

  void add(const json::Failure& failure, std::optional<std::int64_t> image = {}) {
    TroubleGroup& group = find(failure.trouble);
    group.fatal = group.fatal || failure.fatal;
    ++group.count;
    if (group.examples.size() < max_examples_) {
      group.examples.push_back({found_, image, failure.entry, failure.values});
    }
    ++found_;
  }

  // Reads a row; in lenient mode an unexpected row is recorded and skipped, and false is returned.
  template <class ReadRow>
  bool row(json::Reader& in, ReadRow&& read_row) {
    const json::Reader::Mark start = in.mark();
    std::optional<std::int64_t> image;
    try {
      read_row(image);
      return true;
    } catch (const json::Failure& failure) {
      add(failure, image);
      if (failure.fatal || !lenient_) throw Stop{};
    }
    in.rewind(start);
    in.skip();
    return false;
  }

  // Runs a whole reader; a failure that ends it early is recorded.
  template <class Read>
  void guard(Read&& read) {
    try {
      read();
    } catch (json::Failure& failure) {
      failure.fatal = true;  // invalid JSON or another kind of file: the rest was not read
      add(failure);
    } catch (const Stop&) {
      // already recorded
    }
  }

  const std::vector<TroubleGroup>& groups() const { return groups_; }

 private:
  struct Stop {};

  TroubleGroup& find(Trouble trouble) {
    for (TroubleGroup& group : groups_) {
      if (group.trouble == trouble) return group;
    }
    groups_.push_back({trouble, false, 0, {}});
    return groups_.back();
  }

  bool lenient_;
  std::size_t max_examples_;
  std::int64_t found_ = 0;
  std::vector<TroubleGroup> groups_;
};

// Known keys of an object that were read: duplicates would silently be ignored or overwrite.
class SeenKeys {
 public:
  void mark(const json::Reader& in, int key) {
    if ((seen_ >> key) & 1u) in.fail(Trouble::duplicate_key);
    seen_ |= 1u << key;
  }
  bool has(int key) const { return ((seen_ >> key) & 1u) != 0; }
  void require(const json::Reader& in, int key, const char* name) const {
    if (!has(key)) in.fail(Trouble::missing_key, std::string(name));
  }

 private:
  std::uint32_t seen_ = 0;
};

}  // namespace probox
