// `stepcast diagnose`: reads profiles of PyTorch (or our own traces) and says where the time went. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/report/diagnose/findings.hpp"
#include "cli/report/diagnose/json.hpp"
#include "cli/report/diagnose/text.hpp"
#include "trace/profile/import.hpp"

namespace stepcast::cli {

namespace {

using Json = nlohmann::ordered_json;
namespace profile = trace::profile;

struct Options {
  std::vector<std::string> traces;
  OutputChoice output;
};

/// What is kept of the ranks while they are read one at a time.
struct Gathered {
  Json ranks = Json::array();
  std::string text;
  std::vector<profile::RankSummary> summaries;
  std::vector<profile::Finding> findings;
  profile::Time window{};  // of the longest device
};

void gather(const profile::Input& input, bool json, Gathered& all) {
  const auto source = input.open();
  const profile::RankDiagnosis rank = profile::diagnose(profile::import_profile(*source, input.label));
  for (profile::RankSummary& summary : profile::summaries_of(rank.profile, static_cast<std::int64_t>(all.summaries.size())))
    all.summaries.push_back(std::move(summary));
  for (profile::Finding& finding : profile::findings_of(rank)) all.findings.push_back(std::move(finding));
  for (const profile::DeviceMetrics& device : rank.devices) all.window = std::max(all.window, device.whole_window.span);
  if (json) all.ranks.push_back(json_of(rank));
  else all.text += (all.text.empty() ? "" : "\n") + text_of(rank);
}

Exit diagnose(const Options& options) {
  Gathered all;
  for (const std::string& path : options.traces) {
    for (const profile::Input& input : profile::inputs_at(path)) gather(input, options.output.json, all);
  }
  const profile::AcrossRanks across = profile::compare_ranks(std::move(all.summaries));
  for (profile::Finding& finding : profile::findings_across(across, all.window)) all.findings.push_back(std::move(finding));
  const std::vector<profile::Finding> findings = profile::merged(std::move(all.findings));
  if (options.output.json) {
    const Json json = {{"schema", "stepcast.diagnose/1"}, {"ranks", std::move(all.ranks)}, {"across_ranks", json_of(across)}, {"findings", json_of(findings)}};
    print(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    print(all.text + text_of(across) + "\n" + text_of(findings));
  }
  return Exit::ok;
}

}  // namespace

void add_diagnose(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("diagnose", "Where the time of a profiled run went, why, and what to change");
  command->add_option("traces", options->traces, "PyTorch profiler traces: .json, .json.gz, .zip, or folders of them (one file a rank)")
      ->type_name("TRACE...")
      ->required();
  options->output.add_json(*command);
  command->footer("Examples:\n  stepcast diagnose trace.json.gz\n  stepcast diagnose --json run/ > diagnosis.json\n");
  command->callback([options, &action] { action = [options] { return diagnose(*options); }; });
}

}  // namespace stepcast::cli
