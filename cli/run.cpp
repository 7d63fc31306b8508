// `stepcast run`: predicts one scenario. docs/commands.md; test: tests/golden/cli_test.cpp.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/load.hpp"
#include "cli/out_of_memory.hpp"
#include "cli/predict.hpp"
#include "cli/publish.hpp"
#include "cli/report/text.hpp"

namespace stepcast::cli {
namespace {

struct Options {
  ScenarioChoice choice;
  OutputChoice output;
};

Exit exit_of(const Report& report) {
  if (report.outcome == "ok") return Exit::ok;
  return report.outcome == "out_of_memory" ? Exit::out_of_memory : Exit::check_failed;
}

Exit run(const Options& options) {
  Loaded loaded = load(options.choice);
  if (!options.output.folder.empty()) check_folder(options.output.folder, options.output.force);
  Prediction prediction = predict(loaded.scenario, std::move(loaded.warnings));
  if (prediction.report.outcome == "out_of_memory") prediction.report.out_of_memory.remedies = remedies(prediction.scenario);
  if (!options.output.folder.empty()) {
    publish(prediction, options.output.folder, options.output.force);
    std::fprintf(stderr, "stepcast: wrote the report%s to %s\n", prediction.report.outcome == "ok" ? " and the trace" : "", options.output.folder.c_str());
  }
  print(options.output.json ? json_of(prediction).dump(2) + "\n" : to_text(prediction.report));
  return exit_of(prediction.report);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("run", "Predict step time, MFU, memory and what bounds the step");
  options->choice.add_to(*command);
  options->output.add_json(*command);
  options->output.add_folder(*command);
  command->footer(
      "Examples:\n  stepcast run 7b-32xa100\n  stepcast run my.json --set /batch/micro_batch=4 --json\n"
      "  stepcast run --model config.json --cluster dgx-a100-4 --out out");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace stepcast::cli
