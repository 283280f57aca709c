// Distributes independent tasks over a fixed number of threads, with interruption.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace probox {

constexpr int kMostThreads = 1024;

// Thrown to end interrupted work.
struct Stopped {};

// Interrupts a long computation. All threads call `check` regularly; the first worker, which is the calling thread,
// then checks for signals: `check_signals` throws if the work must end.
class Stop {
 public:
  using SignalCheck = void (*)();
  static constexpr std::chrono::milliseconds interval{50};

  explicit Stop(SignalCheck check_signals = nullptr)
      : check_signals_(check_signals), last_check_(std::chrono::steady_clock::now()) {}

  void check(int worker) {
    // Reading the clock takes as long as a small task: not at every call.
    if (worker == 0 && check_signals_ != nullptr && ++calls_ % 8 == 0) {
      const auto now = std::chrono::steady_clock::now();
      if (now - last_check_ >= interval) {
        last_check_ = now;
        check_signals_();
      }
    }
    if (stopped_.load(std::memory_order_relaxed)) throw Stopped{};
  }

  // Checks immediately: for a calling thread that waits for the others.
  void check_signals() const {
    if (check_signals_ != nullptr) check_signals_();
  }

  void stop() { stopped_.store(true, std::memory_order_relaxed); }

 private:
  SignalCheck check_signals_;
  unsigned calls_ = 0;  // of the first worker
  std::chrono::steady_clock::time_point last_check_;
  std::atomic<bool> stopped_{false};
};

// Interrupt check of one worker; without a `Stop` it does nothing.
struct CheckInterrupt {
  Stop* stop = nullptr;
  int worker = 0;

  void operator()() const {
    if (stop != nullptr) stop->check(worker);
  }
};

// Calls work(worker, i) for every i in 0..count-1 exactly once. The worker of each i is arbitrary, so results must
// depend on i alone. The first exception is rethrown after all threads have stopped. Threads that cannot be started are
// omitted: the calling thread works, too.
template <class Work>
void for_each_index(std::ptrdiff_t count, int threads, Stop& stop, Work&& work) {
  threads = static_cast<int>(std::clamp<std::ptrdiff_t>(count, 1, std::clamp(threads, 1, kMostThreads)));
  std::atomic<std::ptrdiff_t> next{0};
  std::exception_ptr failure;
  std::mutex guard;
  std::condition_variable finished;
  int running = 0;
  const auto fail = [&] {
    const std::lock_guard<std::mutex> lock(guard);
    if (!failure) failure = std::current_exception();
    next = count;
    stop.stop();
  };
  const auto run = [&](int worker) {
    try {
      for (std::ptrdiff_t i; (i = next.fetch_add(1)) < count;) {
        stop.check(worker);
        work(worker, i);
      }
    } catch (...) {
      fail();
    }
  };
  const auto run_beside = [&](int worker) {
    run(worker);
    const std::lock_guard<std::mutex> lock(guard);
    --running;
    finished.notify_one();
  };
  std::vector<std::thread> pool;
  pool.reserve(static_cast<std::size_t>(threads - 1));
  for (int worker = 1; worker < threads; ++worker) {
    {
      const std::lock_guard<std::mutex> lock(guard);
      ++running;
    }
    try {
      pool.emplace_back(run_beside, worker);
    } catch (const std::exception&) {  // no memory for its stack, or too many threads
      const std::lock_guard<std::mutex> lock(guard);
      --running;
      break;
    }
  }
  run(0);
  {
    std::unique_lock<std::mutex> lock(guard);
    while (!finished.wait_for(lock, Stop::interval, [&] { return running == 0; })) {
      lock.unlock();
      try {
        stop.check_signals();
      } catch (...) {
        fail();
      }
      lock.lock();
    }
  }
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

template <class Work>
void for_each_index(std::ptrdiff_t count, int threads, Work&& work) {
  Stop never;
  for_each_index(count, threads, never, work);
}

}  // namespace probox
