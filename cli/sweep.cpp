// `stepcast sweep`: all combinations of values for settings of a scenario. docs/sweep.md; test: tests/golden/sweep_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "cli/build_id.hpp"
#include "cli/command.hpp"
#include "cli/load.hpp"
#include "cli/output_folder.hpp"
#include "cli/page/page.hpp"
#include "cli/progress.hpp"
#include "cli/report/sweep_text.hpp"
#include "cli/sweep/outputs.hpp"
#include "cli/sweep/ranks.hpp"
#include "cli/sweep/run.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"
#include "planner/sweep_file.hpp"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSweepBytes = std::size_t{4} << 20;

struct SweepOptions {
  ScenarioChoice choice;
  std::string file, csv;
  std::vector<std::string> vary;
  OutputChoice output;
  std::size_t shown = 100;
  unsigned threads = 0;  // 0: as many as the machine has
};

/// The choice and axes of the file, with those of the command line on top.
std::vector<planner::Axis> axes_of(SweepOptions& options) {
  std::vector<planner::Axis> axes;
  if (!options.file.empty()) {
    planner::SweepFile file = planner::read_sweep(read_text_file(options.file, kMaxSweepBytes), printable(options.file));
    const bool built_in = file.scenario.find('/') == std::string::npos && !file.scenario.ends_with(".json");
    options.choice.scenario = built_in ? file.scenario : (fs::path(options.file).parent_path() / file.scenario).string();
    options.choice.changes.sets.insert(options.choice.changes.sets.begin(), file.sets.begin(), file.sets.end());
    axes = std::move(file.axes);
  }
  for (const std::string& vary : options.vary) axes.push_back(planner::parse_axis(vary));
  return axes;
}

/// Where points are kept while the sweep runs: in the folder of --out, where a later sweep finds them, or nowhere for long.
std::unique_ptr<SweepStore> open_store(const std::string& folder) {
  if (folder.empty()) return std::make_unique<SweepStore>();
  return std::make_unique<SweepStore>((fs::path(folder) / "points.jsonl").string(), build_id());
}

/// The scenario's name, or that of the file, without its folder.
std::string title_of(const ScenarioChoice& choice) {
  if (!choice.scenario.empty()) return fs::path(choice.scenario).stem().string();
  const std::string& file = choice.model.empty() ? choice.configs.front() : choice.model;
  return fs::path(file).stem().string() + " on " + choice.cluster;
}

Exit exit_of(const SweepTable& table) {
  if (table.count("ok") > 0) return Exit::ok;
  return table.count("out_of_memory") > 0 ? Exit::out_of_memory : Exit::check_failed;
}

/// What a sweep is before it runs. Only the first of several processes has places to write to.
struct Prepared {
  planner::Grid grid;
  LoadedTemplate loaded;
  SweepPlan plan;
  std::unique_ptr<OutputFolder> folder;
  std::unique_ptr<OutputFile> csv;
  std::unique_ptr<SweepStore> store;
  unsigned threads = 1;

  [[nodiscard]] SweepWork work() const { return {loaded.scenario, grid, plan, threads}; }
};

void open_outputs(const SweepOptions& options, Prepared& p) {
  for (const std::string& warning : p.loaded.warnings) std::fprintf(stderr, "stepcast: %s\n", warning.c_str());
  if (!options.output.folder.empty())
    p.folder = std::make_unique<OutputFolder>(options.output.folder, std::vector<std::string>{"report.json", "sweep.csv", "sweep.txt", kPageFile},
                                              options.output.force);
  if (!options.csv.empty()) p.csv = std::make_unique<OutputFile>("--csv", options.csv, options.output.force, sweep_csv_header(p.grid));
}

Prepared prepare(SweepOptions& options, unsigned threads, bool first) {
  planner::Grid grid(axes_of(options));
  Prepared p{std::move(grid), load_template(options.choice), {}, nullptr, nullptr, nullptr, options.threads > 0 ? options.threads : threads};
  if (first) open_outputs(options, p);
  p.plan = make_plan(p.loaded.scenario, p.grid, p.threads);
  p.store = open_store(first ? options.output.folder : "");
  return p;
}

Exit finish(const SweepOptions& options, Prepared& p, const SweepCounts& counts) {
  const SweptPoints points{p.grid, p.plan, *p.store};
  const SweepTable table = write_points(points, {title_of(options.choice), options.shown, p.folder.get(), p.csv.get()});
  if (options.output.json) write_json(points, print);
  else print(table.text());
  std::fprintf(stderr, "stepcast: %zu points, %zu scenarios simulated with %zu programs, %zu kept from an earlier sweep\n", p.grid.size(), counts.simulated,
               counts.programs, counts.kept);
  return exit_of(table);
}

/// One of several processes. What is wrong with the input is found by all of them and told by the first alone, for which the others wait before they speak.
Exit sweep_on(Ranks& ranks, SweepOptions options) {
  const bool first = ranks.rank() == 0;
  std::optional<Prepared> p;
  std::exception_ptr error;
  try {
    p.emplace(prepare(options, 1, first));
  } catch (...) { error = std::current_exception(); }
  if (error && !first) ranks.from_first({});
  if (error) std::rethrow_exception(error);
  const SweepCounts counts = run_sweep_on(ranks, p->work(), *p->store, first ? progress("sweep", p->plan.uniques.size()) : std::function<void(std::size_t)>{});
  return first ? finish(options, *p, counts) : Exit::ok;
}

Exit sweep_on_all(const Launch& launch, const SweepOptions& options) {
  const std::unique_ptr<Ranks> ranks = open_ranks(launch);
  if (!ranks) return Exit::bad_input;
  try {
    return sweep_on(*ranks, options);
  } catch (...) {
    const Exit exit = complain_of(std::current_exception());
    ranks->abort(static_cast<int>(exit));
    return exit;
  }
}

Exit sweep(SweepOptions options) {
  if (const auto launch = launch_in(std::getenv)) return sweep_on_all(*launch, options);
  Prepared p = prepare(options, std::max(1u, std::thread::hardware_concurrency()), true);
  const SweepCounts counts = run_sweep(p.work(), *p.store, progress("sweep", p.plan.uniques.size()));
  return finish(options, p, counts);
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command = app.add_subcommand("sweep", "All combinations of values for settings of a scenario");
  options->choice.add_to(*command);
  options->output.add_json(*command);
  command->add_option("--vary", options->vary, "A setting and its values: a list, a range a..b[:step], or a..b:*factor (may be repeated)")
      ->type_name("/POINTER=VALUES")
      ->allow_extra_args(false);
  command->add_option("--file", options->file, "A sweep file, which names the scenario")
      ->type_name("SWEEP.JSON")
      ->excludes("scenario")
      ->excludes("--model")
      ->excludes("--config");
  command->add_option("--csv", options->csv, "Write one line for each point into this file")->type_name("FILE");
  command->add_option("--top", options->shown, "Points that the table shows, the fastest where there are more (100)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--threads", options->threads, "Threads (as many as the machine has; of each process under mpirun or srun, 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--out", options->output.folder,
                   "Write report.json, report.html, sweep.csv and sweep.txt into this folder, and keep what is done there: a sweep that was stopped goes on")
      ->type_name("DIR");
  command->add_flag("--force", options->output.force, "With --out and --csv: replace files that stepcast did not write");
  command->footer(
      "Examples:\n  stepcast sweep 7b-32xa100 --vary /batch/micro_batch=1,2,4 --vary /recompute/mode=none,full\n"
      "  stepcast sweep 7b-32xa100 --vary /cluster/nodes=1..16:*2 --csv nodes.csv\n"
      "  stepcast sweep 7b-32xa100 --vary '/cluster/nic_rate=100..400:100 Gb/s' --json");
  command->callback([options, &action] { action = [options] { return sweep(*options); }; });
}

}  // namespace stepcast::cli
