// See out_of_memory.hpp.
#include "cli/out_of_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/predict.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

struct Change {
  std::vector<std::string> sets;
  std::string what;
};

/// A setting that may be changed: from any of `from` (JSON texts) to `to`.
struct Rule {
  const char* pointer;
  std::vector<const char*> from;
  const char* to;
  const char* what;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {
      {"/allocator/expandable_segments", {"false"}, "true", "expandable segments"},
      {"/policy/limit_all_gathers", {"false"}, "true", "limiter of all-gathers on"},
      {"/policy/no_sync", {"true"}, "false", "reduce gradients in every micro-batch"},
      {"/kernels/loss", {"\"eager_fp32\""}, "fused", "fused loss"},
      {"/policy/sharding", {"\"SHARD_GRAD_OP\"", "\"NO_SHARD\"", "\"HYBRID_SHARD\"", "\"_HYBRID_SHARD_ZERO2\""}, "FULL_SHARD", "FULL_SHARD"},
      {"/policy/reshard_after_forward", {"false"}, "true", "reshard after the forward"},
      {"/recompute/mode", {"\"none\"", "\"every_k\"", "\"share\"", "\"per_op\""}, "full", "recompute all blocks"},
  };
  return kRules;
}

std::vector<Change> single_settings(const OrderedJson& scenario) {
  std::vector<Change> changes;
  for (const Rule& rule : rules()) {
    const OrderedJson::json_pointer pointer(rule.pointer);
    if (!scenario.contains(pointer)) continue;
    const std::string now = scenario[pointer].dump();
    const bool applies = std::any_of(rule.from.begin(), rule.from.end(), [&](const char* value) { return now == value; });
    if (applies) changes.push_back({{std::string(rule.pointer) + "=" + rule.to}, rule.what});
  }
  return changes;
}

/// Half the micro-batch and twice the accumulation, a quarter and four times ... (a third where the number is odd): the same tokens per step.
std::vector<Change> smaller_batches(const scenarios::Scenario& scenario) {
  std::vector<Change> changes;
  std::int64_t micro_batch = scenario.batch.micro_batch, accumulation = scenario.batch.grad_accum;
  for (std::int64_t divisor = 2; micro_batch > 1;) {
    if (divisor * divisor > micro_batch) divisor = micro_batch;  // a prime is left
    if (micro_batch % divisor != 0) {
      ++divisor;
      continue;
    }
    micro_batch /= divisor;
    accumulation *= divisor;
    if (micro_batch > 1) divisor = 2;
    changes.push_back({{fmt::format("/batch/micro_batch={}", micro_batch), fmt::format("/batch/grad_accum={}", accumulation)},
                       fmt::format("micro-batch of {}, accumulated {} times", micro_batch, accumulation)});
  }
  return changes;
}

Change more_nodes(const scenarios::Scenario& scenario) {
  return {{fmt::format("/cluster/nodes={}", 2 * scenario.cluster.nodes)}, fmt::format("{} nodes", 2 * scenario.cluster.nodes)};
}

/// All ranks alike, so that one stands for them: the search asks whether it fits, not how ranks differ.
scenarios::Scenario folded(scenarios::Scenario scenario) {
  scenario.run.ranks = scenarios::Ranks::folded;
  scenario.run.jitter = {};
  scenario.run.slow_ranks.clear();
  scenario.loader.batch_time_spread = 0;
  scenario.host.gc_synchronised = scenario.host.gc_period.si() > 0;
  return scenario;
}

Remedy tried(const std::string& scenario, const std::string& name, const Change& change) {
  Remedy remedy{change.sets, change.what, "ok"};
  try {
    const Report report = predict(scenarios::read_scenario_text(scenario, name, change.sets)).report;
    remedy.outcome = report.outcome;
    remedy.step_time_s = report.step_time_s;
    remedy.tokens_per_s_per_gpu = report.tokens_per_s_per_gpu;
    remedy.peak_reserved_bytes = report.peak_reserved_bytes;
    remedy.headroom_bytes = report.memory_limit_bytes - report.peak_reserved_bytes;
    remedy.retries_per_step = report.retries_per_step.empty() ? 0 : report.retries_per_step.back();
  } catch (const InputError& error) {
    remedy.outcome = error.what();  // a combination that isn't supported
  }
  return remedy;
}

bool fits(const std::vector<Remedy>& remedies) {
  return std::any_of(remedies.begin(), remedies.end(), [](const Remedy& r) { return r.outcome == "ok"; });
}

Change both(const Change& a, const Change& b) {
  Change change{a.sets, a.what + " and " + b.what};
  change.sets.insert(change.sets.end(), b.sets.begin(), b.sets.end());
  return change;
}

}  // namespace

std::vector<Remedy> remedies(const scenarios::Scenario& scenario) {
  const OrderedJson resolved = scenarios::to_json(folded(scenario));
  const std::string text = resolved.dump(), name = scenario.name;
  std::vector<Change> changes = single_settings(resolved);
  std::vector<Remedy> results;
  for (const Change& change : changes) results.push_back(tried(text, name, change));
  for (const Change& change : smaller_batches(scenario)) {
    Remedy remedy = tried(text, name, change);
    const bool last = remedy.outcome == "ok" || change.sets.front() == "/batch/micro_batch=1";
    if (!last) continue;  // only the largest that fits, or the smallest there is
    results.push_back(std::move(remedy));
    changes.push_back(change);
    break;
  }
  changes.push_back(more_nodes(scenario));
  results.push_back(tried(text, name, changes.back()));
  if (fits(results)) return results;
  for (std::size_t a = 0; a < changes.size(); ++a) {
    for (std::size_t b = a + 1; b < changes.size(); ++b) {
      Remedy remedy = tried(text, name, both(changes[a], changes[b]));
      if (remedy.outcome == "ok") results.push_back(std::move(remedy));
    }
  }
  if (fits(results) || changes.size() < 3) return results;
  Change all = changes.front();
  for (std::size_t i = 1; i < changes.size(); ++i) all = both(all, changes[i]);
  if (Remedy remedy = tried(text, name, all); remedy.outcome == "ok") results.push_back(std::move(remedy));
  return results;
}

}  // namespace stepcast::cli
