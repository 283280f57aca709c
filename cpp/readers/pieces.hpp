// One long list of a file, read by several threads.
//
// Nobody looks for the ends of values beforehand: places to cut the text at are guessed, and each piece is read from its
// cut as if the guess were right. It was if the reader of the piece before arrives exactly there, between two values of
// the list; the first piece starts where the list does, so what is adopted is what one reader would have read. From the
// first piece on that is not as it should be, whatever the reason, the reader of the whole file goes on alone: so it is
// always the same code that finds what is wrong, in the same order, and knows its place.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "json_reader.hpp"
#include "kernel/parallel.hpp"

namespace probox {

// How many threads may read a file, and how many bytes of it are worth a piece.
struct Sharing {
  int threads = 1;
  std::size_t least_piece = 1;
};

// What a piece held, and where in the list it stood.
template <class Part>
struct Adopted {
  Part part;
  std::int64_t first;  // to add to the numbers of its values
};

// Passes over white space; the text ends in a zero byte.
inline const char* behind_space(const char* at) {
  while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') ++at;
  return at;
}

// Where a list of objects might be cut: behind an object that another one follows, with the same key first as all have.
class BetweenObjects {
 public:
  // `list` is behind the bracket that opens the list.
  explicit BetweenObjects(const char* list) : key_(first_key(behind_space(list))) {}

  // The first such place in from..stop, or null.
  const char* operator()(const char* from, const char* stop) const {
    if (key_.empty()) return nullptr;
    while (const char* brace = find_brace(from, stop)) {
      from = brace + 1;
      const char* at = behind_space(from);
      if (*at == ',' && first_key(behind_space(at + 1)) == key_) return from;
    }
    return nullptr;
  }

  static const char* find_brace(const char* from, const char* stop) {
    if (from >= stop) return nullptr;
    return static_cast<const char*>(std::memchr(from, '}', static_cast<std::size_t>(stop - from)));
  }

 private:
  // The first key of the object that starts here, quotes included; nothing if there is none.
  static std::string_view first_key(const char* at) {
    if (*at != '{') return {};
    const char* start = behind_space(at + 1);
    if (*start != '"') return {};
    const char* end = start + 1;
    while (*end != '"' && *end != '\0' && end - start < 64) ++end;
    return {start, static_cast<std::size_t>(end - start)};
  }

  std::string_view key_;
};

// Where a list of lists of objects might be cut: behind a list that ends with an object and that another list follows.
struct BetweenLists {
  const char* operator()(const char* from, const char* stop) const {
    while (const char* brace = BetweenObjects::find_brace(from, stop)) {
      from = brace + 1;
      const char* bracket = behind_space(from);
      if (*bracket != ']') continue;
      const char* comma = behind_space(bracket + 1);
      if (*comma == ',' && *behind_space(comma + 1) == '[') return bracket + 1;
    }
    return nullptr;
  }
};

// Places to cut the rest of the text at, ascending: several pieces per thread, for threads are not equally fast.
template <class FindCut>
std::vector<const char*> places_to_cut(const json::Reader& in, const Sharing& sharing, const FindCut& find) {
  constexpr std::size_t pieces_per_thread = 4;
  const auto size = static_cast<std::size_t>(in.end() - in.at());
  const std::size_t most = pieces_per_thread * static_cast<std::size_t>(std::max(sharing.threads, 1));
  const std::size_t pieces = std::min(most, size / std::max<std::size_t>(sharing.least_piece, 1));
  std::vector<const char*> cuts;
  if (sharing.threads < 2 || pieces < 2) return cuts;
  for (std::size_t k = 1; k < pieces; ++k) {
    const char* from = in.at() + size / pieces * k;
    const char* stop = k + 1 < pieces ? from + size / pieces : in.end();
    if (const char* cut = find(from, stop)) {
      if (cuts.empty() || cut > cuts.back()) cuts.push_back(cut);
    }
  }
  return cuts;
}

// Reads what it can of the list that `in` has just entered in pieces, and leaves `in` behind the last value of these.
//
// `read(in, stop, wanted)` reads values until `in` is at `stop` or beyond, at the end of the list, or no longer wanted,
// and returns them, or nothing if anything was wrong with one. It is called by several threads at a time.
template <class Part, class FindCut, class Read>
std::vector<Adopted<Part>> read_pieces(json::Reader& in, const Sharing& sharing, const FindCut& find,
                                       const Read& read) {
  struct Piece {
    const char* start;
    const char* stop;
    const char* end;
    std::int64_t last;  // number of its last value, counted from 0 in the first piece and from 1 in others
    std::optional<Part> part;
  };
  const std::vector<const char*> cuts = places_to_cut(in, sharing, find);
  std::vector<Adopted<Part>> adopted;
  if (cuts.empty()) return adopted;
  std::vector<Piece> pieces;
  pieces.push_back({in.at(), cuts.front(), nullptr, -1, {}});
  for (std::size_t k = 0; k < cuts.size(); ++k) {
    pieces.push_back({cuts[k], k + 1 < cuts.size() ? cuts[k + 1] : in.end(), nullptr, -1, {}});
  }
  std::atomic<std::size_t> broken{pieces.size()};  // the first piece whose followers nobody needs
  for_each_index(static_cast<std::ptrdiff_t>(pieces.size()), sharing.threads, [&](int, std::ptrdiff_t index) {
    const auto k = static_cast<std::size_t>(index);
    const auto wanted = [&] { return broken.load(std::memory_order_relaxed) >= k; };
    if (!wanted()) return;
    Piece& piece = pieces[k];
    json::Reader own = in;
    if (k > 0) own.move_to(piece.start, 0);
    piece.part = read(own, piece.stop, wanted);
    piece.end = own.at();
    piece.last = own.index();
    if (piece.part && (piece.end == piece.stop || k + 1 == pieces.size())) return;
    std::size_t known = broken.load();
    while (k < known && !broken.compare_exchange_weak(known, k)) {
    }
  });
  std::int64_t first = 0;
  const char* at = in.at();
  for (Piece& piece : pieces) {
    if (piece.start != at || !piece.part) break;
    adopted.push_back({std::move(*piece.part), first});
    at = piece.end;
    first += piece.last;
    in.move_to(at, first);
  }
  return adopted;
}

// Reads the values of the innermost list up to `stop`, or to the end of the list, or as long as they are wanted.
template <class Wanted, class ReadValue>
void read_values(json::Reader& in, const char* stop, const Wanted& wanted, ReadValue&& read_value) {
  while (in.at() < stop && in.peek() != ']' && wanted()) {
    in.next_item();
    read_value();
  }
}

}  // namespace probox
