// See run_page.hpp.
#include "cli/page/run_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/hardware.hpp"
#include "cli/page/question_sections.hpp"
#include "cli/report/explain.hpp"
#include "cli/report/out_of_memory.hpp"
#include "cli/report/table.hpp"
#include "cli/report/text.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kKernelsShown = 12;

std::string both_notes(const std::string& a, const std::string& b) { return a.empty() || b.empty() ? a + b : a + "; " + b; }

/// "80 %: 6.2 s to 7.1 s", where the report has an interval.
std::string range_note(const IntervalRow& interval, const Percentiles& figures, std::string (*words)(double)) {
  return interval.members > interval.left_out ? fmt::format("80 %: {} to {}", words(figures.p10), words(figures.p90)) : "";
}

std::vector<Tile> tiles_of(const Report& r) {
  if (r.outcome != "ok") return {{"outcome", r.outcome == "out_of_memory" ? "out of memory" : r.outcome, ""}};
  std::vector<Tile> tiles = {
      {"step time", time_text(r.step_time_s),
       both_notes(r.mean_of_steps ? fmt::format("mean of {} steps", r.measured_steps) : "", range_note(r.interval, r.interval.step_time_s, time_text))}};
  if (r.has_peak) {
    tiles.push_back(
        {"MFU", percent_text(r.mfu), both_notes(range_note(r.interval, r.interval.mfu, percent_text), fmt::format("6P only: {}", percent_text(r.mfu_6p)))});
    tiles.push_back({"HFU", percent_text(r.hfu), "recomputation counted"});
  }
  tiles.push_back({"tokens/s/GPU", count_text(r.tokens_per_s_per_gpu), fmt::format("{} GPUs", r.ranks)});
  if (r.memory_limit_bytes > 0) tiles.push_back({"peak reserved", bytes_text(r.peak_reserved_bytes), "of " + bytes_text(r.memory_limit_bytes)});
  tiles.push_back({"exposed communication", time_text(r.exposed_comm_s), fmt::format("{} hidden", percent_text(r.overlap_fraction))});
  tiles.push_back({"bound by", r.bound, ""});
  return tiles;
}

OrderedJson kernels_section(const Report& r) {
  const std::size_t shown = std::min(kKernelsShown, r.kernels.size());
  OrderedJson json = section("bars", "Longest kernels", fmt::format("The {} kernels that take most of the step, of {}.", shown, r.kernels.size()));
  json["unit"] = "s";
  json["bars"] = OrderedJson::array();
  for (std::size_t i = 0; i < shown; ++i)
    json["bars"].push_back(
        {{"name", r.kernels[i].name}, {"value", r.kernels[i].total_s}, {"note", count_text(static_cast<double>(r.kernels[i].count)) + " times"}});
  return json;
}

OrderedJson phases_section(const Report& r) {
  OrderedJson json = section("parts", "Phases", "What forward, backward and optimizer spend: kernels, communication with no kernel beside it, and neither.");
  json["unit"] = "s";
  json["rows"] = OrderedJson::array();
  for (const PhaseRow& p : r.phases)
    json["rows"].push_back({{"name", p.name}, {"parts", {{"compute", p.compute_s}, {"exposed communication", p.exposed_comm_s}, {"idle", p.idle_s}}}});
  return json;
}

OrderedJson collectives_section(const Report& r) {
  OrderedJson json = section("table", "Collectives", "Per step and rank. Exposed: with no kernel beside it.");
  json["columns"] = {"kind", "calls", "bytes", "on the wire", "exposed"};
  json["rows"] = OrderedJson::array();
  for (const CollectiveRow& c : r.collectives)
    json["rows"].push_back({c.kind, count_text(static_cast<double>(c.calls)), bytes_text(c.bytes), size_text(c.wire_bytes), time_text(c.exposed_s)});
  return json;
}

OrderedJson owners_section(const std::string& title, const std::string& text, const std::vector<OwnerRow>& owners) {
  OrderedJson json = section("bars", title, text);
  json["unit"] = "B";
  json["bars"] = OrderedJson::array();
  for (const OwnerRow& row : owners) json["bars"].push_back({{"name", row.owner}, {"value", row.bytes}, {"note", ""}});
  return json;
}

void add_out_of_memory(const Report& r, Page& page) {
  const OutOfMemoryRow& o = r.out_of_memory;
  const std::string text = fmt::format("{} asked for {} when {} of {} were reserved.", o.buffer, bytes_text(o.requested_bytes), bytes_text(o.reserved_bytes),
                                       bytes_text(o.limit_bytes));
  page.sections.push_back(owners_section("What held the memory", text, o.by_owner));
  if (o.remedies.empty()) return;
  OrderedJson table = section("table", "What would fit", "Changes that were simulated, nearest first.");
  table["columns"] = {"change", "outcome", "step time", "tokens/s/GPU", "headroom"};
  table["rows"] = OrderedJson::array();
  for (const Remedy& m : o.remedies) {
    const bool ok = m.outcome == "ok";
    table["rows"].push_back(
        {m.what, m.outcome, ok ? time_text(m.step_time_s) : "-", ok ? count_text(m.tokens_per_s_per_gpu) : "-", ok ? bytes_text(m.headroom_bytes) : "-"});
  }
  page.sections.push_back(std::move(table));
}

void add_step(const Prediction& prediction, const Extras& extras, Page& page) {
  const Report& r = prediction.report;
  if (r.has_peak && prediction.result.step_end.size() > 1) page.sections.push_back(waterfall_section(prediction));
  if (r.interval.members > r.interval.left_out) page.sections.push_back(interval_section(r));
  if (extras.cost) page.sections.push_back(cost_section(*extras.cost));
  page.sections.push_back(timeline_section(prediction));
  page.sections.push_back(phases_section(r));
  if (!prediction.result.trace.ranks.front().memory.empty()) page.sections.push_back(memory_section(prediction));
  page.sections.push_back(kernels_section(r));
  if (!r.collectives.empty()) page.sections.push_back(collectives_section(r));
}

}  // namespace

OrderedJson progression_section(const std::vector<Report>& stages) {
  OrderedJson json = section("progression", "MFU by stage", "");
  json["stages"] = OrderedJson::array();
  const Report* best = nullptr;
  for (const Report& r : stages) {
    const bool ok = r.outcome == "ok";
    if (ok && (!best || r.tokens_per_s_per_gpu > best->tokens_per_s_per_gpu)) best = &r;
    json["stages"].push_back({{"name", r.scenario.name},
                              {"why", r.scenario.why},
                              {"outcome", r.outcome},
                              {"bound", r.bound},
                              {"mfu", ok && r.has_peak ? OrderedJson(r.mfu) : OrderedJson(nullptr)},
                              {"step_time_s", ok ? OrderedJson(r.step_time_s) : OrderedJson(nullptr)},
                              {"tokens_per_s_per_gpu", ok ? OrderedJson(r.tokens_per_s_per_gpu) : OrderedJson(nullptr)}});
  }
  if (best && best->has_peak && stages.front().outcome == "ok")
    json["text"] = fmt::format("From {} to {}: MFU {} to {}, {:.2f} times as many tokens per second.", stages.front().scenario.name, best->scenario.name,
                               percent_text(stages.front().mfu), percent_text(best->mfu), best->tokens_per_s_per_gpu / stages.front().tokens_per_s_per_gpu);
  return json;
}

OrderedJson waterfall_section(const Prediction& prediction) {
  const Explanation e = explain(prediction);
  const auto largest = std::max_element(e.losses.begin(), e.losses.end(), [](const Loss& a, const Loss& b) { return a.seconds < b.seconds; });
  std::string text = fmt::format("Of a step of {}, model FLOPs at the device's peak would take {}: an MFU of {}.", time_text(e.step_s), time_text(e.ideal_s),
                                 percent_text(e.ideal_s / e.step_s));
  if (largest != e.losses.end()) text += fmt::format(" The largest loss: {}, {}.", largest->name, percent_text(largest->seconds / e.step_s));
  OrderedJson json = section("waterfall", "From the peak to the MFU", text);
  json.update(to_json(e));
  return json;
}

OrderedJson constants_section(const scenarios::Scenario& scenario) {
  const Hardware hardware = hardware_of(scenario);
  std::array<int, 4> counts{};
  OrderedJson rows = OrderedJson::array();
  for (const hw::Profile* profile : {&hardware.gpu, &hardware.cluster.node}) {
    for (const auto& [name, constant] : profile->constants) {
      ++counts[static_cast<std::size_t>(constant.origin)];
      rows.push_back({profile->name, name, fmt::format("{:.6g}", constant.value), hw::name(constant.origin), constant.source});
    }
  }
  OrderedJson json =
      section("folded_table", "Constants and their sources",
              fmt::format("{} measured, {} from data sheets, {} fitted to runs, {} assumed. Values in SI units.", counts[0], counts[1], counts[2], counts[3]));
  json["columns"] = {"profile", "constant", "value", "kind", "source"};
  json["rows"] = std::move(rows);
  return json;
}

Page live_page(const Prediction& prediction) {
  constexpr std::int64_t kParts = 1000;  // about a pixel each
  const Report& r = prediction.report;
  Page page{"serve", r.scenario.name.empty() ? r.scenario.model : r.scenario.name, headline(r.scenario), tiles_of(r), r.warnings, {}};
  for (const std::string& wait : r.deadlock) page.notices.push_back(wait);
  if (r.outcome == "out_of_memory") add_out_of_memory(r, page);
  if (r.outcome != "ok") return page;
  if (r.has_peak && prediction.result.step_end.size() > 1) page.sections.push_back(waterfall_section(prediction));
  page.sections.push_back(timeline_section(prediction, kParts));
  if (r.memory.empty()) return page;
  const std::string text = fmt::format("{} allocated and {} reserved at most, of {}.", bytes_text(r.peak_allocated_bytes), bytes_text(r.peak_reserved_bytes),
                                       bytes_text(r.memory_limit_bytes));
  page.sections.push_back(owners_section("Memory at the peak", text, r.memory));
  return page;
}

Page page_of(const Prediction& prediction, const Extras& extras, const std::vector<Report>& stages) {
  const Report& r = prediction.report;
  Page page{stages.empty() ? "run" : "demo", r.scenario.name.empty() ? r.scenario.model : r.scenario.name, headline(r.scenario), tiles_of(r), r.warnings, {}};
  if (extras.cost) {
    const CostLine days = lines_of(*extras.cost).front();
    page.tiles.push_back(
        {"training on " + count_text(extras.cost->asked.tokens) + " tokens", days.value + " days", days.range.empty() ? "" : "80 %: " + days.range});
  }
  if (!stages.empty()) page.sections.push_back(progression_section(stages));
  if (r.outcome == "ok") add_step(prediction, extras, page);
  if (r.outcome == "out_of_memory") add_out_of_memory(r, page);
  if (extras.roofline) page.sections.push_back(roofline_section(*extras.roofline, prediction.scenario.batch.micro_batch));
  if (!extras.scaling.empty()) page.sections.push_back(scaling_section(extras.scaling));
  if (extras.answers) page.sections.push_back(answers_section(*extras.answers));
  for (const std::string& wait : r.deadlock) page.notices.push_back(wait);
  if (r.has_peak && !prediction.scenario.fixed_costs) page.sections.push_back(constants_section(prediction.scenario));
  return page;
}

}  // namespace stepcast::cli
