// `stepcast train`: runs a scenario's steps for real. docs/real_backend.md; test: tests/golden/train_cli_test.cpp.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/load.hpp"
#include "cli/output_folder.hpp"
#include "cli/page/run_page.hpp"
#include "cli/train/process.hpp"
#include "cli/train/run.hpp"
#include "hw_models/input_error.hpp"
#include "real_backend/launch/link.hpp"
#include "real_backend/launch/tcp_peers.hpp"
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

void tell(const Trained& trained, const OutputChoice& output) {
  for (const std::string& failure : trained.failures) std::fprintf(stderr, "stepcast: %s\n", failure.c_str());
  if (!output.folder.empty()) write_files(trained, output);
  print(output.json ? to_json(trained).dump(2) + "\n" : to_text(trained));
}

/// Only native kernels can be run, so the choice is made here; what does not go with them is refused by its name. Of several processes the first one speaks for all.
Exit run(TrainCommand options) {
  options.choice.changes.sets.emplace_back("/kernels/set=native");
  if (options.ranks > 0) {
    options.choice.changes.sets.emplace_back("/cluster/nodes=1");
    options.choice.changes.sets.push_back("/cluster/gpus_per_node=" + std::to_string(options.ranks));
  }
  const bool first = options.train.process == nullptr || options.train.process->peers->rank() == 0;
  const Loaded loaded = load(options.choice);
  if (first && !options.output.folder.empty()) OutputFolder(options.output.folder, names(), options.output.force);
  const Trained trained = train(loaded.scenario, options.train);
  if (!first) return Exit::ok;
  tell(trained, options.output);
  if (trained.failures.empty()) return Exit::ok;
  return trained.measured.report.outcome == "out_of_memory" ? Exit::out_of_memory : Exit::failure;
}

/// Another process than the first: what goes wrong is told to the first one, which says how it all ends.
int follow(const TrainCommand& options) {
  constexpr double kReport = 60;  // seconds for the first process to write its files
  real::Peers& peers = *options.train.process->peers;
  const std::string who = "rank " + std::to_string(peers.rank());
  try {
    run(options);
  } catch (const real::JobEnded& ended) { return ended.exit_code; } catch (const std::exception& error) {
    real::tell_failure(peers, who + ": " + error.what());
  }
  const int code = real::wait_for_end(peers, options.train.deadline_s + kReport);
  if (code >= 0) return code;
  std::fprintf(stderr, "stepcast: %s: rank 0 is gone, or does not answer\n", who.c_str());
  return static_cast<int>(Exit::failure);
}

int lead(const TrainCommand& options) {
  int code = 0;
  try {
    code = static_cast<int>(run(options));
  } catch (...) { code = static_cast<int>(complain_of(std::current_exception())); }
  real::end_all(*options.train.process->peers, code);
  return code;
}

/// A launcher that loses a process asks the others to end; the first keeps what there is.
Exit run_as_one_of(TrainProcess& process, TrainCommand options) {
  options.train.process = &process;
  const bool first = process.peers->rank() == 0;
  if (first) options.train.ended_by = [&process] { return process.interrupts->cause(); };
  const int code = first ? lead(options) : follow(options);
  if (code != 0) process.peers->abort(code);
  return static_cast<Exit>(code);
}

Exit run_or_join(const TrainCommand& options) {
  try {
    std::optional<TrainProcess> process = open_process(options.train.device == "host", options.train.deadline_s, std::getenv);
    if (process) return run_as_one_of(*process, options);
  } catch (const real::NotMet&) { throw; } catch (const InputError&) {
    if (speaks(std::getenv)) throw;
    return Exit::bad_input;
  }
  return run(options);
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
  command->add_option("--trace-ranks", options->train.traced_ranks, "Ranks in the trace, from the first on (1)")->type_name("N")->check(CLI::Range(1, 1024));
  options->output.add_json(*command);
  options->output.add_folder(*command);
  command->footer(
      "Examples:\n  stepcast train tiny.json --ranks 2\n  stepcast train tiny.json --closed-form --set /run/steps=6 --set /precision/param=fp64 \\\n"
      "    --set /precision/reduce=fp64 --set /precision/master=fp64 --json");
  command->callback([options, &action] { action = [options] { return run_or_join(*options); }; });
}

}  // namespace stepcast::cli
