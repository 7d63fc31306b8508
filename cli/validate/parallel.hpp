// Independent pieces of work on several threads. Test: tests/unit/parallel_test.cpp (run by ThreadSanitizer).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace stepcast::cli {

/// Calls work(i) once for each i below `count`, on up to `threads` threads; work on different i must not touch the same data. `done`, if there is one, is called one at a time with
/// the number of pieces finished. Of several exceptions that of the smallest i is thrown, after all threads have ended; after an exception no new piece is begun.
template <class Work>
void for_each_index(std::size_t count, unsigned threads, const Work& work, const std::function<void(std::size_t)>& done = {}) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // guards what follows
  std::size_t finished = 0;
  std::optional<std::pair<std::size_t, std::exception_ptr>> failed;
  const auto worker = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      std::exception_ptr error;
      try {
        work(i);
      } catch (...) { error = std::current_exception(); }
      const std::scoped_lock lock(mutex);
      if (error && (!failed || i < failed->first)) failed.emplace(i, error);
      if (error) next = count;
      ++finished;
      if (!error && done) done(finished);
    }
  };
  {
    std::vector<std::jthread> pool;
    for (std::size_t t = 1; t < std::min<std::size_t>(threads, count); ++t) pool.emplace_back(worker);
    worker();
  }
  if (failed) std::rethrow_exception(failed->second);
}

}  // namespace stepcast::cli
