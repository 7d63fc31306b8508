// See advice.hpp. With row g (sensitivities) and noise s, the covariance C becomes C - C g g' C / (s^2 + g' C g): one step of a Kalman filter.
#include "calibration/advice.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "calibration/describe.hpp"
#include "calibration/predictor.hpp"

namespace stepcast::calibration {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

void add_products(std::vector<Measurement>& list) {
  const auto add = [&](std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
    Measurement row;
    row.kernel = {.kind = hw::KernelKind::gemm, .batch = batch, .m = m, .n = n, .k = k};
    list.push_back(row);
  };
  for (const std::int64_t side : {512, 1024, 2048, 4096, 8192, 16384}) add(1, side, side, side);
  for (const std::int64_t depth : {64, 256, 1024}) add(1, 16384, 16384, depth);
  for (const std::int64_t rows : {128, 512}) add(1, rows, 8192, 8192);
  add(1, 8192, 8200, 8192);  // a multiple of 8 alone
  add(1, 8192, 8193, 8192);  // odd
  for (const std::int64_t length : {1024, 4096}) add(64, length, length, 64);
}

void add_attention(std::vector<Measurement>& list) {
  using Kernel = hw::AttentionKernel;
  for (const Kernel kernel : {Kernel::flash1, Kernel::flash2, Kernel::flash3, Kernel::triton, Kernel::efficient}) {
    for (const std::int64_t head : {64, 128}) {
      for (const std::int64_t length : {512, 2048, 16384}) {
        for (const bool causal : {false, true}) {
          Measurement row;
          row.kernel.kind = hw::KernelKind::attention_forward;
          row.kernel.attention = kernel;
          row.kernel.causal = causal;
          row.kernel.batch = 16384 / length;
          row.kernel.m = length;
          row.kernel.n = 2048 / head;
          row.kernel.k = head;
          list.push_back(row);
          row.both_passes = true;
          list.push_back(row);
        }
      }
    }
  }
}

void add_memory_bound(std::vector<Measurement>& list) {
  using Memory = hw::MemoryClass;
  for (const Memory memory : {Memory::elementwise, Memory::normalization, Memory::softmax, Memory::indexing, Memory::copy, Memory::optimizer}) {
    for (const std::int64_t bytes : {100'000, 200'000'000, 2'000'000'000}) {
      Measurement row;
      row.kernel.memory = memory;
      row.kernel.read_bytes = bytes;
      list.push_back(row);
    }
  }
}

void add_collectives(std::vector<Measurement>& list, std::int32_t gpus) {
  using Kind = hw::CollectiveKind;
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce}) {
    for (const std::int32_t nodes : {1, 2, 8}) {
      for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{1} << 18, std::int64_t{1} << 20, std::int64_t{1} << 25, std::int64_t{1} << 30}) {
        Measurement row;
        row.timed = Timed::collective;
        row.collective.kind = kind;
        row.collective.bytes = bytes;
        row.collective.group = {gpus, nodes};
        list.push_back(row);
      }
    }
  }
}

void add_calls(std::vector<Measurement>& list) {
  for (const Timed timed : {Timed::launch_call, Timed::launch_latency, Timed::device_malloc, Timed::device_free}) {
    Measurement row;
    row.timed = timed;
    if (timed == Timed::device_malloc || timed == Timed::device_free) row.bytes = 1 << 30;
    list.push_back(row);
  }
}

/// What one could measure, on a machine of this kind. Times are as predicted, by a device clock.
std::vector<Measurement> possible(const Machine& machine) {
  std::vector<Measurement> list;
  add_products(list);
  add_attention(list);
  add_memory_bound(list);
  if (machine.node) add_collectives(list, static_cast<std::int32_t>(machine.node->at("gpus")));
  add_calls(list);
  std::vector<Measurement> usable;
  for (Measurement& row : list) {
    row.time = Seconds(1);
    if (!obstacle(row, machine).empty()) continue;
    row.time = Predictor(machine).time(row);
    if (obstacle(row, machine).empty()) usable.push_back(row);
  }
  return usable;
}

}  // namespace

std::optional<Advice> next_measurement(const Fit& fit) {
  const auto widest = std::max_element(fit.parameters.begin(), fit.parameters.end(), [](const auto& a, const auto& b) { return a.spread < b.spread; });
  const auto index = static_cast<Index>(widest - fit.parameters.begin());
  std::vector<Parameter> parameters;
  VectorXd logs(static_cast<Index>(fit.parameters.size()));
  for (const FittedParameter& p : fit.parameters) {
    logs[static_cast<Index>(parameters.size())] = std::log(p.value);
    parameters.push_back(p.parameter);
  }
  const std::vector<Measurement> list = possible(fit.machine);
  std::vector<const Measurement*> rows;
  for (const Measurement& row : list) rows.push_back(&row);
  const Eigen::MatrixXd sensitivity = sensitivities(fit.machine, parameters, logs, rows);
  std::optional<Advice> best;
  const double variance = fit.covariance(index, index);
  double least = variance * (1 - 1e-6);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto known = fit.noise.find(group_of(*rows[i]));
    const double noise = known == fit.noise.end() ? kUsualNoise : known->second;
    const VectorXd g = sensitivity.row(static_cast<Index>(i)).transpose(), moved = fit.covariance * g;
    const double after = variance - moved[index] * moved[index] / (noise * noise + g.dot(moved));
    if (after >= least) continue;
    least = after;
    best = Advice{widest->parameter.name, describe(*rows[i]), widest->spread, widest->spread * std::sqrt(std::max(after, 0.0) / variance)};
  }
  return best;
}

}  // namespace stepcast::calibration
