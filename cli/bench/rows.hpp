// What `stepcast bench` measures, and the rows of the measurement file that come of it. docs/measurement_file.md; test: tests/golden/train_cli_test.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "program/program.hpp"
#include "real_backend/bench/kernels.hpp"

namespace stepcast::cli {

struct BenchPlan {
  std::vector<real::bench::KernelCase> kernels;
  std::vector<hw::CollectiveShape> collectives;
  real::bench::Effort effort;
};

/// All three kinds, in sizes from 4 KiB to 16 MiB.
void add_collectives(hw::Dtype dtype, std::int32_t ranks, BenchPlan& plan);
/// The distinct ones of a program.
void add_collectives(const program::Program& program, BenchPlan& plan);

/// Rows that a plan will have.
std::size_t points(const BenchPlan& plan);
/// `progress` is called with how many are done; it may be empty.
nlohmann::ordered_json measure(const BenchPlan& plan, const std::function<void(std::size_t)>& progress);

}  // namespace stepcast::cli
