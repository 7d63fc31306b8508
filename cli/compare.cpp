// `stepcast compare`: scenarios or report files side by side, with the reason for each difference. docs/commands.md; test: tests/golden/cli_test.cpp.
#include "cli/report/compare.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output_folder.hpp"
#include "cli/page/compare_page.hpp"
#include "cli/predict.hpp"
#include "cli/report/report.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {
namespace {

const std::vector<std::string> kCompareFiles = {"report.json", "report.txt", kPageFile};

struct CompareOptions {
  std::vector<std::string> inputs;
  ScenarioChanges changes;
  OutputChoice output;
};

/// The report in a file that `run --json` or `--out` wrote; null if the input is something else (a scenario, or the name of one).
nlohmann::ordered_json report_file(const std::string& input) {
  if (!input.ends_with(".json")) return nullptr;
  const Json json = read_json(input);
  const bool is_report = json.is_object() && json.contains("schema") && json["schema"].is_string() && json["schema"].get<std::string>() == kReportSchema;
  return is_report ? nlohmann::ordered_json::parse(json.dump()) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json report_of(const std::string& input, const std::vector<std::string>& sets) {
  nlohmann::ordered_json report = report_file(input);
  if (report.is_null()) return json_of(predict(scenarios::read_scenario(input, sets)));
  if (!sets.empty()) throw InputError(input, "", "is a report and can't be changed by --set");
  return report;
}

/// File or scenario name without folder and ending; the whole input where two would be alike.
std::vector<std::string> names_of(const std::vector<std::string>& inputs) {
  std::map<std::string, int> uses;
  std::vector<std::string> names;
  for (const std::string& input : inputs) {
    std::string name = input.substr(input.find_last_of('/') + 1);
    if (name.ends_with(".json")) name.resize(name.size() - 5);
    ++uses[name];
    names.push_back(name);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (uses[names[i]] > 1) names[i] = inputs[i];
  }
  return names;
}

void publish(const OutputChoice& output, const nlohmann::ordered_json& comparison) {
  OutputFolder folder(output.folder, kCompareFiles, output.force);
  folder.stage("report.json", comparison.dump(2) + "\n");
  folder.stage("report.txt", compare_text(comparison));
  stage_page(compare_page(comparison), folder);
  folder.publish();
  std::fprintf(stderr, "stepcast: wrote the comparison to %s\n", output.folder.c_str());
}

Exit compare_command(const CompareOptions& options) {
  const bool writes = !options.output.folder.empty();
  if (writes) OutputFolder(options.output.folder, kCompareFiles, options.output.force);
  std::vector<nlohmann::ordered_json> reports;
  for (const std::string& input : options.inputs) reports.push_back(report_of(input, options.changes.all()));
  const nlohmann::ordered_json comparison = compare(names_of(options.inputs), reports);
  if (writes) publish(options.output, comparison);
  print(options.output.json ? comparison.dump(2) + "\n" : compare_text(comparison));
  return Exit::ok;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Scenarios or report files side by side, and why they differ from the first");
  command->add_option("inputs", options->inputs, "Scenarios, names of built-in scenarios, or report.json files; two or more")
      ->required()
      ->expected(2, 1000)
      ->type_name("A B");
  options->changes.add_to(*command);
  options->output.add_json(*command);
  options->output.add_folder(*command);
  command->footer("Examples:\n  stepcast compare 7b-32xa100 my-variant.json out/report.json\n  stepcast compare 01-baseline 05-allocator --out out");
  command->callback([options, &action] { action = [options] { return compare_command(*options); }; });
}

}  // namespace stepcast::cli
