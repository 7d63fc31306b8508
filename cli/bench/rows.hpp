// What `stepcast bench` measures, and the rows of the measurement file that come of it. docs/measurement_file.md; test: tests/golden/train_cli_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "program/program.hpp"
#include "real_backend/bench/kernels.hpp"

namespace stepcast::cli {

/// One row: all of it but the times, and how they are measured.
struct BenchPoint {
  nlohmann::ordered_json row;
  std::function<real::bench::Quartiles(const real::bench::Effort&)> measure;
  std::int32_t ranks = 1;
};

/// Points of one kind of device, each once.
class BenchPlan {
 public:
  explicit BenchPlan(real::bench::Target target = real::bench::host_target()) : target_(std::move(target)) {}
  [[nodiscard]] const real::bench::Target& target() const { return target_; }
  void add(BenchPoint point);
  [[nodiscard]] const std::vector<BenchPoint>& points() const { return points_; }
  /// Of the point that needs the most.
  [[nodiscard]] std::int32_t ranks() const { return ranks_; }

 private:
  real::bench::Target target_;
  std::vector<BenchPoint> points_;
  std::int32_t ranks_ = 1;
  std::set<std::string> known_;
};

/// Launches, allocations from the cache, and where taking memory from the device costs something those.
void add_host_calls(BenchPlan& plan);
/// Products, attention and memory-bound kernels of one rank, and copies; on each of these numbers of ranks collectives of all three kinds from 4 KiB to 16 MiB (of GPUs 1 GiB), and a product
/// beside some.
void add_sweep(hw::Dtype dtype, const std::vector<std::int32_t>& ranks, BenchPlan& plan);
/// Kernels and collectives of a program that so many ranks run at the same time.
void add_program(const program::Program& program, std::int32_t ranks, BenchPlan& plan);

/// A row with its times.
nlohmann::ordered_json timed(nlohmann::ordered_json row, const real::bench::Quartiles& times);
/// The whole file, with the facts of this machine, or of what it was measured on.
nlohmann::ordered_json measurement_file(nlohmann::ordered_json rows);
nlohmann::ordered_json measurement_file(nlohmann::ordered_json rows, nlohmann::ordered_json machine);

}  // namespace stepcast::cli
