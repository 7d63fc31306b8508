// Forecasts that a sweep has made, one a line in a file: each is written as soon as it is there, so that a sweep that was stopped goes on where it was, and memory
// does not grow with the grid. docs/sweep.md; test: tests/unit/sweep_test.cpp; fuzzed by tests/fuzz/sweep_file.cpp.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <string>
#include <vector>

namespace stepcast::cli {

class SweepStore {
 public:
  /// In a file that ends with the process.
  SweepStore();
  /// In `path`; what an earlier sweep of the same build of the program left there is kept. An unfinished last line is cut off. Throws InputError on any other file.
  SweepStore(const std::string& path, const std::string& build);

  [[nodiscard]] bool has(std::uint64_t key) const { return places_.contains(key); }
  /// Keeps `point`, a JSON object without line breaks. Safe from several threads. Throws std::system_error.
  void add(std::uint64_t key, const std::string& point);
  /// What was kept. Throws std::system_error.
  [[nodiscard]] std::string get(std::uint64_t key) const;

 private:
  struct Place {
    long offset = 0;
    std::size_t length = 0;
  };
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  void write(const std::string& line);
  void read_back(const std::string& path);

  std::string header_;
  File file_;
  long end_ = 0;
  /// Nodes come from few large blocks: alone, each would lie among the memory of the forecasts and keep it from being used again.
  std::pmr::monotonic_buffer_resource nodes_;
  std::pmr::map<std::uint64_t, Place> places_{&nodes_};
  mutable std::mutex mutex_;
};

}  // namespace stepcast::cli
