// See tune_page.hpp.
#include "cli/page/tune_page.hpp"

#include <fmt/format.h>

#include "cli/page/sweep_page.hpp"
#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

std::string number(std::size_t n) { return count_text(static_cast<double>(n)); }

OrderedJson decisions_section(const TuneResult& r) {
  OrderedJson json = section("decisions", "From the scenario to the best", "Each time the change that gains most, and what the step waited for before it.");
  json["decisions"] = to_json(r)["decisions"];
  return json;
}

OrderedJson best_section(const std::vector<TunePoint>& points) {
  OrderedJson json = section("table", "The fastest", "Points that differ in time or memory.");
  json["columns"] = {"step time", "tokens/s/GPU", "MFU", "headroom", "settings"};
  json["rows"] = OrderedJson::array();
  for (const TunePoint& p : points)
    json["rows"].push_back(
        {time_text(p.step_time_s), count_text(p.tokens_per_s_per_gpu), percent_text(p.mfu), size_text(static_cast<double>(p.headroom_bytes)), p.words});
  return json;
}

OrderedJson elasticities_section(const TuneResult& r) {
  OrderedJson json = section("bars", "What would help beyond settings", "How many percent the step gets shorter for each percent of improvement.");
  json["unit"] = "ratio";
  json["bars"] = OrderedJson::array();
  for (const Elasticity& e : r.elasticities) json["bars"].push_back({{"name", e.what}, {"value", -e.elasticity}, {"note", time_text(e.step_time_s)}});
  return json;
}

OrderedJson robustness_section(const TuneResult& r) {
  OrderedJson json = section("table", "If the hardware is other than assumed", "Whether the winner stays the fastest of the leaders.");
  json["columns"] = {"assumption", "the winner", "another is faster by"};
  json["rows"] = OrderedJson::array();
  for (const Trial& t : r.robustness)
    json["rows"].push_back({t.assumption, t.stays ? "stays" : "changes", t.stays ? "-" : fmt::format("{:.2f} %", 100 * t.loss)});
  return json;
}

OrderedJson settings_section(const TuneResult& r) {
  OrderedJson json = section("code", "Settings to paste", "The winner in each framework's own words.");
  json["blocks"] = OrderedJson::array();
  for (const auto& [name, text] : r.settings) json["blocks"].push_back({{"name", name}, {"text", text}});
  return json;
}

}  // namespace

Page tune_page(const TuneResult& r) {
  Page page{"tune", r.scenario, "", {}, {}, {}};
  page.tiles = {{"points", number(r.points), number(r.refused) + " can't be"}, {"simulated", number(r.evaluated), fmt::format("gap {:.2f} %", 100 * r.gap)}};
  if (r.best.empty()) {
    page.notices.emplace_back("Nothing fits into the device's memory.");
    return page;
  }
  const TunePoint& best = r.best.front();
  page.headline = best.words;
  page.tiles.insert(page.tiles.begin(), {{"step time", time_text(best.step_time_s), ""},
                                         {"MFU", percent_text(best.mfu), ""},
                                         {"tokens/s/GPU", count_text(best.tokens_per_s_per_gpu), ""},
                                         {"headroom", size_text(static_cast<double>(best.headroom_bytes)), ""}});
  if (r.decisions.empty()) page.notices.emplace_back("The scenario has the best settings already.");
  else page.sections.push_back(decisions_section(r));
  std::vector<ParetoPoint> points;
  for (const auto* list : {&r.front, &r.best})
    for (const TunePoint& p : *list) points.push_back({p.step_time_s, p.headroom_bytes, p.words});
  mark_front(points);
  page.sections.push_back(pareto_section(points, "step time", points.size()));
  page.sections.push_back(best_section(r.best));
  if (!r.elasticities.empty()) page.sections.push_back(elasticities_section(r));
  if (!r.robustness.empty()) page.sections.push_back(robustness_section(r));
  page.sections.push_back(settings_section(r));
  return page;
}

}  // namespace stepcast::cli
