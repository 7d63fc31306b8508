// What practitioners saw when they changed one thing, against the forecast: ratios of step time, throughput, utilisation or memory (behaviours.json). docs/behaviours.md is
// written by this test: STEPCAST_UPDATE_GOLDEN=1 test_behaviours -tc="behaviours*".
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "hw_models/text_file.hpp"
#include "support/paths.hpp"
#include "tests/support/forecast.hpp"

using namespace stepcast;
using nlohmann::json;

namespace {

constexpr double kTolerance = 0.10, kNoChange = 0.03;
const std::string kPage = test::source_dir() + "/docs/behaviours.md";

double quantity(const cli::Report& r, const std::string& name) {
  if (name == "tokens_per_s_per_gpu") return r.tokens_per_s_per_gpu;
  if (name == "tokens_per_s") return r.tokens_per_s_per_gpu * static_cast<double>(r.ranks);
  if (name == "step_time_s") return r.step_time_s;
  if (name == "mfu") return r.mfu;
  if (name == "hfu") return r.hfu;
  if (name == "hfu_over_mfu") return r.hfu / r.mfu;
  if (name == "peak_allocated_bytes") return static_cast<double>(r.peak_allocated_bytes);
  if (name == "peak_active_bytes") return static_cast<double>(r.peak_active_bytes);
  if (name == "peak_reserved_bytes") return static_cast<double>(r.peak_reserved_bytes);
  REQUIRE_MESSAGE(name == "retries_last_step", name);
  return static_cast<double>(r.retries_per_step.back());
}

/// The forecast of a case with a patch; several checks share some.
class Forecasts {
 public:
  double value(const json& scenario, const json& patch, const std::string& name) {
    json patched = scenario;
    patched.merge_patch(patch);
    if (!patched.contains("run")) patched["run"] = {{"steps", 4}};
    const std::string text = patched.dump();
    auto known = reports_.find(text);
    if (known == reports_.end()) known = reports_.emplace(text, test::forecast_text(text).report).first;
    REQUIRE_MESSAGE(known->second.outcome == "ok", text);
    return quantity(known->second, name);
  }

 private:
  std::map<std::string, cli::Report> reports_;
};

struct Line {
  std::string what, setting, source, note;
  double measured = 0, simulated = 0;
  [[nodiscard]] bool within() const { return std::fabs(simulated - measured) <= kTolerance; }
  /// A change of at most 3 % counts as none: then the other may be as small to either side.
  [[nodiscard]] bool same_direction() const {
    if (std::fabs(measured - 1) <= kNoChange) return std::fabs(simulated - 1) <= 2 * kNoChange;
    return (simulated - 1) * (measured - 1) > 0;
  }
};

std::vector<Line> lines_of(const json& data) {
  std::vector<Line> lines;
  for (const json& entry : data.at("cases")) {
    Forecasts forecasts;
    for (const json& check : entry.at("checks")) {
      const std::string name = check.at("quantity").get<std::string>();
      CAPTURE(entry.at("name").get<std::string>());
      const double after = forecasts.value(entry.at("scenario"), check.at("after"), name);
      const double before = check.contains("before") ? forecasts.value(entry.at("scenario"), check.at("before"), name) : 1;
      lines.push_back({check.at("what").get<std::string>(), entry.at("setting").get<std::string>(), entry.at("source").get<std::string>(),
                       check.value("note", ""), check.at("measured").get<double>(), after / before});
    }
  }
  return lines;
}

std::string row_of(const Line& line) {
  return fmt::format("| {} | {} | {:.3f} | {:.3f} | {} | {} |\n", line.setting, line.what, line.measured, line.simulated, line.note, line.source);
}

void write_page(const json& data, const std::vector<Line>& lines) {
  std::string page = read_text_file(kPage, 1 << 20);
  const std::string begin = "<!-- table -->\n", end = "<!-- end of table -->\n";
  std::string table = "| setting | change | measured | simulated | note | source |\n|---|---|---|---|---|---|\n";
  for (const Line& line : lines) table += row_of(line);
  table += "\nNot compared:\n\n";
  for (const json& entry : data.at("not_compared"))
    table += fmt::format("* {}: {}.\n", entry.at("what").get<std::string>(), entry.at("why").get<std::string>());
  const auto from = page.find(begin) + begin.size(), to = page.find(end);
  std::ofstream(kPage) << page.substr(0, from) << table << page.substr(to);
}

}  // namespace

TEST_CASE("behaviours: at least four fifths of the measured ratios within ten points, and only known ones in the wrong direction") {
  const json data = json::parse(read_text_file(test::source_dir() + "/tests/model/behaviours.json", 1 << 20));
  const auto lines = lines_of(data);
  if (std::getenv("STEPCAST_UPDATE_GOLDEN")) write_page(data, lines);
  const std::string page = read_text_file(kPage, 1 << 20);
  std::size_t within = 0;
  for (const Line& line : lines) {
    CAPTURE(line.setting);
    CAPTURE(line.what);
    CAPTURE(line.measured);
    CAPTURE(line.simulated);
    within += line.within();
    if (line.note.empty()) CHECK(line.within());
    if (line.note.empty()) CHECK(line.same_direction());
    CHECK_MESSAGE(page.find(row_of(line)) != std::string::npos, "not on the page, or with another figure: update it");
  }
  MESSAGE(within << " of " << lines.size() << " ratios within ten points");
  CHECK(static_cast<double>(within) >= 0.8 * static_cast<double>(lines.size()));
}
