// See must_be_true.hpp.
#include "cli/run/must_be_true.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cli/run/micro_batches.hpp"
#include "cli/validate/parallel.hpp"
#include "cli/without_limit.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

/// Micro-batches above the scenario's that are tried for an MFU: up to as many times its own, and no more than so many.
constexpr std::int64_t kBatchTimes = 8, kBatchesTried = 32;

double exposed_share(const Report& report, const std::string& what) {
  double seconds = what == "communication" ? report.exposed_comm_s : 0;
  for (const CollectiveRow& row : report.collectives) {
    if (row.kind == "all_gather" && what == "all-gather") seconds += row.exposed_s;
  }
  return seconds / report.step_time_s;
}

std::vector<HiddenAnswer> what_hides(const scenarios::Scenario& scenario, const program::Program& program, const Report& now,
                                     const QuestionSettings& settings) {
  const bool gathers = std::any_of(now.collectives.begin(), now.collectives.end(), [](const CollectiveRow& row) { return row.kind == "all_gather"; });
  std::vector<HiddenAnswer> answers;
  for (const char* what : {"all-gather", "communication"}) {
    if (what == std::string("all-gather") && !gathers) continue;
    for (const Lever& lever : links(scenario)) {
      HiddenAnswer answer{what, lever.name, exposed_share(now, what), 0, {}};
      answer.crossing =
          first_crossing([&](double factor) { return pulled(scenario, program, lever, factor); },
                         [&](const Report& report) { return exposed_share(report, what) < settings.exposed_below; }, kSmallestFactor, settings.threads);
      answer.share_then = exposed_share(answer.crossing.at, what);
      answers.push_back(std::move(answer));
    }
  }
  return answers;
}

Report forecast_of(const scenarios::Scenario& scenario) { return forecast(scenario, program_of(scenario)); }

/// Doubles until it no longer fits, then halves the interval: more sequences never need less memory in total, but an allocator may be lucky, so what is told is a micro-batch that fits
/// whose successor does not.
BatchAnswer largest_that_fits(const scenarios::Scenario& scenario) {
  const std::int64_t most = most_sequences(scenario);
  BatchAnswer answer;
  std::int64_t fits = 0, too_large = most + 1;
  const auto try_it = [&](std::int64_t micro_batch) {
    Report report = forecast_of(with_batch(scenario, micro_batch));
    if (report.outcome != "ok") too_large = micro_batch;
    else std::tie(fits, answer.report) = std::pair(micro_batch, std::move(report));
  };
  for (std::int64_t next = 1; next < too_large; next = std::min(2 * next, most)) {
    try_it(next);
    if (next == most) break;
  }
  while (too_large - fits > 1) try_it(fits + (too_large - fits) / 2);
  answer.micro_batch = fits;
  if (too_large > most) return answer;
  const scenarios::Scenario more = with_batch(scenario, too_large);
  const program::Program program = program_of(more);
  answer.missing_bytes = missing_bytes(more, program, forecast(more, program));
  return answer;
}

bool reaches(const Report& report, double mfu) { return report.outcome == "ok" && report.mfu >= mfu; }

/// What a micro-batch gives if it fits, and else on a device on which it would.
TargetBatchAnswer tried_batch(const scenarios::Scenario& scenario) {
  const program::Program program = program_of(scenario);
  TargetBatchAnswer answer{scenario.batch.micro_batch, 0, forecast(scenario, program)};
  if (answer.report.outcome != "out_of_memory") return answer;
  answer.missing_bytes = missing_bytes(scenario, program, answer.report);
  answer.report = without_memory_limit(scenario, program);
  return answer;
}

TargetBatchAnswer batch_for(const scenarios::Scenario& scenario, const QuestionSettings& settings) {
  const std::int64_t now = scenario.batch.micro_batch;
  const std::int64_t last = std::min({kBatchTimes * now, now + kBatchesTried, most_sequences(scenario)});
  std::vector<TargetBatchAnswer> answers(static_cast<std::size_t>(std::max<std::int64_t>(0, last - now)));
  for_each_index(answers.size(), settings.threads,
                 [&](std::size_t i) { answers[i] = tried_batch(with_batch(scenario, now + 1 + static_cast<std::int64_t>(i))); });
  for (TargetBatchAnswer& answer : answers) {
    answer.tried_to = last;
    if (reaches(answer.report, settings.target_mfu)) return answer;
  }
  const auto best = std::max_element(answers.begin(), answers.end(), [](const auto& a, const auto& b) { return a.report.mfu < b.report.mfu; });
  return {0, last, best == answers.end() ? Report{} : best->report};
}

void aim(const scenarios::Scenario& scenario, const program::Program& program, Answers& answers) {
  const double wanted = answers.asked.target_mfu;
  if (wanted <= answers.mfu_now) return;
  std::vector<Lever> levers = links(scenario);
  levers.push_back(host_speed());
  for (const Lever& lever : levers)
    answers.target.push_back({lever.name, first_crossing([&](double factor) { return pulled(scenario, program, lever, factor); },
                                                         [&](const Report& report) { return reaches(report, wanted); }, 1, answers.asked.threads)});
  answers.target_batch = batch_for(scenario, answers.asked);
}

}  // namespace

Answers must_be_true(const scenarios::Scenario& scenario, const Report& now, const QuestionSettings& settings) {
  if (scenario.fixed_costs) throw InputError(scenario.name, "/fixed_costs", "fixed costs don't depend on bandwidth and memory");
  const program::Program program = program_of(scenario);
  Answers answers{settings, now.outcome == "ok", now.mfu, {}, largest_that_fits(scenario), {}, {}};
  if (!answers.ran) return answers;
  answers.hidden = what_hides(scenario, program, now, settings);
  if (settings.target_mfu > 0) aim(scenario, program, answers);
  return answers;
}

}  // namespace stepcast::cli
