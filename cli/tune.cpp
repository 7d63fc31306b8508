// `stepcast tune`: the fastest settings that leave the mathematics alone. docs/tune.md; test: tests/golden/tune_cli_test.cpp.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.hpp"
#include "cli/load.hpp"
#include "cli/output_folder.hpp"
#include "cli/page/tune_page.hpp"
#include "cli/progress.hpp"
#include "cli/report/tune.hpp"
#include "cli/tune/run.hpp"
#include "cli/tune/scale.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

struct TuneOptions {
  ScenarioChoice choice;
  OutputChoice output;
  TuneSettings settings;
  std::vector<std::int64_t> nodes;
};

/// The same choice with another number of nodes on top of its other changes.
OnNodes on_nodes(const ScenarioChoice& choice) {
  return [choice](std::int64_t nodes) {
    ScenarioChoice other = choice;
    other.changes.sets.push_back("/cluster/nodes=" + std::to_string(nodes));
    return load_template(other).scenario;
  };
}

/// Settings of the search with the scenario's global batch where none is given, so that it is the same on every cluster.
TuneSettings at_one_batch(const scenarios::ScenarioTemplate& scenario, TuneSettings settings) {
  const scenarios::Scenario base = scenario.with({});
  if (settings.space.global_batch == 0) settings.space.global_batch = base.batch.micro_batch * base.batch.grad_accum * scenarios::ranks(base);
  return settings;
}

/// File ending of each text to paste.
std::string file_of(const std::string& name) {
  if (name == "fsdp1" || name == "fsdp2") return name + ".py";
  if (name == "torchtitan") return name + ".toml";
  if (name == "deepspeed") return name + ".json";
  return name == "environment" ? name + ".sh" : name + ".yaml";
}

Exit tune(TuneOptions options) {
  const LoadedTemplate loaded = load_template(options.choice);
  for (const std::string& warning : loaded.warnings) std::fprintf(stderr, "stepcast: %s\n", warning.c_str());
  std::unique_ptr<OutputFolder> folder;
  if (!options.output.folder.empty())
    folder = std::make_unique<OutputFolder>(options.output.folder, std::vector<std::string>{"report.json", "report.txt", kPageFile}, options.output.force);
  if (options.settings.threads == 0) options.settings.threads = std::max(1u, std::thread::hardware_concurrency());
  options.settings.progress = open_progress("tune");
  TuneResult result = tuned(loaded.scenario, options.settings);
  result.scale = best_by_nodes(on_nodes(options.choice), options.nodes, at_one_batch(loaded.scenario, options.settings));
  const std::string json = to_json(result).dump(2) + "\n", text = to_text(result);
  if (folder) {
    folder->stage("report.json", json);
    folder->stage("report.txt", text);
    stage_page(tune_page(result), *folder);
    for (const auto& [name, lines] : result.settings) folder->stage(file_of(name), lines);
    folder->publish();
  }
  print(options.output.json ? json : text);
  return result.best.empty() ? Exit::out_of_memory : Exit::ok;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand("tune", "The fastest settings under the memory limit, what each gains, and how to write them down");
  options->choice.add_to(*command);
  options->output.add_json(*command);
  command->add_option("--global-batch", options->settings.space.global_batch, "Sequences per optimizer step of all GPUs (as the scenario has)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30));
  command->add_option("--nodes", options->nodes, "Also the best on these numbers of nodes, at the same global batch: 1,2,4")
      ->type_name("N,N")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--fix", options->settings.space.fixed, "A setting that stays as it is, e.g. --fix /policy/framework (may be repeated)")
      ->type_name("/POINTER")
      ->allow_extra_args(false);
  command->add_option("--tolerance", options->settings.tolerance, "Points are left out that gain less than this share (0)")
      ->type_name("SHARE")
      ->check(number_between(0.0, 0.5));
  command->add_option("--simulations", options->settings.simulations, "About as many simulations at most (no limit)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30));
  command->add_option("--threads", options->settings.threads, "Threads (as many as the machine has)")->type_name("N")->check(CLI::Range(1, 1024));
  command->add_option("--out", options->output.folder, "Write report.json, report.txt, report.html and a file for each framework into this folder")
      ->type_name("DIR");
  command->add_flag("--force", options->output.force, "With --out: replace files that stepcast did not write");
  command->footer(
      "Examples:\n  stepcast tune 7b-32xa100\n  stepcast tune 7b-32xa100 --global-batch 256 --fix /kernels/set --out out\n"
      "  stepcast tune --model config.json --cluster dgx-a100-4 --json");
  command->callback([options, &action] { action = [options] { return tune(*options); }; });
}

}  // namespace stepcast::cli
