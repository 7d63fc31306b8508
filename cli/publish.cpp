// The files of --out. docs/report.md; test: tests/golden/cli_test.cpp.
#include "cli/publish.hpp"

#include <nlohmann/json.hpp>

#include "cli/output_folder.hpp"
#include "cli/page/run_page.hpp"
#include "cli/report/text.hpp"
#include "trace/chrome_writer.hpp"

namespace stepcast::cli {
namespace {

const std::vector<std::string>& names() {
  static const std::vector<std::string> kNames = {"report.json", "report.txt", kPageFile, "trace.json.gz"};
  return kNames;
}

}  // namespace

void check_folder(const std::string& folder, bool force) { OutputFolder(folder, names(), force); }

void publish(const Prediction& prediction, const std::string& folder, bool force, const Extras& extras, const std::vector<Report>& stages) {
  OutputFolder out(folder, names(), force);
  nlohmann::ordered_json json = json_of(prediction);
  add_to(json, extras);
  out.stage("report.json", json.dump(2) + "\n");
  out.stage("report.txt", to_text(prediction.report) + to_text(extras));
  stage_page(page_of(prediction, extras, stages), out);
  if (prediction.report.outcome == "ok") trace::write_chrome_gz(prediction.result.trace, out.staged_path("trace.json.gz").string());
  out.publish();
}

}  // namespace stepcast::cli
