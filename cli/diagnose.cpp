// `stepcast diagnose`: reads profiles of PyTorch (or our own traces) and says where the time went. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/diagnose/inferred.hpp"
#include "cli/output_folder.hpp"
#include "cli/page/diagnose_page.hpp"
#include "cli/report/diagnose/critical_path.hpp"
#include "cli/report/diagnose/findings.hpp"
#include "cli/report/diagnose/finer_causes.hpp"
#include "cli/report/diagnose/json.hpp"
#include "cli/report/diagnose/text.hpp"
#include "hw_models/text_file.hpp"
#include "trace/profile/import.hpp"

namespace stepcast::cli {

namespace {

using Json = nlohmann::ordered_json;
namespace profile = trace::profile;

const std::vector<std::string> kFiles = {"report.json", "report.txt", kPageFile};

struct Options {
  std::vector<std::string> traces;
  InferenceOptions inference;
  OutputChoice output;
};

/// A device of a file. What its gaps and its critical paths waited for is known when all ranks are read.
struct DeviceReport {
  std::string name;
  profile::FinerCauses finer;
  std::vector<profile::CriticalPath> paths;
  std::size_t summary = 0;  // its place in Gathered::summaries, or past them: it communicates with nobody
};

struct RankReport {
  Json json;
  std::string text;
  std::vector<DeviceReport> devices;
};

/// What is kept of the ranks while they are read one at a time.
struct Gathered {
  Inferred inferred;  // from the first rank with a device
  std::vector<RankReport> ranks;
  std::vector<profile::RankSummary> summaries;
  std::vector<profile::Finding> findings;
  profile::Time window{};  // of the longest device
  DiagnosePage page;
};

/// What is to be made of each rank.
struct Forms {
  bool json = false, text = false, page = false;
};

void gather(const profile::Input& input, const Options& options, const Forms& forms, Gathered& all) {
  const auto source = input.open();
  const profile::RankDiagnosis rank = profile::diagnose(profile::import_profile(*source, input.label));
  if (!all.inferred.scenario) all.inferred = infer(rank, options.inference);
  RankReport report;
  if (forms.json) report.json = json_of(rank);
  if (forms.text) report.text = text_of(rank);
  if (forms.page) all.page.add(rank);
  for (const profile::DeviceMetrics& device : rank.devices)
    report.devices.push_back({rank.profile.devices[device.device], device.finer, device.paths, SIZE_MAX});
  for (profile::RankSummary& summary : profile::summaries_of(rank.profile, static_cast<std::int64_t>(all.summaries.size()))) {
    for (std::size_t i = 0; i < rank.devices.size(); ++i) {
      if (rank.devices[i].device != summary.device) continue;
      report.devices[i].summary = all.summaries.size();
      summary.spent = profile::own_time_of(rank.devices[i]);
    }
    all.summaries.push_back(std::move(summary));
  }
  all.ranks.push_back(std::move(report));
  for (profile::Finding& finding : profile::findings_of(rank)) all.findings.push_back(std::move(finding));
  for (const profile::DeviceMetrics& device : rank.devices) all.window = std::max(all.window, device.whole_window.span);
}

/// Takes from the waits what was spent waiting for other ranks, and adds them to the reports.
void settle(const profile::AcrossRanks& across, const Forms& forms, Gathered& all) {
  for (RankReport& rank : all.ranks) {
    for (DeviceReport& device : rank.devices) {
      if (device.summary < across.lateness.size()) {
        profile::settle_stragglers(device.finer, across.lateness[device.summary]);
        for (profile::CriticalPath& path : device.paths) profile::settle_stragglers(path, across.lateness[device.summary]);
      }
      if (forms.text) rank.text += text_of(device.finer, printable(device.name)) + text_of(device.paths, printable(device.name));
      if (!forms.json) continue;
      Json& json = rank.json["devices"][device.name];
      if (!json["gaps"].is_null()) json["gaps"]["waited_for"] = json_of(device.finer);
      json["critical_path"] = json_of(device.paths);
    }
  }
}

std::string json_text(Gathered& all, const profile::AcrossRanks& across, const std::vector<profile::Finding>& findings) {
  Json ranks = Json::array();
  for (RankReport& rank : all.ranks) ranks.push_back(std::move(rank.json));
  Json json = {{"schema", "stepcast.diagnose/1"}, {"ranks", std::move(ranks)}, {"across_ranks", json_of(across)}, {"findings", json_of(findings)}};
  json.update(json_of(all.inferred));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string plain_text(const Options& options, const Gathered& all, const profile::AcrossRanks& across, const std::vector<profile::Finding>& findings) {
  std::string text;
  for (const RankReport& rank : all.ranks) text += (text.empty() ? "" : "\n") + rank.text;
  return text + text_of(across) + text_of(all.inferred, options.inference) + "\n" + text_of(findings);
}

void publish(const OutputChoice& output, const std::string& json, const std::string& text, const Page& page) {
  OutputFolder folder(output.folder, kFiles, output.force);
  folder.stage("report.json", json);
  folder.stage("report.txt", text);
  stage_page(page, folder);
  folder.publish();
  std::fprintf(stderr, "stepcast: wrote the report to %s\n", output.folder.c_str());
}

Exit diagnose(const Options& options) {
  const bool writes = !options.output.folder.empty();
  if (writes) OutputFolder(options.output.folder, kFiles, options.output.force);
  const Forms forms{options.output.json || writes, !options.output.json || writes, writes};
  Gathered all;
  for (const std::string& path : options.traces) {
    for (const profile::Input& input : profile::inputs_at(path)) gather(input, options, forms, all);
  }
  const profile::AcrossRanks across = profile::compare_ranks(std::move(all.summaries));
  for (profile::Finding& finding : profile::findings_across(across, all.window)) all.findings.push_back(std::move(finding));
  std::vector<profile::Finding> findings = profile::merged(std::move(all.findings));
  if (!options.inference.file.empty()) write_scenario(all.inferred, options.inference, options.output.force);
  if (all.inferred.compared && all.inferred.training) forecast_gains(*all.inferred.scenario->scenario, findings);
  settle(across, forms, all);
  const std::string text = forms.text ? plain_text(options, all, across, findings) : "", json = forms.json ? json_text(all, across, findings) : "";
  if (writes) publish(options.output, json, text, all.page.page(findings));
  print(options.output.json ? json : text);
  return Exit::ok;
}

}  // namespace

void add_diagnose(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
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
