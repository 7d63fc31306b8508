// `stepcast validate`: forecasts every row of a table of real runs and compares. docs/validate.md; test: tests/golden/validate_test.cpp.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cli/command.hpp"
#include "cli/output_folder.hpp"
#include "cli/progress.hpp"
#include "cli/report/validate.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {
namespace {

struct Options {
  std::string table, csv;
  std::string tier, source, gpu, id;
  unsigned threads = 0;  // 0: as many as the machine has
  std::int64_t interval = 0, calibrate_rows = 0;
  std::optional<std::uint64_t> split, seed;
  OutputChoice output;
};

bool chosen(const Options& options, const calibration::Run& run, const calibration::Sources& sources) {
  const auto contains = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
  if (!options.tier.empty() && run.text("tier") != options.tier) return false;
  if (!contains(run.text("gpu"), options.gpu) || !run.id.starts_with(options.id)) return false;
  return contains(run.text("source"), options.source) || contains(sources.of(run).name, options.source);
}

std::vector<calibration::Run> choose(const Options& options, calibration::RunTable table, const calibration::Sources& sources) {
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

Exit validate(const Options& options) {
  if (options.seed && options.interval == 0 && options.calibrate_rows == 0)
    throw InputError("command line", "", "--seed: nothing is drawn", "give --interval or --calibrate-rows");
  const calibration::Sources sources;
  calibration::RunTable table = calibration::read_runs_file(options.table);
  name_ignored(table.ignored);
  const std::vector<calibration::Run> runs = choose(options, std::move(table), sources);
  std::unique_ptr<OutputFolder> folder;
  if (!options.output.folder.empty()) {
    folder = std::make_unique<OutputFolder>(options.output.folder, std::vector<std::string>{"report.json", "report.html", "report.csv"}, options.output.force);
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
  if (folder) {
    folder->stage("report.json", json.dump(2) + "\n");
    folder->stage("report.html", to_html(judgement, std::filesystem::path(options.table).filename().string()));
    folder->stage("report.csv", to_csv(judgement));
    folder->publish();
  }
  if (csv) csv->write(to_csv(judgement));
  print(options.output.json ? json.dump(2) + "\n" : to_text(judgement) + (calibrated ? "\n" + to_text(*calibrated) : ""));
  return Exit::ok;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("validate", "Forecast a table of real runs and compare with what was measured");
  command->add_option("table", options->table, "Table of runs: CSV with the columns of docs/validate.md")->type_name("RUNS.csv")->required();
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
  command->add_option("--seed", options->seed, "Of --interval's draws and of --calibrate-rows' choice")->type_name("SEED");
  options->output.add_json(*command);
  command->add_option("--out", options->output.folder, "Write report.json, report.html and report.csv into this folder")->type_name("DIR");
  command->add_flag("--force", options->output.force, "With --out and --csv: replace files that stepcast did not write");
  command->footer(
      "Examples:\n  stepcast validate runs.csv\n  stepcast validate runs.csv --tier A --gpu a100 --out out\n  stepcast validate runs.csv --source torchtitan "
      "--json");
  command->callback([options, &action] { action = [options] { return validate(*options); }; });
}

}  // namespace stepcast::cli
