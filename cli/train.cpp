// `stepcast train`: runs a scenario's steps for real. docs/real_backend.md; test: tests/golden/train_cli_test.cpp.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/load.hpp"
#include "cli/output_folder.hpp"
#include "cli/page/run_page.hpp"
#include "cli/train/run.hpp"
#include "hw_models/input_error.hpp"
#include "trace/chrome_writer.hpp"

namespace stepcast::cli {
namespace {

struct TrainCommand {
  ScenarioChoice choice;
  OutputChoice output;
  TrainOptions train;
  std::int32_t ranks = 0;  // 0: the scenario's
};

const std::vector<std::string>& names() {
  static const std::vector<std::string> kNames = {"report.json", "report.txt", kPageFile, "trace.json.gz"};
  return kNames;
}

void write_files(const Trained& trained, const OutputChoice& output) {
  OutputFolder out(output.folder, names(), output.force);
  out.stage("report.json", to_json(trained).dump(2) + "\n");
  out.stage("report.txt", to_text(trained));
  if (!trained.failures.empty()) return out.publish();
  stage_page(page_of(trained.measured), out);
  trace::write_chrome_gz(trained.measured.result.trace, out.staged_path("trace.json.gz").string());
  out.publish();
}

/// Only native kernels can be run, so the choice is made here; what does not go with them is refused by its name.
Exit run(TrainCommand options) {
  options.choice.changes.sets.emplace_back("/kernels/set=native");
  if (options.ranks > 0) {
    options.choice.changes.sets.emplace_back("/cluster/nodes=1");
    options.choice.changes.sets.push_back("/cluster/gpus_per_node=" + std::to_string(options.ranks));
  }
  const Loaded loaded = load(options.choice);
  if (!options.output.folder.empty()) OutputFolder(options.output.folder, names(), options.output.force);
  const Trained trained = train(loaded.scenario, options.train);
  for (const std::string& failure : trained.failures) std::fprintf(stderr, "stepcast: %s\n", failure.c_str());
  if (!options.output.folder.empty()) write_files(trained, options.output);
  print(options.output.json ? to_json(trained).dump(2) + "\n" : to_text(trained));
  if (trained.failures.empty()) return Exit::ok;
  return trained.measured.report.outcome == "out_of_memory" ? Exit::out_of_memory : Exit::failure;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<TrainCommand>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("train", "Run a scenario's steps for real, and measure them");
  options->choice.add_to(*command);
  command->add_option("--device", options->train.device, "What to run on: host, the processors of this machine, or cuda, its GPUs, one rank on each")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"host", "cuda"}));
  command->add_option("--ranks", options->ranks, "Ranks, as one node, in place of the scenario's cluster")->type_name("N")->check(CLI::Range(1, 64));
  command->add_flag("--closed-form", options->train.closed_form, "Weights and tokens from the formulas of docs/real_backend.md");
  command->add_option("--deadline", options->train.deadline_s, "Seconds without the end of a kernel after which the job ends")
      ->type_name("SECONDS")
      ->check(number_between(0.1, 1e6));
  options->output.add_json(*command);
  options->output.add_folder(*command);
  command->footer(
      "Examples:\n  stepcast train tiny.json --ranks 2\n  stepcast train tiny.json --closed-form --set /run/steps=6 --set /precision/param=fp64 \\\n"
      "    --set /precision/reduce=fp64 --set /precision/master=fp64 --json");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace stepcast::cli
