// The scenario behind a trace on its page, its simulation beside the trace, and what the device reached. Test: tests/unit/diagnose_page_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/diagnose/inferred.hpp"
#include "cli/page/diagnose_page.hpp"
#include "cli/report/diagnose/scenario.hpp"
#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

namespace profile = trace::profile;

constexpr std::size_t kRatesShown = 12;

double in_seconds(profile::Time time) { return static_cast<double>(time.count()) / 1e9; }

double compared_time(const SideBySide& compared, std::string_view name, bool predicted) {
  const auto at = std::find_if(compared.times.begin(), compared.times.end(), [name](const ComparedTime& time) { return time.name == name; });
  return at == compared.times.end() ? 0 : (predicted ? at->predicted_us : at->traced_us) * 1e-6;
}

/// What a step is made of. Copies that nothing hides are what is left of it.
OrderedJson step_row(const SideBySide& compared, bool predicted) {
  OrderedJson parts = OrderedJson::object();
  double rest = compared_time(compared, "step", predicted);
  for (const char* name : {"compute", "exposed communication", "idle"}) rest -= compared_time(compared, name, predicted);
  for (const char* name : {"compute", "exposed communication"}) parts[name] = compared_time(compared, name, predicted);
  parts["exposed copies"] = std::max(0.0, rest);
  parts["idle"] = compared_time(compared, "idle", predicted);
  return {{"name", predicted ? "predicted" : "traced"}, {"parts", parts}};
}

std::string compared_text(const SideBySide& compared) {
  const ComparedTime& first = compared.times.front();
  return fmt::format("The scenario behind the trace, simulated: a {} of {}; traced {}.", first.name, time_text(first.predicted_us * 1e-6),
                     time_text(first.traced_us * 1e-6));
}

OrderedJson compared_chart(const SideBySide& compared) {
  OrderedJson json = section("parts", "A step, predicted and traced", compared_text(compared));
  json["unit"] = "s";
  json["rows"] = {step_row(compared, false), step_row(compared, true)};
  return json;
}

OrderedJson compared_table(const SideBySide& compared) {
  OrderedJson json = section("table", "Predicted beside traced", compared_text(compared));
  json["columns"] = {"per step", "traced", "predicted", "predicted / traced"};
  json["rows"] = OrderedJson::array();
  for (const ComparedTime& time : compared.times) {
    if (time.traced_us == 0 && time.predicted_us == 0) continue;
    json["rows"].push_back({time.name, time_text(time.traced_us * 1e-6), time_text(time.predicted_us * 1e-6),
                            time.traced_us > 0 ? fmt::format("{:.3f}", time.predicted_us / time.traced_us) : "-"});
  }
  return json;
}

std::string keys_text(const TraceScenario& scenario) {
  std::array<std::size_t, 4> counts{};
  std::string missing;
  for (const InferredKey& key : scenario.draft.keys()) {
    ++counts[static_cast<std::size_t>(key.certainty)];
    if (key.certainty == Certainty::missing) missing += (missing.empty() ? ": " : ", ") + key.pointer;
  }
  std::string text = fmt::format("{} keys are seen in the file, {} given, {} guessed, {} missing{}.", counts[0], counts[1], counts[2], counts[3], missing);
  if (!scenario.problem.empty()) text += " It can't be run yet: " + scenario.problem;
  return text;
}

/// What is least sure comes first.
OrderedJson keys_section(const TraceScenario& scenario) {
  OrderedJson json = section(scenario.scenario ? "table" : "folded_table", "The scenario behind this trace", keys_text(scenario));
  json["columns"] = {"key", "value", "how sure", "because"};
  json["rows"] = OrderedJson::array();
  for (const Certainty certainty : {Certainty::missing, Certainty::guessed, Certainty::given, Certainty::seen}) {
    for (const InferredKey& key : scenario.draft.keys()) {
      if (key.certainty == certainty) json["rows"].push_back({key.pointer, key_value_text(key.value), name(certainty), key.because});
    }
  }
  return json;
}

std::string peak_text(const std::optional<double>& flops) { return flops ? fmt::format(" The device's peak: {:.0f} TFLOP/s.", *flops * 1e-12) : ""; }

}  // namespace

std::vector<Tile> tiles_of(const Inferred& inferred) {
  std::vector<Tile> tiles;
  if (const auto& u = inferred.utilisation) {
    tiles.push_back({"MFU", percent_text(u->mfu()), fmt::format("{:.1f} of {:.1f} TFLOP/s", u->flops_per_s() * 1e-12, u->peak_flops * 1e-12)});
    tiles.push_back({"tokens/s/GPU", count_text(u->tokens_per_s_per_gpu), "a step of " + time_text(u->step_s)});
  }
  if (inferred.compared && !inferred.compared->times.empty()) {
    const ComparedTime& first = inferred.compared->times.front();
    tiles.push_back({"predicted " + first.name, time_text(first.predicted_us * 1e-6), "traced " + time_text(first.traced_us * 1e-6)});
  }
  return tiles;
}

std::vector<OrderedJson> sections_of(const Inferred& inferred) {
  std::vector<OrderedJson> sections;
  if (const auto& compared = inferred.compared; compared && !compared->times.empty()) {
    if (inferred.training) sections.push_back(compared_chart(*compared));
    sections.push_back(compared_table(*compared));
  }
  if (!inferred.scenario) return sections;
  sections.push_back(keys_section(*inferred.scenario));
  if (inferred.compared && inferred.compared->times.empty())
    sections.back()["text"] = sections.back()["text"].get<std::string>() + " Simulated, it does not run: " + inferred.compared->outcome + ".";
  return sections;
}

OrderedJson products_section(const profile::Rates& rates, const std::optional<double>& peak_flops, const std::string& where) {
  std::vector<profile::Products> all = rates.products;
  all.insert(all.end(), rates.attention.begin(), rates.attention.end());
  std::erase_if(all, [](const profile::Products& p) { return p.time <= profile::Time{}; });
  if (all.empty()) return nullptr;
  std::stable_sort(all.begin(), all.end(), [](const profile::Products& a, const profile::Products& b) { return a.time > b.time; });
  double flop = 0, time = 0;
  for (const profile::Products& p : all) flop += p.flop, time += in_seconds(p.time);
  OrderedJson json = section(
      "bars", "FLOP/s of matrix products and attention, " + where,
      fmt::format("{:.1f} TFLOP/s over all of them, which take {}; the longest come first.{}", flop / time * 1e-12, time_text(time), peak_text(peak_flops)));
  json["unit"] = "FLOP/s";
  json["bars"] = OrderedJson::array();
  for (const profile::Products& p : all) {
    if (json["bars"].size() == kRatesShown) break;
    json["bars"].push_back({{"name", p.op + " " + p.shapes},
                            {"value", p.flop / in_seconds(p.time)},
                            {"note", fmt::format("{} calls, {}", p.calls, time_text(in_seconds(p.time)))}});
  }
  return json;
}

OrderedJson bandwidth_section(const profile::Rates& rates, const std::string& where) {
  OrderedJson bars = OrderedJson::array();
  for (const profile::CollectiveRate& c : rates.collectives) {
    const auto bandwidth = c.bus_bandwidth();
    if (!bandwidth || bars.size() == kRatesShown) continue;
    bars.push_back({{"name", fmt::format("{} of {}, {} ranks", c.type, size_text(c.bytes), c.ranks)},
                    {"value", *bandwidth},
                    {"note", fmt::format("{} times, {} in all, {} exposed", c.count, time_text(in_seconds(c.total)), time_text(in_seconds(c.exposed)))}});
  }
  if (bars.empty()) return nullptr;
  OrderedJson json = section("bars", "Bus bandwidth of collectives, " + where,
                             "By type and message, of the shortest of each, by the factors of nccl-tests: the longer ones wait for other ranks.");
  json["unit"] = "B/s";
  json["bars"] = bars;
  return json;
}

}  // namespace stepcast::cli
