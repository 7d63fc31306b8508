// `stepcast run`: predicts one scenario. docs/commands.md; test: tests/golden/cli_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cli/command.hpp"
#include "cli/interval.hpp"
#include "cli/load.hpp"
#include "cli/out_of_memory.hpp"
#include "cli/predict.hpp"
#include "cli/publish.hpp"
#include "cli/report/text.hpp"
#include "cli/run/extras.hpp"
#include "cli/validate/parallel.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

struct RunOptions {
  ScenarioChoice choice;
  OutputChoice output;
  std::int64_t seeds = 1, interval = 0;
  bool explain = false, roofline = false, must_be_true = false;
  CostQuestion cost;
  std::optional<double> exposed_below, target_mfu;
  std::vector<std::int64_t> scaling;  // numbers of nodes
};

unsigned all_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

Exit exit_of(const Report& report) {
  if (report.outcome == "ok") return Exit::ok;
  return report.outcome == "out_of_memory" ? Exit::out_of_memory : Exit::check_failed;
}

/// Forecasts of the seeds behind the first, for the spread between them.
void run_seeds(const scenarios::Scenario& scenario, std::int64_t count, Report& report) {
  if (!scenarios::is_random(scenario))
    throw InputError("command line", "", "--seeds: nothing is drawn in this scenario, all seeds give the same",
                     "set /run/jitter, /host/gc_period or /loader/batch_time_spread");
  SeedsRow& seeds = report.seeds;
  seeds.first = scenario.run.seed;
  seeds.step_times_s.assign(static_cast<std::size_t>(count), report.step_time_s);
  for_each_index(seeds.step_times_s.size() - 1, all_threads(), [&](std::size_t i) {
    scenarios::Scenario other = scenario;
    other.run.seed += static_cast<std::int64_t>(i) + 1;
    const Report forecast = predict(other).report;
    if (forecast.outcome != "ok")
      throw InputError("command line", "", fmt::format("--seeds: seed {} ends as {}", other.run.seed, forecast.outcome), "run that seed by itself");
    seeds.step_times_s[i + 1] = forecast.step_time_s;
  });
  for (const double time : seeds.step_times_s) seeds.mean_s += time / static_cast<double>(count);
  seeds.percentiles_s = percentiles(seeds.step_times_s);
}

std::optional<Answers> answers_of(const RunOptions& options, const Prediction& prediction) {
  if (!options.must_be_true && !options.target_mfu) {
    if (options.exposed_below) throw InputError("command line", "", "--exposed-below needs --what-must-be-true", "which asks what would hide communication");
    return std::nullopt;
  }
  QuestionSettings settings;
  settings.exposed_below = options.exposed_below.value_or(settings.exposed_below);
  settings.target_mfu = options.target_mfu.value_or(0);
  settings.threads = all_threads();
  return must_be_true(prediction.scenario, prediction.report, settings);
}

Extras extras_of(const RunOptions& options, const scenarios::ScenarioTemplate& scenario, const Prediction& prediction) {
  Extras extras;
  if (options.explain) extras.explanation = explain(prediction);
  const CostQuestion& cost = options.cost;
  if ((cost.gpu_hour_price > 0 || cost.gpu_watts > 0) && cost.tokens <= 0)
    throw InputError("command line", "", fmt::format("{} needs --train-tokens", cost.gpu_hour_price > 0 ? "--gpu-hour-price" : "--gpu-watts"),
                     "how many tokens are trained on");
  if (cost.tokens > 0 && prediction.report.outcome == "ok") extras.cost = cost_of(prediction.report, cost);
  if (options.roofline) extras.roofline = roofline(prediction.scenario);
  extras.scaling = scaling(scenario, options.scaling, all_threads());
  extras.answers = answers_of(options, prediction);
  return extras;
}

std::string output_of(const RunOptions& options, const Prediction& prediction, const Extras& extras) {
  if (!options.output.json) return to_text(prediction.report) + to_text(extras);
  nlohmann::ordered_json json = json_of(prediction);
  add_to(json, extras);
  return json.dump(2) + "\n";
}

Exit run(const RunOptions& options) {
  LoadedTemplate loaded = load_template(options.choice);
  if (!options.output.folder.empty()) check_folder(options.output.folder, options.output.force);
  Prediction prediction = predict(loaded.scenario.with({}), std::move(loaded.warnings));
  if (options.seeds > 1 && prediction.report.outcome == "ok") run_seeds(prediction.scenario, options.seeds, prediction.report);
  if (options.interval > 0 && prediction.report.outcome == "ok")
    prediction.report.interval = interval_of(prediction.scenario, options.interval, static_cast<std::uint64_t>(prediction.scenario.run.seed));
  if (prediction.report.outcome == "out_of_memory") prediction.report.out_of_memory.remedies = remedies(prediction.scenario);
  const Extras extras = extras_of(options, loaded.scenario, prediction);
  if (!options.output.folder.empty()) {
    publish(prediction, options.output.folder, options.output.force, extras);
    std::fprintf(stderr, "stepcast: wrote the report%s to %s\n", prediction.report.outcome == "ok" ? " and the trace" : "", options.output.folder.c_str());
  }
  print(output_of(options, prediction, extras));
  return exit_of(prediction.report);
}

void add_uncertainty(CLI::App& command, RunOptions& options) {
  command.add_option("--seeds", options.seeds, "Run N seeds from /run/seed on: the spread of the step time between them")
      ->type_name("N")
      ->check(CLI::Range(1, 10000));
  command.add_option("--interval", options.interval, "P10 to P90 of N forecasts with constants drawn from their spreads; /run/seed keys the draws")
      ->type_name("N")
      ->check(CLI::Range(10, 10000));
}

void add_losses_and_cost(CLI::App& command, RunOptions& options) {
  command.add_flag("--explain", options.explain, "From the device's peak to the MFU: every loss, summing to the step");
  command.add_option("--train-tokens", options.cost.tokens, "Time and GPU-hours to train on so many tokens")->type_name("N")->check(number_between(1.0, 1e18));
  command.add_option("--gpu-hour-price", options.cost.gpu_hour_price, "With --train-tokens: what it costs at this price per GPU-hour")
      ->type_name("PRICE")
      ->check(number_between(1e-6, 1e6));
  command.add_option("--gpu-watts", options.cost.gpu_watts, "With --train-tokens: energy at this mean power of a GPU with its share of the node")
      ->type_name("W")
      ->check(number_between(1.0, 1e5));
}

void add_questions(CLI::App& command, RunOptions& options) {
  command.add_flag("--roofline", options.roofline, "Each class of kernels against the device's roof, and how the micro-batch moves it");
  command.add_option("--scaling", options.scaling, "The same on these numbers of nodes, each GPU with the same batch: 1,2,4,8")
      ->type_name("N,N")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 16));
  command.add_flag("--what-must-be-true", options.must_be_true, "Bandwidths that would hide the communication; the largest micro-batch that fits");
  command.add_option("--exposed-below", options.exposed_below, "With --what-must-be-true: hidden means less than this share of the step (0.01)")
      ->type_name("SHARE")
      ->check(number_between(0.0001, 1.0));
  command.add_option("--target-mfu", options.target_mfu, "What must be true, and which single change would reach this MFU")
      ->type_name("MFU")
      ->check(number_between(0.001, 1.0));
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("run", "Predict step time, MFU, memory and what bounds the step");
  options->choice.add_to(*command);
  add_uncertainty(*command, *options);
  add_losses_and_cost(*command, *options);
  add_questions(*command, *options);
  options->output.add_json(*command);
  options->output.add_folder(*command);
  command->footer(
      "Examples:\n  stepcast run 7b-32xa100\n  stepcast run my.json --set /batch/micro_batch=4 --json\n  stepcast run 7b-32xa100 --explain\n"
      "  stepcast run 7b-32xa100 --roofline --scaling 1,2,4,8\n  stepcast run 7b-32xa100 --target-mfu 0.5\n"
      "  stepcast run --model config.json --cluster dgx-a100-4 --out out");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace stepcast::cli
