// Fills a report from a finished simulation. Every field is defined in docs/report.md. Test: tests/golden/cli_test.cpp, tests/unit/report_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cli/predict.hpp"
#include "program/count.hpp"
#include "program/model.hpp"
#include "scenarios/flops_convention.hpp"
#include "scenarios/names.hpp"
#include "trace/breakdown.hpp"

namespace stepcast::cli {
namespace {

double s(SimTime time) { return to_seconds(time).in(second); }

std::string sharding_text(const program::Policy& policy) {
  const char *framework = spelled(scenarios::kFrameworks, policy.framework), *sharding = spelled(scenarios::kShardings, policy.sharding);
  if (policy.framework == program::Framework::ddp || program::is_zero(policy.framework)) return framework;
  std::string text = fmt::format("{} {}", framework, sharding);
  if (policy.framework != program::Framework::fsdp2 || policy.reshard_after_forward == program::kReshardAfterForward) return text;
  if (policy.reshard_after_forward == program::kKeepAfterForward) return text + ", kept after forward";
  return fmt::format("{}, resharded among {}", text, policy.reshard_after_forward);
}

std::string policy_text(const program::Policy& policy) {
  std::string text = sharding_text(policy);
  if (policy.cpu_offload == program::CpuOffload::none) return text;
  return fmt::format("{}, {} on the host", text, spelled(scenarios::kCpuOffloads, policy.cpu_offload));
}

ScenarioFacts facts(const scenarios::Scenario& scenario) {
  namespace sc = scenarios;
  ScenarioFacts f;
  f.name = scenario.name;
  f.why = scenario.why;
  f.model = scenario.model_name.empty() ? "model" : scenario.model_name;
  f.device = scenario.fixed_costs ? "fixed costs" : scenario.cluster.gpu;
  f.policy = policy_text(scenario.policy);
  f.precision = hw::name(scenario.precision.param);
  f.recompute = spelled(sc::kRecomputeModes, scenario.recompute.mode);
  f.kernels = scenario.fixed_costs
                  ? "fixed costs"
                  : fmt::format("{}, {} attention", spelled(sc::kKernelSets, scenario.kernels.set), spelled(sc::kAttentions, scenario.kernels.attention));
  f.nodes = scenario.cluster.nodes;
  f.gpus_per_node = scenario.cluster.gpus_per_node;
  f.seq_len = scenario.batch.seq_len;
  f.micro_batch = scenario.batch.micro_batch;
  f.grad_accum = scenario.batch.grad_accum;
  f.parameters = program::parameters(scenario.model);
  f.active_parameters = program::active_parameters(scenario.model);
  return f;
}

void fill_flops(const scenarios::Scenario& scenario, const program::Program& program, const hw::CostModel* model, Report& r) {
  const auto convention = scenarios::flops_convention(scenario.run);
  const auto per_step = [&](program::FlopsConvention c) {
    return r.tokens_per_step_per_gpu * program::model_flops_per_token(scenario.model, r.scenario.active_parameters, scenario.batch.seq_len, c);
  };
  r.flops_convention = program::name(convention);
  r.has_peak = model != nullptr;
  if (!model) return;
  const program::Range last = program.steps.back();
  const Flops step = per_step(convention), hardware = step + program::recomputed_flops(program, last, convention);
  const FlopsPerSecond peak = model->peak(peak_type(scenario.precision));
  r.peak_flops = peak.si();
  r.model_flops_per_step = step.in(flop);
  r.hardware_flops_per_step = hardware.in(flop);
  r.executed_flops_per_step = program::count(program, last).executed.in(flop);
  if (r.step_time_s <= 0) return;
  const Flops possible = peak * Seconds(r.step_time_s);
  r.mfu = step / possible;
  r.hfu = hardware / possible;
  r.mfu_6p = per_step(program::FlopsConvention::six_p) / possible;
}

/// The step time is that of the last step, or where steps differ the mean over the measured ones, which are the traced.
void fill_step_times(const scenarios::Scenario& scenario, const sim::Result& result, bool vary, Report& r) {
  SimTime before{};
  for (const SimTime end : result.step_end) {
    r.step_times_s.push_back(s(end - before));
    before = end;
  }
  r.mean_of_steps = vary;
  r.measured_steps = r.mean_of_steps ? scenario.run.active : 1;
  const std::span measured = std::span(r.step_times_s).last(static_cast<std::size_t>(r.measured_steps));
  for (const double time : measured) r.step_time_s += time / static_cast<double>(measured.size());
  r.step_time_percentiles_s = percentiles({measured.begin(), measured.end()});
  if (r.step_time_s > 0) r.tokens_per_s_per_gpu = r.tokens_per_step_per_gpu / r.step_time_s;
}

void fill_rank_waits(const scenarios::Scenario& scenario, const sim::Result& result, Report& r) {
  if (scenario.run.ranks == scenarios::Ranks::folded) return;
  for (const sim::Waits& waits : result.waits) {
    const double share = waits.joined > 0 ? static_cast<double>(waits.last) / static_cast<double>(waits.joined) : 0;
    r.rank_waits.push_back({s(waits.waited) / scenario.run.active, share});
  }
}

void fill_collectives(const program::Program& program, const trace::Breakdown* breakdown, Report& r) {
  const program::Counts counts = program::count(program, program.steps.back());
  for (std::size_t kind = 0; kind < counts.collectives.size(); ++kind) {
    const program::CollectiveCount& c = counts.collectives[kind];
    if (c.calls == 0) continue;
    r.collectives.push_back(
        {hw::name(static_cast<hw::CollectiveKind>(kind)), c.calls, c.bytes, c.wire_bytes.in(byte), breakdown ? s(breakdown->exposed_by_kind[kind]) : 0});
  }
}

void fill_breakdown(const trace::Breakdown& b, Report& r) {
  r.compute_s = s(b.total.compute);
  r.comm_s = s(b.total.collective);
  r.exposed_comm_s = s(b.total.exposed);
  r.overlap_fraction = r.comm_s > 0 ? 1 - r.exposed_comm_s / r.comm_s : 0;
  r.idle_s = s(b.total.idle);
  r.data_wait_s = s(b.total.data_wait);
  r.host_blocked_s = s(b.total.host_blocked);
  static constexpr const char* kPhases[] = {"other", "forward", "backward", "optimizer"};
  for (std::size_t p = 1; p <= b.phases.size(); ++p) {
    const std::size_t phase = p % b.phases.size();  // "other" last, and only if there is any
    const trace::Times& t = b.phases[phase];
    if (phase != 0 || t.span > SimTime{})
      r.phases.push_back({kPhases[phase], s(t.span), s(t.compute), s(t.collective), s(t.exposed), s(t.idle), s(t.host_blocked), s(t.data_wait)});
  }
  for (std::size_t cause = 0; cause < b.causes.size(); ++cause) {
    const trace::CauseTotal& total = b.causes[cause];
    if (total.count > 0) r.gaps.push_back({trace::name(static_cast<trace::GapCause>(cause)), total.count, s(total.total)});
  }
  for (const auto& kernel : b.kernels) r.kernels.push_back({kernel.name, kernel.count, s(kernel.total)});
}

void add_owners(const std::array<std::int64_t, program::kOwners>& bytes, std::vector<OwnerRow>& rows) {
  for (std::size_t owner = 0; owner < program::kOwners; ++owner) {
    if (bytes[owner] > 0) rows.push_back({program::name(static_cast<program::Owner>(owner)), bytes[owner]});
  }
}

void fill_memory(const sim::Result& result, Report& r) {
  r.peak_allocated_bytes = result.peak_allocated;
  r.peak_active_bytes = result.peak_active;
  r.peak_reserved_bytes = result.peak_reserved;
  r.num_alloc_retries = result.memory.retries;
  r.num_device_mallocs = result.memory.device_mallocs;
  r.num_device_frees = result.memory.device_frees;
  r.retries_per_step = result.retries_per_step;
  add_owners(result.peak_by_owner, r.memory);
}

void add_assumed(const hw::Profile& profile, Report& r) {
  for (const auto& [name, constant] : profile.constants) {
    const bool from_user = constant.source == "scenario";  // hw::make_cluster names overrides so
    if (constant.origin == hw::Origin::assumed && !from_user) r.assumptions.push_back({profile.name, name, constant.source, constant.value});
  }
}

OutOfMemoryRow out_of_memory(const sim::OutOfMemory& o) {
  OutOfMemoryRow row;
  row.buffer = o.buffer;
  row.requested_bytes = o.requested;
  row.segment_bytes = o.segment;
  row.allocated_bytes = o.allocated;
  row.reserved_bytes = o.reserved;
  row.limit_bytes = o.limit;
  row.step = o.step;
  row.time_s = s(o.time);
  row.active_bytes = o.active;
  add_owners(o.by_owner, row.by_owner);
  return row;
}

}  // namespace

Report make_report(const scenarios::Scenario& scenario, const program::Program& program, const sim::Result& result, const hw::CostModel* model) {
  return make_report(scenario, program, result, model, scenarios::steps_vary(scenario));
}

Report make_report(const scenarios::Scenario& scenario, const program::Program& program, const sim::Result& result, const hw::CostModel* model,
                   bool steps_vary) {
  static constexpr const char* kOutcomes[] = {"ok", "out_of_memory", "deadlock"};
  Report r;
  r.outcome = kOutcomes[static_cast<std::size_t>(result.outcome)];
  r.scenario = facts(scenario);
  r.ranks = scenarios::ranks(scenario);
  r.rank_mode = spelled(scenarios::kRanks, scenario.run.ranks);
  r.steps = scenario.run.steps;
  r.tokens_per_step_per_gpu = static_cast<double>(program::tokens(scenario.batch) * scenario.batch.grad_accum);
  const bool ok = result.outcome == sim::Outcome::ok;
  if (ok) fill_step_times(scenario, result, steps_vary, r);
  if (ok) fill_rank_waits(scenario, result, r);
  fill_flops(scenario, program, model, r);
  fill_memory(result, r);
  std::optional<trace::Breakdown> breakdown;
  const auto measured = static_cast<int>(r.measured_steps);
  if (ok) breakdown = trace::mean_breakdown(result.trace, result.trace.ranks.front(), scenario.run.steps - measured, measured);
  if (breakdown) fill_breakdown(*breakdown, r);
  fill_collectives(program, breakdown ? &*breakdown : nullptr, r);
  if (ok) set_bound(r);
  if (result.outcome == sim::Outcome::out_of_memory) r.out_of_memory = out_of_memory(result.out_of_memory);
  r.deadlock = result.deadlock;
  if (!model) return r;
  add_assumed(model->gpu(), r);
  add_assumed(model->cluster().node, r);
  return r;
}

}  // namespace stepcast::cli
