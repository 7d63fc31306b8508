// A report as JSON: the fixed names of docs/report.md, in their order. Test: tests/unit/report_test.cpp.
#include <nlohmann/json.hpp>

#include "cli/report/out_of_memory.hpp"
#include "cli/report/report.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

OrderedJson number_or_null(double value, bool known) { return known ? OrderedJson(value) : OrderedJson(nullptr); }

OrderedJson scenario_json(const ScenarioFacts& s) {
  return {{"name", s.name},
          {"why", s.why},
          {"model", s.model},
          {"parameters", s.parameters},
          {"active_parameters", s.active_parameters},
          {"device", s.device},
          {"nodes", s.nodes},
          {"gpus_per_node", s.gpus_per_node},
          {"policy", s.policy},
          {"precision", s.precision},
          {"recompute", s.recompute},
          {"kernels", s.kernels},
          {"seq_len", s.seq_len},
          {"micro_batch", s.micro_batch},
          {"grad_accum", s.grad_accum}};
}

OrderedJson phases_json(const Report& r) {
  OrderedJson phases = OrderedJson::object();
  for (const PhaseRow& p : r.phases) {
    phases[p.name] = {{"span_s", p.span_s}, {"compute_s", p.compute_s},           {"comm_s", p.comm_s},          {"exposed_comm_s", p.exposed_comm_s},
                      {"idle_s", p.idle_s}, {"host_blocked_s", p.host_blocked_s}, {"data_wait_s", p.data_wait_s}};
  }
  return phases;
}

OrderedJson gaps_json(const Report& r) {
  OrderedJson gaps = OrderedJson::object();
  for (const GapRow& gap : r.gaps) gaps[gap.cause] = {{"count", gap.count}, {"total_s", gap.total_s}};
  return gaps;
}

OrderedJson collectives_json(const Report& r) {
  OrderedJson rows = OrderedJson::object();
  for (const CollectiveRow& c : r.collectives)
    rows[c.kind] = {{"calls", c.calls}, {"bytes", c.bytes}, {"wire_bytes", c.wire_bytes}, {"exposed_s", c.exposed_s}};
  return rows;
}

OrderedJson kernels_json(const Report& r) {
  OrderedJson rows = OrderedJson::array();
  for (const KernelRow& k : r.kernels) rows.push_back({{"name", k.name}, {"count", k.count}, {"total_s", k.total_s}});
  return rows;
}

OrderedJson memory_json(const Report& r) {
  OrderedJson rows = OrderedJson::object();
  for (const OwnerRow& o : r.memory) rows[o.owner] = o.bytes;
  return rows;
}

OrderedJson assumptions_json(const Report& r) {
  OrderedJson rows = OrderedJson::array();
  for (const AssumedConstant& a : r.assumptions) rows.push_back({{"profile", a.profile}, {"constant", a.constant}, {"value", a.value}, {"source", a.source}});
  return rows;
}

OrderedJson percentiles_json(const Percentiles& p) { return {{"p10", p.p10}, {"p50", p.p50}, {"p90", p.p90}}; }

OrderedJson rank_waits_json(const Report& r) {
  OrderedJson waits = OrderedJson::array(), last = OrderedJson::array();
  for (const RankRow& row : r.rank_waits) {
    waits.push_back(row.collective_wait_s);
    last.push_back(row.last_share);
  }
  const std::int64_t rank = straggler(r);
  return {{"straggler", rank < 0 ? OrderedJson(nullptr) : OrderedJson(rank)}, {"collective_wait_s", waits}, {"last_share", last}};
}

OrderedJson seeds_json(const SeedsRow& s) {
  return {{"first", s.first},
          {"count", s.step_times_s.size()},
          {"mean_s", s.mean_s},
          {"percentiles_s", percentiles_json(s.percentiles_s)},
          {"step_times_s", s.step_times_s}};
}

OrderedJson interval_json(const IntervalRow& i) {
  OrderedJson causes = OrderedJson::array();
  for (const UncertainCause& cause : i.causes) causes.push_back({{"cause", cause.name}, {"step_time_s", cause.step_time_s}});
  return {{"members", i.members},           {"left_out", i.left_out}, {"seed", i.seed}, {"step_time_s", percentiles_json(i.step_time_s)},
          {"mfu", percentiles_json(i.mfu)}, {"causes", causes}};
}

}  // namespace

OrderedJson to_json(const Report& r) {
  const bool ok = r.outcome == "ok";
  const bool rated = ok && r.has_peak;
  OrderedJson j = {{"schema", kReportSchema}, {"outcome", r.outcome}, {"scenario", scenario_json(r.scenario)}};
  const auto time = [&](const char* key, double value) { j[key] = number_or_null(value, ok); };
  time("step_time_s", r.step_time_s);
  time("tokens_per_s_per_gpu", r.tokens_per_s_per_gpu);
  j["tokens_per_step_per_gpu"] = r.tokens_per_step_per_gpu;
  j["mfu"] = number_or_null(r.mfu, rated);
  j["hfu"] = number_or_null(r.hfu, rated);
  j["mfu_6p"] = number_or_null(r.mfu_6p, rated);
  j["flops_convention"] = r.flops_convention;
  j["model_flops_per_step"] = r.model_flops_per_step;
  j["hardware_flops_per_step"] = r.hardware_flops_per_step;
  j["executed_flops_per_step"] = r.executed_flops_per_step;
  j["peak_flops"] = number_or_null(r.peak_flops, r.has_peak);
  j["peak_allocated_bytes"] = r.peak_allocated_bytes;
  j["peak_active_bytes"] = r.peak_active_bytes;
  j["peak_reserved_bytes"] = r.peak_reserved_bytes;
  j["memory_limit_bytes"] = r.memory_limit_bytes;
  j["memory_headroom_bytes"] = r.memory_limit_bytes > 0 ? OrderedJson(r.memory_limit_bytes - r.peak_reserved_bytes) : OrderedJson(nullptr);
  j["num_alloc_retries"] = r.num_alloc_retries;
  j["retries_per_step"] = r.retries_per_step;
  j["num_device_mallocs"] = r.num_device_mallocs;
  j["num_device_frees"] = r.num_device_frees;
  time("exposed_comm_s", r.exposed_comm_s);
  time("comm_s", r.comm_s);
  time("overlap_fraction", r.overlap_fraction);
  time("compute_s", r.compute_s);
  time("idle_s", r.idle_s);
  time("data_wait_s", r.data_wait_s);
  time("host_blocked_s", r.host_blocked_s);
  j["bound"] = ok ? OrderedJson(r.bound) : OrderedJson(nullptr);
  j["bound_reason"] = r.bound_reason;
  j["ranks"] = r.ranks;
  j["rank_mode"] = r.rank_mode;
  j["steps"] = r.steps;
  j["step_times_s"] = r.step_times_s;
  j["measured_steps"] = r.measured_steps;
  j["step_time_percentiles_s"] = ok ? percentiles_json(r.step_time_percentiles_s) : OrderedJson(nullptr);
  if (!r.rank_waits.empty()) j["rank_waits"] = rank_waits_json(r);
  if (!r.seeds.step_times_s.empty()) j["seeds"] = seeds_json(r.seeds);
  if (r.interval.members > 0) j["interval"] = interval_json(r.interval);
  j["phases"] = phases_json(r);
  j["gaps"] = gaps_json(r);
  j["collectives"] = collectives_json(r);
  j["kernels"] = kernels_json(r);
  j["memory"] = memory_json(r);
  if (r.outcome == "out_of_memory") j["out_of_memory"] = out_of_memory_json(r.out_of_memory);
  if (r.outcome == "deadlock") j["deadlock"] = r.deadlock;
  j["assumptions"] = assumptions_json(r);
  j["warnings"] = r.warnings;
  return j;
}

}  // namespace stepcast::cli
