// Spreads independent pieces of work over a fixed number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace probox {

// Calls work(worker, i) for every i in 0..count-1, each exactly once. Which worker gets which i is left to chance, so
// results must depend on i alone. The first exception is passed on after all threads have stopped.
template <class Work>
void for_each_index(std::ptrdiff_t count, int threads, Work&& work) {
  threads = static_cast<int>(std::min<std::ptrdiff_t>(std::max(threads, 1), std::max<std::ptrdiff_t>(count, 1)));
  std::atomic<std::ptrdiff_t> next{0};
  std::exception_ptr failure;
  std::mutex guard;
  const auto run = [&](int worker) {
    try {
      for (std::ptrdiff_t i; (i = next.fetch_add(1)) < count;) work(worker, i);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(guard);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> pool;
  for (int worker = 1; worker < threads; ++worker) pool.emplace_back(run, worker);
  run(0);
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace probox
