// What is wrong in a file: the first problem when reading strictly, all of them by kind with a few examples otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json.hpp"

namespace probox {

struct Problem {
  std::optional<std::int64_t> image;
  std::string entry;
  std::string text;
  std::string remedy;
};

struct ProblemGroup {
  std::string kind;
  bool fatal = false;
  std::int64_t count = 0;
  std::vector<Problem> examples;
};

class Problems {
 public:
  explicit Problems(bool lenient) : lenient_(lenient) {}

  void add(const json::Failure& failure, std::optional<std::int64_t> image = {}) {
    ProblemGroup* group = find(failure.kind);
    group->fatal = group->fatal || failure.fatal;
    ++group->count;
    if (group->examples.size() < max_examples) {
      group->examples.push_back({image, failure.entry, failure.text, failure.remedy});
    }
  }

  // Read a row; in lenient mode a row that is not as expected is recorded and passed over, and false is returned.
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

  // Run a whole reader; whatever ends it early is recorded.
  template <class Read>
  void guard(Read&& read) {
    try {
      read();
    } catch (json::Failure& failure) {
      failure.fatal = true;  // not JSON, or not the kind of file: what comes after was not read
      add(failure);
    } catch (const Stop&) {
    }
  }

  bool empty() const { return groups_.empty(); }
  const std::vector<ProblemGroup>& groups() const { return groups_; }

 private:
  struct Stop {};
  static constexpr std::size_t max_examples = 3;

  ProblemGroup* find(const std::string& kind) {
    for (ProblemGroup& group : groups_) {
      if (group.kind == kind) return &group;
    }
    groups_.push_back({kind, false, 0, {}});
    return &groups_.back();
  }

  bool lenient_;
  std::vector<ProblemGroup> groups_;
};

// Which known keys of an object were seen: a second one of the same name would silently win or lose.
class SeenKeys {
 public:
  void mark(const json::Reader& in, int key) {
    if ((seen_ >> key) & 1u) in.fail("duplicate key", "the same key stands here twice", "keep one of them");
    seen_ |= 1u << key;
  }
  bool has(int key) const { return ((seen_ >> key) & 1u) != 0; }
  void require(const json::Reader& in, int key, const char* name) const {
    if (!has(key)) in.fail("missing key", std::string("expected a key \"") + name + "\"", "add it to the entry");
  }

 private:
  std::uint32_t seen_ = 0;
};

}  // namespace probox
