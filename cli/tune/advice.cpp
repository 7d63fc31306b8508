// See advice.hpp.
#include "cli/tune/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "cli/predict.hpp"
#include "cli/report/table.hpp"
#include "cli/validate/parallel.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

using Sets = std::vector<std::string>;

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The report of some sets; nothing where the rules refuse them.
std::optional<Report> tried(const TuneProblem& problem, const Sets& sets) {
  try {
    return whole_step(problem.scenario().with(sets));
  } catch (const InputError&) { return std::nullopt; }
}

double time_or_never(const std::optional<Report>& report) { return report && report->outcome == "ok" ? report->step_time_s : kNever; }

Sets joined(Sets a, const Sets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct NamedSets {
  std::string words;
  Sets sets;
};

/// The winner's choices one by one, those that change nothing left out. What belongs to a framework goes with it where the framework itself changes.
std::vector<NamedSets> changes_to(const TuneProblem& problem, const planner::Evaluated& winner) {
  const auto resolved = [&](const Sets& sets) -> std::optional<scenarios::Scenario> {
    try {
      return problem.scenario().with(sets);
    } catch (const InputError&) { return std::nullopt; }
  };
  const auto base = resolved({});
  const bool same_framework = resolved(problem.sets(winner))->policy.framework == base->policy.framework;
  std::vector<NamedSets> changes;
  NamedSets framework{problem.family(winner).framework, {"/policy=null", "/policy/framework=" + problem.family(winner).framework}};
  for (const planner::Option* choice : problem.choices(winner)) {
    const bool policy = choice->sets.front().starts_with("/policy/");
    if (policy && !same_framework) {
      framework.words += ", " + choice->words;
      framework.sets = joined(framework.sets, choice->sets);
    } else if (const auto with = resolved(choice->sets); !with || !(*with == *base)) {
      changes.push_back({choice->words, choice->sets});
    }
  }
  if (!same_framework) changes.push_back(std::move(framework));
  return changes;
}

/// The chain of an optimisation: does it fit; then what the step waits for.
std::pair<std::string, std::string> question(const std::optional<Report>& now) {
  if (!now) return {"Can it be run?", "no: the settings don't go together"};
  if (now->outcome == "out_of_memory")
    return {
        "Does it fit?",
        fmt::format("no: {} asked for {} with {} of {} reserved", now->out_of_memory.buffer, size_text(static_cast<double>(now->out_of_memory.requested_bytes)),
                    size_text(static_cast<double>(now->out_of_memory.reserved_bytes)), size_text(static_cast<double>(now->out_of_memory.limit_bytes)))};
  if (now->outcome != "ok") return {"Does it run?", "no: " + now->outcome};
  const std::pair<const char*, const char*> asked[] = {{"communication", "Is it bound by communication?"},
                                                       {"host", "Is it bound by launches?"},
                                                       {"data", "Is it starved of data?"},
                                                       {"memory", "Does the allocator hold it up?"}};
  for (const auto& [bound, text] : asked) {
    if (now->bound == bound) return {text, "yes: " + now->bound_reason};
  }
  return {"Is it bound by compute?", "yes: " + now->bound_reason};
}

Decision decision(const std::optional<Report>& before, const NamedSets& change, const std::optional<Report>& after) {
  Decision d;
  std::tie(d.question, d.answer) = question(before);
  d.change = change.words;
  d.sets = change.sets;
  d.outcome = after ? after->outcome : "refused";
  if (d.outcome != "ok") return d;
  d.step_time_s = after->step_time_s;
  d.mfu = after->mfu;
  if (time_or_never(before) < kNever) d.gain = 1 - after->step_time_s / before->step_time_s;
  return d;
}

/// NIC or NVLink rate a tenth higher, by the constants of the cluster in use.
std::optional<std::string> faster(const scenarios::Scenario& scenario, const char* constant, double factor) {
  const hw::Cluster cluster = scenarios::hardware(scenario);
  const auto found = cluster.node.constants.find(constant);
  if (found == cluster.node.constants.end()) return std::nullopt;
  return fmt::format("/cluster/{}={:.0f} B/s", constant, found->second.value * factor);
}

}  // namespace

std::vector<Decision> decide(const TuneProblem& problem, const planner::Evaluated& winner, unsigned threads) {
  std::vector<NamedSets> open = changes_to(problem, winner);
  std::vector<Decision> decisions;
  Sets taken;
  std::optional<Report> now = tried(problem, {});
  while (!open.empty()) {
    std::vector<std::optional<Report>> after(open.size());
    for_each_index(open.size(), threads, [&](std::size_t i) { after[i] = tried(problem, joined(taken, open[i].sets)); });
    const auto best = std::min_element(after.begin(), after.end(), [](const auto& a, const auto& b) { return time_or_never(a) < time_or_never(b); });
    auto chosen = static_cast<std::size_t>(best - after.begin());
    if (time_or_never(*best) >= time_or_never(now) && open.size() > 1) {  // none helps by itself: the rest together
      NamedSets rest = open.front();
      for (std::size_t i = 1; i < open.size(); ++i) rest = {rest.words + ", " + open[i].words, joined(rest.sets, open[i].sets)};
      open = {rest};
      after = {tried(problem, joined(taken, rest.sets))};
      chosen = 0;
    }
    decisions.push_back(decision(now, open[chosen], after[chosen]));
    taken = joined(taken, open[chosen].sets);
    now = after[chosen];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return decisions;
}

std::vector<Elasticity> elasticities(const TuneProblem& problem, const planner::Evaluated& winner, double step_time_s) {
  constexpr double kMore = 1.1;
  const Sets sets = problem.sets(winner);
  const scenarios::Scenario scenario = problem.scenario().with(sets);
  std::vector<Elasticity> found;
  const auto ask = [&](const std::string& what, const std::string& set, double factor) {
    const std::optional<Report> report = tried(problem, joined(sets, {set}));
    if (time_or_never(report) < kNever) found.push_back({what, {set}, report->step_time_s, std::log(report->step_time_s / step_time_s) / std::log(factor)});
  };
  if (scenario.cluster.nodes > 1) {
    if (const auto set = faster(scenario, "nic_rate", kMore)) ask("bandwidth between nodes", *set, kMore);
  }
  if (scenario.cluster.gpus_per_node > 1) {
    if (const auto set = faster(scenario, "nvlink_rate", kMore)) ask("bandwidth of NVLink", *set, kMore);
  }
  ask("speed of the host", fmt::format("/host/scale={:.6g}", scenario.host.scale / kMore), kMore);
  if (scenario.batch.grad_accum % 2 == 0) {
    const Sets twice = {fmt::format("/cluster/nodes={}", 2 * scenario.cluster.nodes), fmt::format("/batch/grad_accum={}", scenario.batch.grad_accum / 2)};
    const std::optional<Report> report = tried(problem, joined(sets, twice));
    if (time_or_never(report) < kNever)
      found.push_back({"GPUs, for the same global batch", twice, report->step_time_s, std::log(report->step_time_s / step_time_s) / std::log(2.0)});
  }
  return found;
}

std::vector<Trial> robustness(const TuneProblem& problem, const std::vector<planner::Evaluated>& leaders, unsigned threads) {
  const scenarios::Scenario scenario = problem.scenario().with(problem.sets(leaders.front()));
  std::vector<std::pair<std::string, Sets>> assumptions;
  for (const auto& [constant, words] : {std::pair{"nic_rate", "network"}, {"nvlink_rate", "NVLink"}}) {
    for (const auto& [factor, how] : {std::pair{0.8, "a fifth slower"}, {1.25, "a quarter faster"}}) {
      if (const auto set = faster(scenario, constant, factor)) assumptions.push_back({fmt::format("{} {}", words, how), {*set}});
    }
  }
  assumptions.push_back({"host a third slower", {fmt::format("/host/scale={:.6g}", scenario.host.scale * 4 / 3)}});
  std::vector<std::vector<double>> times(assumptions.size(), std::vector<double>(leaders.size(), kNever));
  for_each_index(assumptions.size() * leaders.size(), threads, [&](std::size_t i) {
    const std::size_t a = i / leaders.size(), l = i % leaders.size();
    times[a][l] = time_or_never(tried(problem, joined(problem.sets(leaders[l]), assumptions[a].second)));
  });
  std::vector<Trial> trials;
  for (std::size_t a = 0; a < assumptions.size(); ++a) {
    const double fastest = *std::min_element(times[a].begin(), times[a].end());
    if (fastest == kNever) continue;  // the cluster has no such link
    trials.push_back({assumptions[a].first, times[a].front() <= fastest, times[a].front() / fastest - 1});
  }
  return trials;
}

}  // namespace stepcast::cli
