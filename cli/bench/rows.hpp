// What `stepcast bench` measures, and the rows of the measurement file that come of it. docs/measurement_file.md; test: tests/golden/train_cli_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "program/program.hpp"
#include "real_backend/bench/kernels.hpp"

namespace stepcast::cli {

/// One row: all of it but the times, and how they are measured.
struct BenchPoint {
  nlohmann::ordered_json row;
  std::function<real::bench::Quartiles(const real::bench::Effort&)> measure;
};

/// Points, each once.
class BenchPlan {
 public:
  void add(BenchPoint point);
  [[nodiscard]] const std::vector<BenchPoint>& points() const { return points_; }

 private:
  std::vector<BenchPoint> points_;
  std::set<std::string> known_;
};

/// Launches, and allocations from the cache.
void add_host_calls(BenchPlan& plan);
/// Products, attention and memory-bound kernels of one rank; collectives of all three kinds from 4 KiB to 16 MiB on each of these numbers of ranks.
void add_sweep(hw::Dtype dtype, const std::vector<std::int32_t>& ranks, BenchPlan& plan);
/// Kernels and collectives of a program that so many ranks run at the same time.
void add_program(const program::Program& program, std::int32_t ranks, BenchPlan& plan);

/// A row with its times.
nlohmann::ordered_json timed(nlohmann::ordered_json row, const real::bench::Quartiles& times);
/// The whole file, with the facts of this machine.
nlohmann::ordered_json measurement_file(nlohmann::ordered_json rows);

}  // namespace stepcast::cli
