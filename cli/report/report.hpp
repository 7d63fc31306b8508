// The report of one predicted run: what `run` prints, writes and `compare` compares. Field names are the contract with users (docs/report.md); SI units.
// Filled by cli/make_report.cpp; rendered by json.cpp and text.cpp. Test: tests/unit/report_test.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stepcast::cli {

inline constexpr const char* kReportSchema = "stepcast.report/1";

struct PhaseRow {
  std::string name;  // forward, backward, optimizer
  double span_s = 0, compute_s = 0, comm_s = 0, exposed_comm_s = 0, idle_s = 0, host_blocked_s = 0, data_wait_s = 0;
};

/// Idle time of the compute stream by cause.
struct GapRow {
  std::string cause;
  std::int64_t count = 0;
  double total_s = 0;
};

struct CollectiveRow {
  std::string kind;
  std::int64_t calls = 0, bytes = 0;  // big sides, per step and rank
  double wire_bytes = 0, exposed_s = 0;
};

struct KernelRow {
  std::string name;
  std::int64_t count = 0;
  double total_s = 0;
};

struct OwnerRow {
  std::string owner;
  std::int64_t bytes = 0;  // at the moment of peak_allocated_bytes
};

struct AssumedConstant {
  std::string profile, constant, source;
  double value = 0;  // SI
};

/// A change of settings that was simulated because the scenario doesn't fit.
struct Remedy {
  std::vector<std::string> sets;  // "/batch/micro_batch=2"
  std::string what;               // in words
  std::string outcome;            // ok, out_of_memory, deadlock, or why it can't be simulated
  double step_time_s = 0, tokens_per_s_per_gpu = 0;
  std::int64_t peak_reserved_bytes = 0, headroom_bytes = 0, retries_per_step = 0;
};

struct OutOfMemoryRow {
  std::string buffer;
  std::int64_t requested_bytes = 0, segment_bytes = 0, allocated_bytes = 0, reserved_bytes = 0, limit_bytes = 0;
  std::int32_t step = 0;
  double time_s = 0;
  std::int64_t active_bytes = 0, device_bytes = 0, outside_pool_bytes = 0;  // outside_pool_bytes: context, NCCL, workspaces
  bool fraction = false;                                                    // a memory_fraction sets the limit
  std::vector<OwnerRow> by_owner{};                                         // what held allocated_bytes
  std::vector<Remedy> remedies{};                                           // nearest first
};

/// Quantiles of step times, by linear interpolation between the sorted values.
struct Percentiles {
  double p10 = 0, p50 = 0, p90 = 0;
};
Percentiles percentiles(std::vector<double> values);

/// Explicit ranks: how each meets the others in collectives, per measured step.
struct RankRow {
  double collective_wait_s = 0;  // between its arrivals and those of the last rank
  double last_share = 0;         // of the collectives in which somebody waited: those for which it was waited for
};

/// `run --seeds N`: the step time of each seed.
struct SeedsRow {
  std::int64_t first = 0;
  std::vector<double> step_times_s;
  double mean_s = 0;
  Percentiles percentiles_s;
};

/// Constants that one draw moves, and the step time with them one standard deviation up.
struct UncertainCause {
  std::string name;
  double step_time_s = 0;
};

/// Forecasts with constants drawn from their spreads.
struct IntervalRow {
  std::int64_t members = 0, left_out = 0;  // those that did not fit
  std::uint64_t seed = 0;
  Percentiles step_time_s, mfu;
  std::vector<UncertainCause> causes;  // what moves the step time most first
};

struct ScenarioFacts {
  std::string name, why, model, device, policy, precision, recompute, kernels;
  std::int64_t nodes = 1, gpus_per_node = 1, seq_len = 0, micro_batch = 0, grad_accum = 1, parameters = 0,
               active_parameters = 0;  // that a token passes through
};

struct Report {
  std::string outcome = "ok";  // ok, out_of_memory, deadlock; times are null unless ok
  ScenarioFacts scenario;
  double step_time_s = 0, tokens_per_s_per_gpu = 0, tokens_per_step_per_gpu = 0;
  double mfu = 0, hfu = 0, mfu_6p = 0;
  double model_flops_per_step = 0, hardware_flops_per_step = 0, executed_flops_per_step = 0;  // per GPU
  double peak_flops = 0;                                                                      // of the device, in the parameters' type
  std::string flops_convention;
  bool has_peak = true;  // fixed-cost mode knows no device: mfu and hfu are null
  std::int64_t peak_allocated_bytes = 0, peak_active_bytes = 0, peak_reserved_bytes = 0, memory_limit_bytes = 0;  // headroom: limit - peak reserved
  std::int64_t num_alloc_retries = 0, num_device_mallocs = 0, num_device_frees = 0;
  std::vector<std::int64_t> retries_per_step;
  double compute_s = 0, comm_s = 0, exposed_comm_s = 0, overlap_fraction = 0, idle_s = 0, data_wait_s = 0, host_blocked_s = 0;
  std::string bound, bound_reason;
  std::int64_t ranks = 1, steps = 0;
  std::string rank_mode;  // folded, explicit
  std::vector<double> step_times_s;
  bool mean_of_steps = false;       // steps differ: times are means over the measured steps
  std::int64_t measured_steps = 1;  // the last ones
  Percentiles step_time_percentiles_s;
  std::vector<RankRow> rank_waits;  // by rank; empty unless ranks are explicit
  SeedsRow seeds;                   // empty unless several were run
  IntervalRow interval;             // no members unless it was asked for
  std::vector<PhaseRow> phases;
  std::vector<GapRow> gaps;
  std::vector<CollectiveRow> collectives;
  std::vector<KernelRow> kernels;
  std::vector<OwnerRow> memory;
  std::vector<AssumedConstant> assumptions;
  std::vector<std::string> warnings, deadlock;
  OutOfMemoryRow out_of_memory;
};

/// What bounds the step, from the idle time of the compute stream by cause (docs/report.md, "Bound"): the group of causes that takes most of the step,
/// if that is at least kBoundShare of it; compute otherwise. Sets `bound` and `bound_reason`.
inline constexpr double kBoundShare = 0.15;
void set_bound(Report& report);

/// The rank that most collectives waited for, or -1 where nobody waited.
std::int64_t straggler(const Report& report);

nlohmann::ordered_json to_json(const Report& report);

}  // namespace stepcast::cli
