// Rules of what makes ranks and steps differ: loader, pauses of the host, jitter, slow ranks. See validate.hpp.
#include <fmt/format.h>

#include <set>

#include "scenarios/judge.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/validate.hpp"

namespace stepcast::scenarios {
namespace {

void validate(const Loader& loader, const Judge& judge) {
  judge.require(loader.batch_time_spread == 0 || loader.batch_time.si() > 0, "/loader/batch_time_spread", "spreads a batch time of zero",
                "set /loader/batch_time");
}

constexpr double kShortestPeriod = 1e-3;  // s; keeps the number of pauses in a run small

/// Pauses need a distance and a length, and the one has to be longer than the other.
void validate_pauses(Seconds period, Seconds length, const char* period_key, const char* length_key, const Judge& judge) {
  judge.require(period.si() == 0 || length.si() > 0, length_key, "is missing", fmt::format("{} asks for pauses", period_key));
  judge.require(length.si() == 0 || period.si() > 0, period_key, "is missing", fmt::format("{} asks for pauses", length_key));
  judge.require(period.si() == 0 || period.si() >= kShortestPeriod, period_key, "must be at least 1 ms");
  judge.require(length.si() == 0 || length < period, length_key, fmt::format("must be below {}", period_key));
}

void validate(const Host& host, const Judge& judge) {
  judge.require(host.cuda_device_max_connections == 1 || host.cuda_device_max_connections >= 8, "/host/cuda_device_max_connections",
                "between 2 and 7 is not supported yet", "1: one queue for all streams; from 8 on: one for each");
  validate_pauses(host.gc_period, host.gc_pause, "/host/gc_period", "/host/gc_pause", judge);
  judge.require(!host.gc_synchronised || host.gc_period.si() > 0, "/host/gc_synchronised", "has no collections to synchronise",
                "set /host/gc_period and /host/gc_pause");
}

void validate_slow_ranks(const Scenario& scenario, const Judge& judge) {
  const char* key = "/run/slow_ranks";
  std::set<std::int32_t> seen;
  for (const SlowRank& slow : scenario.run.slow_ranks) {
    judge.require(slow.rank < ranks(scenario), key, fmt::format("rank {} is not among the {} ranks", slow.rank, ranks(scenario)));
    judge.require(seen.insert(slow.rank).second, key, fmt::format("names rank {} twice", slow.rank));
    judge.require(slow.nic_scale == 1 || scenario.cluster.nodes > 1, key, "nic_scale has no effect: one node sends nothing over its adapters");
    judge.require(slow.nic_scale == 1 || !scenario.fixed_costs, key, "nic_scale has no effect on fixed costs");
  }
}

void validate_traced_ranks(const Scenario& scenario, const Judge& judge) {
  const char* key = "/run/traced_ranks";
  if (scenario.run.traced_ranks == Run{}.traced_ranks) return;
  judge.require(scenario.run.ranks == Ranks::explicit_ranks, key, "has no effect: one folded rank stands for all, and is traced", "use /run/ranks=explicit");
  judge.require(scenario.run.traced_ranks <= ranks(scenario), key, fmt::format("is more than the {} ranks", ranks(scenario)));
  judge.require(
      traced_ranks(scenario) == scenario.run.traced_ranks, key,
      fmt::format("{} ranks are too many to trace: active * layers * grad_accum * traced_ranks is above {}", scenario.run.traced_ranks, kMaxTracedUnitPasses),
      fmt::format("{} ranks fit", traced_ranks(scenario)));
}

/// One rank that stands for all can't differ from them.
void validate_folded(const Scenario& scenario, const Judge& judge) {
  if (scenario.run.ranks == Ranks::explicit_ranks || ranks(scenario) == 1) return;
  const bool slow = !scenario.run.slow_ranks.empty();
  judge.require(
      !slow && !is_random(scenario), "/run/ranks",
      fmt::format("\"folded\" lets one rank stand for all, and {}", slow ? "/run/slow_ranks makes some slower" : "random draws differ from rank to rank"),
      "use \"explicit\"");
}

/// Fixed costs are for schedules that can be worked out by hand: nothing is loaded, and nothing varies.
void validate_fixed_costs(const Scenario& scenario, const Judge& judge) {
  if (!scenario.fixed_costs) return;
  judge.require(scenario.loader == Loader{}, "/loader", "has no effect on fixed costs, where no data is loaded");
  judge.require(scenario.run.jitter == Jitter{}, "/run/jitter", "does not go with fixed costs");
  judge.require(scenario.host.gc_period.si() == 0, "/host/gc_period", "does not go with fixed costs");
}

}  // namespace

void validate_variation(const Scenario& scenario, const Judge& judge) {
  validate(scenario.loader, judge);
  validate(scenario.host, judge);
  validate_pauses(scenario.run.jitter.pause_period, scenario.run.jitter.pause, "/run/jitter/pause_period", "/run/jitter/pause", judge);
  validate_slow_ranks(scenario, judge);
  validate_traced_ranks(scenario, judge);
  validate_folded(scenario, judge);
  validate_fixed_costs(scenario, judge);
}

}  // namespace stepcast::scenarios
