// Parallel reading of one long list in a file.
//
// The ends of values are unknown in advance: cut positions are guessed, and each piece is read from its cut. A cut is
// correct if the reader of the previous piece stops exactly there, between two values of the list. The first piece
// starts at the list, so the accepted pieces equal what a single reader would have read. After the first piece with any
// failure, the sequential reader continues alone: all errors come from the same code, in the same order, with their
// positions.
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

// Number of threads for a file, and minimum size of a piece in bytes.
struct Sharing {
  int threads = 1;
  std::size_t least_piece = 1;
};

// Values of a piece, and its position in the list.
template <class Part>
struct Adopted {
  Part part;
  std::int64_t first;  // added to the indices of its values
};

// Skips white space; the text ends with a zero byte.
inline const char* skip_space(const char* at) {
  while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') ++at;
  return at;
}

// The number of times a character occurs in a text.
inline std::size_t count_of(char wanted, const char* from, const char* stop) {
  constexpr std::uint64_t ones = 0x0101010101010101u, sevens = 0x7F7F7F7F7F7F7F7Fu;
  const std::uint64_t pattern = ones * static_cast<unsigned char>(wanted);
  std::size_t total = 0;
  while (stop - from >= 8) {
    std::uint64_t counts = 0;  // one per byte of a word, each below 256
    const auto words = std::min<std::ptrdiff_t>((stop - from) / 8, 255);
    for (std::ptrdiff_t k = 0; k < words; ++k) {
      std::uint64_t word;
      std::memcpy(&word, from + 8 * k, 8);
      word ^= pattern;
      counts += (~(((word & sevens) + sevens) | word) >> 7) & ones;  // 1 for each byte that is zero now
    }
    from += 8 * words;
    for (; counts != 0; counts >>= 8) total += counts & 0xFF;
  }
  return total + static_cast<std::size_t>(std::count(from, stop, wanted));
}

// Possible cuts of a list of objects: after an object that is followed by another one with the same first key.
class BetweenObjects {
 public:
  // `list` is after the opening bracket of the list.
  explicit BetweenObjects(const char* list) : key_(first_key(skip_space(list))) {}

  // The first cut in from..stop, or null.
  const char* operator()(const char* from, const char* stop) const {
    if (key_.empty()) return nullptr;
    while (const char* brace = find_brace(from, stop)) {
      from = brace + 1;
      const char* at = skip_space(from);
      if (*at == ',' && first_key(skip_space(at + 1)) == key_) return from;
    }
    return nullptr;
  }

  static const char* find_brace(const char* from, const char* stop) {
    if (from >= stop) return nullptr;
    return static_cast<const char*>(std::memchr(from, '}', static_cast<std::size_t>(stop - from)));
  }

 private:
  // The first key of the object at this position, quotes included; empty if there is none.
  static std::string_view first_key(const char* at) {
    if (*at != '{') return {};
    const char* start = skip_space(at + 1);
    if (*start != '"') return {};
    const char* end = start + 1;
    while (*end != '"' && *end != '\0' && end - start < 64) ++end;
    return {start, static_cast<std::size_t>(end - start)};
  }

  std::string_view key_;
};

// Possible cuts of a list of lists of objects: after a list that ends with an object and is followed by another list.
struct BetweenLists {
  const char* operator()(const char* from, const char* stop) const {
    while (const char* brace = BetweenObjects::find_brace(from, stop)) {
      from = brace + 1;
      const char* bracket = skip_space(from);
      if (*bracket != ']') continue;
      const char* comma = skip_space(bracket + 1);
      if (*comma == ',' && *skip_space(comma + 1) == '[') return bracket + 1;
    }
    return nullptr;
  }
};

// Cuts of the rest of the text, ascending: several pieces per thread, because threads differ in speed.
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

// Reads the list that `in` has just entered in pieces as far as possible, and leaves `in` after the last value of
// these.
//
// `read(k, in, stop, wanted)` reads values of piece k until `in` is at `stop` or beyond, at the end of the list, or no
// longer wanted, and returns them, or nothing after any failure. It is called from several threads.
template <class Part, class Read>
std::vector<Adopted<Part>> read_pieces(json::Reader& in, const std::vector<const char*>& cuts, int threads,
                                       const Read& read) {
  struct Piece {
    const char* start;
    const char* stop;
    const char* end;
    std::int64_t last;  // index of its last value, counted from 0 in the first piece and from 1 in others
    std::optional<Part> part;
  };
  std::vector<Adopted<Part>> adopted;
  if (cuts.empty()) return adopted;
  std::vector<Piece> pieces;
  pieces.push_back({in.at(), cuts.front(), nullptr, -1, {}});
  for (std::size_t k = 0; k < cuts.size(); ++k) {
    pieces.push_back({cuts[k], k + 1 < cuts.size() ? cuts[k + 1] : in.end(), nullptr, -1, {}});
  }
  std::atomic<std::size_t> broken{pieces.size()};  // the first failed piece; later pieces are not needed
  for_each_index(static_cast<std::ptrdiff_t>(pieces.size()), threads, [&](int, std::ptrdiff_t index) {
    const auto k = static_cast<std::size_t>(index);
    const auto wanted = [&] { return broken.load(std::memory_order_relaxed) >= k; };
    if (!wanted()) return;
    Piece& piece = pieces[k];
    json::Reader own = in;
    if (k > 0) own.move_to(piece.start, 0);
    piece.part = read(k, own, piece.stop, wanted);
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

// Reads the values of the innermost list up to `stop`, or to the end of the list, or while they are wanted.
template <class Wanted, class ReadValue>
void read_values(json::Reader& in, const char* stop, const Wanted& wanted, ReadValue&& read_value) {
  while (in.at() < stop && in.peek() != ']' && wanted()) {
    in.next_item();
    read_value();
  }
}

}  // namespace probox
