// Concatenated columns of several pieces of a file: threads copy the pieces and free them at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/parallel.hpp"
#include "large_column.hpp"
#include "pieces.hpp"
#include "some_rows.hpp"

namespace probox {

template <class Part>
class JoinedColumns {
 public:
  JoinedColumns(std::vector<Adopted<Part>>& pieces, int threads) : pieces_(pieces), threads_(threads) {}

  // The concatenated values of a column; `shift(k)` is added to those of piece k.
  template <class T, class Shift>
  LargeColumn<T> column(LargeColumn<T> Part::* name, const Shift& shift) {
    return joined<T>([name](Part& part) -> LargeColumn<T>& { return part.*name; }, shift);
  }
  template <class T>
  LargeColumn<T> column(LargeColumn<T> Part::* name) {
    return column(name, [](std::size_t) { return T{}; });
  }

  // Values of some rows only; `first_row(k)` is the number of rows before piece k.
  template <class T, class FirstRow>
  SomeRows<T> some_rows(SomeRows<T> Part::* name, const FirstRow& first_row) {
    SomeRows<T> all;
    all.rows = joined<std::int64_t>([name](Part& part) -> auto& { return (part.*name).rows; }, first_row);
    all.values =
        joined<T>([name](Part& part) -> auto& { return (part.*name).values; }, [](std::size_t) { return T{}; });
    return all;
  }

 private:
  template <class T, class Get, class Shift>
  LargeColumn<T> joined(const Get& get, const Shift& shift) {
    std::vector<std::size_t> starts;
    std::size_t total = 0;
    for (Adopted<Part>& piece : pieces_) {
      starts.push_back(total);
      total += get(piece.part).size();
    }
    LargeColumn<T> all(total);
    const int threads = total * sizeof(T) < min_bytes_for_threads ? 1 : threads_;
    for_each_index(static_cast<std::ptrdiff_t>(pieces_.size()), threads, [&](int, std::ptrdiff_t index) {
      const auto k = static_cast<std::size_t>(index);
      LargeColumn<T>& own = get(pieces_[k].part);
      const T more = shift(k);
      T* to = all.data() + starts[k];
      if (more == T{}) {
        std::copy(own.begin(), own.end(), to);
      } else {
        std::transform(own.begin(), own.end(), to, [more](T value) { return static_cast<T>(value + more); });
      }
      LargeColumn<T>().swap(own);
    });
    return all;
  }

  static constexpr std::size_t min_bytes_for_threads = std::size_t{1} << 20;
  std::vector<Adopted<Part>>& pieces_;
  int threads_;
};

}  // namespace probox
