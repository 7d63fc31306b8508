// What practitioners found faster of two values of a setting, against what `tune` chooses when it may vary exactly that (behaviours.json). docs/behaviours.md, "What tune would choose", is
// written by this test: STEPCAST_UPDATE_GOLDEN=1 test_behaviours -tc="advice*".
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/tune/problem.hpp"
#include "hw_models/text_file.hpp"
#include "planner/search.hpp"
#include "scenarios/scenario.hpp"
#include "support/paths.hpp"

using namespace stepcast;
using nlohmann::json;

namespace {

const std::string kAdvicePage = test::source_dir() + "/docs/behaviours.md";
constexpr double kTie = 0.01;  // measured differences below say nothing about which is better

/// Sections whose settings tune varies, each with those of its keys that it does; no keys: all.
struct Varied {
  const char* section;
  std::vector<std::string> keys;
};
const std::array<Varied, 5> kVaried = {{{"policy", {}},
                                        {"recompute", {}},
                                        {"kernels", {"set", "attention", "loss", "fused_norm", "keep_logits"}},
                                        {"optimizer", {"implementation"}},
                                        {"allocator", {"expandable_segments", "max_split_size"}}}};

bool is_speed(const std::string& quantity) {
  static const std::vector<std::string> kSpeeds = {"tokens_per_s_per_gpu", "tokens_per_s", "step_time_s", "mfu"};
  return std::find(kSpeeds.begin(), kSpeeds.end(), quantity) != kSpeeds.end();
}

json with_patch(json scenario, const json& patch) {
  scenario.merge_patch(patch);
  if (!scenario.contains("run")) scenario["run"] = {{"steps", 4}};
  return scenario;
}

/// Pointers of the resolved settings in which two scenarios differ.
std::vector<std::string> what_differs(const json& before, const json& after) {
  std::vector<std::string> pointers;
  for (const json& change : json::diff(before, after)) pointers.push_back(change.at("path").get<std::string>());
  return pointers;
}

bool is_varied(const std::string& pointer) {
  const std::size_t slash = pointer.find('/', 1);
  const std::string section = pointer.substr(1, slash - 1), key = slash == std::string::npos ? "" : pointer.substr(slash + 1);
  return std::any_of(kVaried.begin(), kVaried.end(), [&](const Varied& varied) {
    return section == varied.section && (varied.keys.empty() || std::find(varied.keys.begin(), varied.keys.end(), key) != varied.keys.end());
  });
}

/// Batches of the same size, cut otherwise.
bool same_global_batch(const json& before, const json& after) {
  const auto batch = [](const json& s) {
    return s.at("/batch/micro_batch"_json_pointer).get<std::int64_t>() * s.at("/batch/grad_accum"_json_pointer).get<std::int64_t>();
  };
  return batch(before) == batch(after);
}

struct Pair {
  std::string setting, what, source;
  json before, after;  // whole scenarios
  bool after_is_faster = false, tie = false;
  std::vector<std::string> pointers;
};

json resolved_json(const json& scenario) { return json::parse(scenarios::to_json(scenarios::read_scenario_text(scenario.dump(), "case", {})).dump()); }

/// The pairs of behaviours.json that compare the speed of two values of settings that tune varies, and nothing else.
std::vector<Pair> pairs_of(const json& data) {
  std::vector<Pair> pairs;
  for (const json& entry : data.at("cases")) {
    for (const json& check : entry.at("checks")) {
      const std::string quantity = check.at("quantity").get<std::string>();
      if (!check.contains("before") || !is_speed(quantity)) continue;
      const json before = resolved_json(with_patch(entry.at("scenario"), check.at("before"))),
                 after = resolved_json(with_patch(entry.at("scenario"), check.at("after")));
      const std::vector<std::string> changed = what_differs(before, after);
      const bool settings = std::all_of(changed.begin(), changed.end(), [&](const std::string& pointer) {
        return is_varied(pointer) || (pointer.starts_with("/batch/") && !pointer.ends_with("seq_len") && same_global_batch(before, after));
      });
      if (changed.empty() || !settings) continue;
      const double measured = check.at("measured").get<double>();
      pairs.push_back({entry.at("setting").get<std::string>(), check.at("what").get<std::string>(), entry.at("source").get<std::string>(), before, after,
                       quantity == "step_time_s" ? measured < 1 : measured > 1, std::fabs(measured - 1) < kTie, changed});
    }
  }
  return pairs;
}

/// A scenario's own values of all that differs, by whole sections: what a --set of a section takes.
planner::Option option_of(const std::string& words, const json& scenario) {
  planner::Option option{words, {}};
  for (const char* section : {"policy", "recompute", "kernels", "optimizer", "batch", "allocator"})
    option.sets.push_back(fmt::format("/{}={}", section, scenario.at(section).dump()));
  return option;
}

/// "before" or "after", whichever tune takes; why not, where it searches no such framework or nothing fits.
std::string advice_of(const Pair& pair) {
  const std::string from = pair.before["/policy/framework"_json_pointer], to = pair.after["/policy/framework"_json_pointer];
  for (const std::string& framework : {from, to}) {
    if (framework != "fsdp1" && framework != "fsdp2") return framework + " is not searched";
  }
  const scenarios::ScenarioTemplate scenario(pair.before.dump(), "case", {});
  planner::Space space{
      {{from, planner::Product({{"setting", {option_of("before", pair.before), option_of("after", pair.after)}}}), planner::Product(), planner::Product(), 0}},
      planner::Product()};
  const cli::TuneProblem problem(scenario, scenario.with({}), std::move(space));
  const planner::Found found = planner::search(problem.problem(), {});
  return found.any() ? problem.choices(found.evaluated.front()).front()->words : "neither fits";
}

struct AdviceLine {
  Pair pair;
  std::string tune;
  [[nodiscard]] std::string practitioners() const { return pair.after_is_faster ? "after" : "before"; }
  [[nodiscard]] bool asked() const { return tune == "before" || tune == "after"; }
  [[nodiscard]] bool agrees() const { return tune == practitioners(); }
  [[nodiscard]] std::string verdict() const { return !asked() ? "not asked: " + tune : agrees() ? "agree" : pair.tie ? "a tie as measured" : "no"; }
};

std::string advice_row(const AdviceLine& line) {
  std::string pointers;
  for (const std::string& pointer : line.pair.pointers) pointers += (pointers.empty() ? "`" : ", `") + pointer + "`";
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", line.pair.setting, line.pair.what, pointers, line.practitioners(), line.asked() ? line.tune : "",
                     line.verdict());
}

void write_advice(const std::vector<AdviceLine>& lines) {
  std::string page = read_text_file(kAdvicePage, 1 << 20);
  const std::string begin = "<!-- advice -->\n", end = "<!-- end of advice -->\n";
  std::string table = "| case | change | what differs | practitioners | tune | |\n|---|---|---|---|---|---|\n";
  for (const AdviceLine& line : lines) table += advice_row(line);
  const auto from = page.find(begin) + begin.size(), to = page.find(end);
  std::ofstream(kAdvicePage) << page.substr(0, from) << table << page.substr(to);
}

}  // namespace

TEST_CASE("advice: of two values of a setting tune takes the one that practitioners found faster") {
  const json data = json::parse(read_text_file(test::source_dir() + "/tests/model/behaviours.json", 1 << 20));
  std::vector<AdviceLine> lines;
  for (Pair& pair : pairs_of(data)) lines.push_back({pair, advice_of(pair)});
  if (std::getenv("STEPCAST_UPDATE_GOLDEN")) write_advice(lines);
  const std::string page = read_text_file(kAdvicePage, 1 << 20);
  std::size_t asked = 0;
  for (const AdviceLine& line : lines) {
    CAPTURE(line.pair.setting);
    CAPTURE(line.pair.what);
    CAPTURE(line.tune);
    asked += line.asked();
    if (line.asked() && !line.pair.tie) CHECK(line.agrees());
    CHECK_MESSAGE(page.find(advice_row(line)) != std::string::npos, "not on the page, or otherwise: update it");
  }
  CHECK(asked >= 10);
}
