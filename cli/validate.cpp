// `stepcast validate`: forecasts every row of a table of real runs and compares. docs/validate.md; test: tests/golden/validate_test.cpp.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "cli/command.hpp"
#include "cli/output_folder.hpp"
#include "cli/page/validate_page.hpp"
#include "cli/progress.hpp"
#include "cli/report/closed_loop.hpp"
#include "cli/report/validate.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profile_text.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {
namespace {

struct ValidateOptions {
  std::string table, csv;
  std::string tier, source, gpu, id;
  unsigned threads = 0;  // 0: as many as the machine has
  std::int64_t interval = 0, calibrate_rows = 0;
  std::optional<std::uint64_t> split, seed;
  std::vector<std::uint64_t> halves;  // seeds
  bool leave_source_out = false;
  std::string scenarios, device = "host", measurements;  // the closed loop
  std::vector<std::string> sets;
  LoopOptions loop;
  OutputChoice output;
};

bool chosen(const ValidateOptions& options, const calibration::Run& run, const calibration::Sources& sources) {
  const auto contains = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
  if (!options.tier.empty() && run.text("tier") != options.tier) return false;
  if (!contains(run.text("gpu"), options.gpu) || !run.id.starts_with(options.id)) return false;
  return contains(run.text("source"), options.source) || contains(sources.of(run).name, options.source);
}

std::vector<calibration::Run> choose(const ValidateOptions& options, calibration::RunTable table, const calibration::Sources& sources) {
  std::vector<calibration::Run> runs;
  for (calibration::Run& run : table.runs) {
    if (chosen(options, run, sources)) runs.push_back(std::move(run));
  }
  if (runs.empty())
    throw InputError(options.table, "", "no row is chosen", "the table has " + std::to_string(table.runs.size()) + " rows; see --tier, --source, --gpu, --id");
  return runs;
}

void name_ignored(const std::vector<std::string>& columns) {
  std::string list;
  for (const std::string& column : columns) list += (list.empty() ? "" : ", ") + printable(column, 60);
  if (!list.empty()) std::fprintf(stderr, "stepcast: columns that are not known and not used: %s\n", list.c_str());
}

std::vector<Fold> folds_of(const ValidateOptions& options, const Judgement& judgement) {
  std::vector<Fold> folds = options.leave_source_out ? folds_by_source(judgement) : std::vector<Fold>{};
  for (const std::uint64_t seed : std::set<std::uint64_t>(options.halves.begin(), options.halves.end())) folds.push_back(half(judgement, seed));
  std::erase_if(folds, [](const Fold& fold) { return fold.fitted.empty(); });
  if (folds.empty()) throw InputError(options.table, "", "no rows are left to fit", "leave --source out, or choose rows of several sources");
  return folds;
}

Exit validate(const ValidateOptions& options) {
  if (options.table.empty()) throw InputError("command line", "", "nothing to validate", "name a table of runs, or a folder with --scenarios");
  if (options.seed && options.interval == 0 && options.calibrate_rows == 0)
    throw InputError("command line", "", "--seed: nothing is drawn", "give --interval or --calibrate-rows");
  const calibration::Sources sources;
  calibration::RunTable table = calibration::read_runs_file(options.table);
  name_ignored(table.ignored);
  const std::vector<calibration::Run> runs = choose(options, std::move(table), sources);
  std::unique_ptr<OutputFolder> folder;
  if (!options.output.folder.empty()) {
    folder = std::make_unique<OutputFolder>(options.output.folder, std::vector<std::string>{"report.json", kPageFile, "report.csv"}, options.output.force);
  }
  std::optional<OutputFile> csv;
  if (!options.csv.empty()) csv.emplace("--csv", options.csv, options.output.force, to_csv(Judgement{}));
  const unsigned threads = options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  const Judgement judgement = judge(runs, sources, threads, JudgeOptions{.factors = {}, .interval = options.interval, .seed = options.seed.value_or(0)},
                                    progress("validate", runs.size()));
  nlohmann::ordered_json json = to_json(judgement);
  std::optional<Recalibration> calibrated;
  if (options.calibrate_rows > 0 || options.split) {
    calibrated = recalibrate(runs, judgement, sources, {options.calibrate_rows, options.split.value_or(options.seed.value_or(0))}, threads);
    json["calibrated"] = to_json(*calibrated);
  }
  std::optional<HoldOut> held_out;
  if (options.leave_source_out || !options.halves.empty()) {
    held_out = hold_out(runs, judgement, sources, folds_of(options, judgement), threads);
    json["held_out"] = to_json(*held_out);
  }
  if (folder) {
    folder->stage("report.json", json.dump(2) + "\n");
    stage_page(page_of(judgement, std::filesystem::path(options.table).filename().string()), *folder);
    folder->stage("report.csv", to_csv(judgement));
    folder->publish();
  }
  if (csv) csv->write(to_csv(judgement));
  print(options.output.json ? json.dump(2) + "\n"
                            : to_text(judgement) + (calibrated ? "\n" + to_text(*calibrated) : "") + (held_out ? "\n" + to_text(*held_out) : ""));
  return Exit::ok;
}

const std::vector<std::string>& loop_files() {
  static const std::vector<std::string> kNames = {"report.json", "report.csv", "measurements.json", "gpu.json", "node.json"};
  return kNames;
}

void write_files(const Loop& loop, OutputFolder& folder) {
  folder.stage("report.json", to_json(loop).dump(2) + "\n");
  folder.stage("report.csv", to_csv(loop));
  folder.stage("measurements.json", loop.measurements.dump(1) + "\n");
  folder.stage("gpu.json", hw::gpu_profile_text(loop.profiles.gpu));
  folder.stage("node.json", hw::node_profile_text(loop.profiles.node));
  folder.publish();
}

/// Scenarios that failed don't keep the others from being compared.
Exit close_the_loop(const ValidateOptions& options) {
  const std::vector<LoopScenario> scenarios = loop_scenarios(options.scenarios, options.sets);
  std::optional<nlohmann::ordered_json> measurements;
  if (!options.measurements.empty()) {
    measurements = nlohmann::ordered_json::parse(read_json(options.measurements).dump());
    host_profiles_of(*measurements, options.measurements);  // what is wrong with it is told before anything runs
  }
  std::unique_ptr<OutputFolder> folder;
  if (!options.output.folder.empty()) folder = std::make_unique<OutputFolder>(options.output.folder, loop_files(), options.output.force);
  std::optional<OutputFile> csv;
  if (!options.csv.empty()) csv.emplace("--csv", options.csv, options.output.force, to_csv(Loop{}));
  const Loop loop = close_loop(scenarios, options.loop, measurements, progress("validate", loop_work(scenarios, options.loop)));
  if (folder) write_files(loop, *folder);
  if (csv) csv->write(to_csv(loop));
  print(options.output.json ? to_json(loop).dump(2) + "\n" : to_text(loop));
  const bool failed = std::any_of(loop.rows.begin(), loop.rows.end(), [](const LoopRow& row) { return !row.failures.empty(); });
  return failed ? Exit::failure : Exit::ok;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto options = std::make_shared<ValidateOptions>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("validate", "Forecast a table of real runs and compare with what was measured");
  CLI::Option* table = command->add_option("table", options->table, "Table of runs: CSV with the columns of docs/validate.md")->type_name("RUNS.csv");
  CLI::Option* scenarios = command
                               ->add_option("--scenarios", options->scenarios,
                                            "In place of a table: run the scenarios of this folder for real, and forecast them from what bench measures")
                               ->type_name("DIR")
                               ->excludes(table);
  const auto of_loop = [&](CLI::Option* option) { option->needs(scenarios); };
  of_loop(command->add_option("--device", options->device, "With --scenarios: what they run on: host")->type_name("DEVICE")->check(CLI::IsMember({"host"})));
  of_loop(command->add_option("--rounds", options->loop.rounds, "With --scenarios: how often everything is measured and run in turns (default 3)")
              ->type_name("N")
              ->check(CLI::Range(1, 1000)));
  of_loop(command->add_option("--seconds", options->loop.seconds, "With --scenarios: longest time for one point of bench in a round (default 0.1)")
              ->type_name("SECONDS")
              ->check(number_between(0.001, 600.0)));
  of_loop(command->add_option("--deadline", options->loop.deadline_s, "With --scenarios: seconds without the end of a kernel after which a run ends")
              ->type_name("SECONDS")
              ->check(number_between(0.1, 1e6)));
  of_loop(
      command->add_option("--measurements", options->measurements, "With --scenarios: forecast from this file of bench, and measure none")->type_name("FILE"));
  of_loop(command->add_option("--set", options->sets, "With --scenarios: change all of them")->type_name("/PTR=VALUE")->allow_extra_args(false));
  command->add_option("--tier", options->tier, "Only rows of this tier")->type_name("TIER");
  command->add_option("--source", options->source, "Only rows whose source, or its name in the report, contains this text")->type_name("TEXT");
  command->add_option("--gpu", options->gpu, "Only rows whose GPU contains this text")->type_name("TEXT");
  command->add_option("--id", options->id, "Only rows whose id begins with this text")->type_name("TEXT");
  command->add_option("--threads", options->threads, "Rows simulated at a time (default: all cores)")->type_name("N")->check(CLI::Range(1u, 1024u));
  command->add_option("--csv", options->csv, "Write one line per row into this file")->type_name("FILE");
  command->add_option("--interval", options->interval, "Members of an 80 % interval for each row, and how many of the rows lie in theirs")
      ->type_name("N")
      ->check(CLI::Range(10, 1000));
  CLI::Option* rows =
      command->add_option("--calibrate-rows", options->calibrate_rows, "Fit the machine's parameters to N rows of each source, judge the others")
          ->type_name("N")
          ->check(CLI::Range(1, 1000));
  command->add_option("--split", options->split, "The same with a random half of each source's rows, by this seed")->type_name("SEED")->excludes(rows);
  CLI::Option* halves = command
                            ->add_option("--halves", options->halves,
                                         "Fit the machines' common parameters to a random half of all rows and judge the other; once for each of these seeds")
                            ->type_name("SEED[,SEED...]")
                            ->delimiter(',');
  command->add_flag("--leave-source-out", options->leave_source_out, "The same with each source in turn: fitted to all others, judged on its own rows")
      ->excludes(halves);
  command->add_option("--seed", options->seed, "Of --interval's draws and of --calibrate-rows' choice")->type_name("SEED");
  for (const char* name :
       {"--tier", "--source", "--gpu", "--id", "--threads", "--interval", "--calibrate-rows", "--split", "--halves", "--leave-source-out", "--seed"})
    command->get_option(name)->excludes(scenarios);
  options->output.add_json(*command);
  command
      ->add_option(
          "--out", options->output.folder,
          "Write report.json, report.html and report.csv into this folder; with --scenarios also measurements.json, gpu.json and node.json, but no page")
      ->type_name("DIR");
  command->add_flag("--force", options->output.force, "With --out and --csv: replace files that stepcast did not write");
  command->footer(
      "Examples:\n  stepcast validate runs.csv\n  stepcast validate runs.csv --tier A --gpu a100 --out out\n  stepcast validate runs.csv --source torchtitan "
      "--json");
  command->callback([options, &action] { action = [options] { return options->scenarios.empty() ? validate(*options) : close_the_loop(*options); }; });
}

}  // namespace stepcast::cli
