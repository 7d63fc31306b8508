// `stepcast diagnose`: reads profiles of PyTorch (or our own traces) and says where the time went. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/diagnose/run.hpp"
#include "cli/output_folder.hpp"
#include "cli/page/page.hpp"

namespace stepcast::cli {

namespace {

const std::vector<std::string> kDiagnoseFiles = {"report.json", "report.txt", kPageFile};

struct DiagnoseOptions {
  std::vector<std::string> traces;
  InferenceOptions inference;
  OutputChoice output;
};

void publish(const OutputChoice& output, const Diagnosis& diagnosis) {
  OutputFolder folder(output.folder, kDiagnoseFiles, output.force);
  folder.stage("report.json", diagnosis.json);
  folder.stage("report.txt", diagnosis.text);
  stage_page(diagnosis.page, folder);
  folder.publish();
  std::fprintf(stderr, "stepcast: wrote the report to %s\n", output.folder.c_str());
}

Exit diagnose(const DiagnoseOptions& options) {
  const bool writes = !options.output.folder.empty();
  if (writes) OutputFolder(options.output.folder, kDiagnoseFiles, options.output.force);
  const Diagnosis diagnosis = diagnose_traces(options.traces, options.inference, {options.output.json || writes, !options.output.json || writes, writes});
  if (!options.inference.file.empty()) write_scenario(diagnosis.inferred, options.inference, options.output.force);
  if (writes) publish(options.output, diagnosis);
  print(options.output.json ? diagnosis.json : diagnosis.text);
  return Exit::ok;
}

}  // namespace

void add_diagnose(CLI::App& app, Action& action) {
  auto options = std::make_shared<DiagnoseOptions>();
  auto* command = app.add_subcommand("diagnose", "Where the time of a profiled run went, why, and what to change");
  command->add_option("traces", options->traces, "PyTorch profiler traces: .json, .json.gz, .zip, or folders of them (one file a rank)")
      ->type_name("TRACE...")
      ->required();
  options->inference.add_to(*command);
  options->output.add_json(*command);
  options->output.add_folder(*command);
  command->footer(
      "Examples:\n  stepcast diagnose trace.json.gz\n  stepcast diagnose --json run/ > diagnosis.json\n  stepcast diagnose run/ --out out\n"
      "  stepcast diagnose trace.json.gz --scenario mine.json\n");
  command->callback([options, &action] { action = [options] { return diagnose(*options); }; });
}

}  // namespace stepcast::cli
