// See run.hpp.
#include "cli/diagnose/run.hpp"

#include <algorithm>
#include <utility>

#include "cli/page/diagnose_page.hpp"
#include "cli/report/diagnose/critical_path.hpp"
#include "cli/report/diagnose/findings.hpp"
#include "cli/report/diagnose/finer_causes.hpp"
#include "cli/report/diagnose/json.hpp"
#include "cli/report/diagnose/text.hpp"
#include "hw_models/ordered_json.hpp"
#include "hw_models/text_file.hpp"
#include "trace/profile/import.hpp"
#include "trace/profile/processes.hpp"

namespace stepcast::cli {
namespace {

namespace profile = trace::profile;

/// A device of a file. What its gaps and its critical paths waited for is known when all ranks are read.
struct DeviceReport {
  std::string name;
  profile::FinerCauses finer;
  std::vector<profile::CriticalPath> paths;
  std::size_t summary = 0;  // its place in Gathered::summaries, or past them: it communicates with nobody
};

struct RankReport {
  OrderedJson json;
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

void gather(profile::Profile recorded, const InferenceOptions& inference, const DiagnosisForms& forms, Gathered& all) {
  const profile::RankDiagnosis rank = profile::diagnose(std::move(recorded));
  if (!all.inferred.scenario) {
    all.inferred = infer(rank, inference);
    if (forms.page) all.page.add(all.inferred);
  }
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

void gather(const profile::Input& input, const InferenceOptions& inference, const DiagnosisForms& forms, Gathered& all) {
  const auto source = input.open();
  for (profile::Profile& process : profile::by_process(profile::import_profile(*source, input.label))) gather(std::move(process), inference, forms, all);
}

/// Takes from the waits what was spent waiting for other ranks, and adds them to the reports.
void settle(const profile::AcrossRanks& across, const DiagnosisForms& forms, Gathered& all) {
  for (RankReport& rank : all.ranks) {
    for (DeviceReport& device : rank.devices) {
      if (device.summary < across.lateness.size()) {
        profile::settle_stragglers(device.finer, across.lateness[device.summary]);
        for (profile::CriticalPath& path : device.paths) profile::settle_stragglers(path, across.lateness[device.summary]);
      }
      if (forms.text) rank.text += text_of(device.finer, printable(device.name)) + text_of(device.paths, printable(device.name));
      if (!forms.json) continue;
      OrderedJson& json = rank.json["devices"][device.name];
      if (!json["gaps"].is_null()) json["gaps"]["waited_for"] = json_of(device.finer);
      json["critical_path"] = json_of(device.paths);
    }
  }
}

std::string json_text(Gathered& all, const profile::AcrossRanks& across, const std::vector<profile::Finding>& findings) {
  OrderedJson ranks = OrderedJson::array();
  for (RankReport& rank : all.ranks) ranks.push_back(std::move(rank.json));
  OrderedJson json = {{"schema", "stepcast.diagnose/1"}, {"ranks", std::move(ranks)}, {"across_ranks", json_of(across)}, {"findings", json_of(findings)}};
  json.update(json_of(all.inferred));
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string plain_text(const InferenceOptions& inference, const Gathered& all, const profile::AcrossRanks& across,
                       const std::vector<profile::Finding>& findings) {
  std::string text;
  for (const RankReport& rank : all.ranks) text += (text.empty() ? "" : "\n") + rank.text;
  return text + text_of(across) + text_of(all.inferred, inference) + "\n" + text_of(findings);
}

}  // namespace

Diagnosis diagnose_traces(const std::vector<std::string>& traces, const InferenceOptions& inference, const DiagnosisForms& forms) {
  Gathered all;
  for (const std::string& path : traces) {
    for (const profile::Input& input : profile::inputs_at(path)) gather(input, inference, forms, all);
  }
  const profile::AcrossRanks across = profile::compare_ranks(std::move(all.summaries));
  for (profile::Finding& finding : profile::findings_across(across, all.window)) all.findings.push_back(std::move(finding));
  std::vector<profile::Finding> findings = profile::merged(std::move(all.findings));
  if (all.inferred.compared && all.inferred.training) forecast_gains(*all.inferred.scenario->scenario, findings);
  settle(across, forms, all);
  Diagnosis diagnosis;
  if (forms.text) diagnosis.text = plain_text(inference, all, across, findings);
  if (forms.json) diagnosis.json = json_text(all, across, findings);
  if (forms.page) diagnosis.page = all.page.page(findings);
  diagnosis.inferred = std::move(all.inferred);
  return diagnosis;
}

}  // namespace stepcast::cli
