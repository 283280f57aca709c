// The content of a large file, read by several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "kernel/parallel.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define PROBOX_PREAD
#include <unistd.h>
#endif

namespace probox {

// Reads the first `size` bytes of an open file; false if the file is shorter or cannot be read this way.
inline bool read_file(int descriptor, char* to, std::size_t size, int threads) {
#ifdef PROBOX_PREAD
  constexpr std::size_t piece = std::size_t{1} << 21;
  std::atomic<bool> complete{true};
  for_each_index(static_cast<std::ptrdiff_t>((size + piece - 1) / piece), threads, [&](int, std::ptrdiff_t index) {
    std::size_t at = static_cast<std::size_t>(index) * piece;
    const std::size_t stop = std::min(at + piece, size);
    while (at < stop) {
      const ssize_t count = pread(descriptor, to + at, stop - at, static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        complete = false;
        return;
      }
      at += static_cast<std::size_t>(count);
    }
  });
  return complete;
#else
  static_cast<void>(descriptor), static_cast<void>(to), static_cast<void>(size), static_cast<void>(threads);
  return false;
#endif
}

}  // namespace probox
