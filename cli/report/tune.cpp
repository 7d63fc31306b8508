// See tune.hpp.
#include "cli/report/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

/// Sets as an object; a set that takes a section away ("/policy=null") stays, since what follows builds on it.
OrderedJson sets_json(const std::vector<std::string>& sets) {
  OrderedJson json = OrderedJson::object();
  for (const std::string& set : sets) {
    const std::string text = set.substr(set.find('=') + 1);
    const OrderedJson value = OrderedJson::parse(text, nullptr, false);
    json[set.substr(0, set.find('='))] = value.is_discarded() ? OrderedJson(text) : value;
  }
  return json;
}

OrderedJson point_json(const TunePoint& p) {
  return {{"words", p.words},
          {"set", sets_json(p.sets)},
          {"step_time_s", p.step_time_s},
          {"tokens_per_s_per_gpu", p.tokens_per_s_per_gpu},
          {"mfu", p.mfu},
          {"peak_reserved_bytes", p.peak_reserved_bytes},
          {"memory_headroom_bytes", p.headroom_bytes}};
}

OrderedJson points_json(const std::vector<TunePoint>& points) {
  OrderedJson json = OrderedJson::array();
  for (const TunePoint& point : points) json.push_back(point_json(point));
  return json;
}

OrderedJson decision_json(const Decision& d) {
  const bool ok = d.outcome == "ok";
  return {{"question", d.question},
          {"answer", d.answer},
          {"change", d.change},
          {"set", sets_json(d.sets)},
          {"outcome", d.outcome},
          {"step_time_s", ok ? OrderedJson(d.step_time_s) : OrderedJson(nullptr)},
          {"mfu", ok ? OrderedJson(d.mfu) : OrderedJson(nullptr)},
          {"gain", d.gain}};
}

std::string points_text(const std::vector<TunePoint>& points) {
  Table table({"step time", "tokens/s/GPU", "MFU", "headroom", ""}, {4});
  for (const TunePoint& p : points)
    table.add({time_text(p.step_time_s), count_text(p.tokens_per_s_per_gpu), percent_text(p.mfu), size_text(static_cast<double>(p.headroom_bytes)), p.words});
  return table.render();
}

std::string decisions_text(const TuneResult& r) {
  std::string text = "From the scenario to the best, each time the change that gains most\n";
  for (const Decision& d : r.decisions) {
    text += fmt::format("  {} {}\n", d.question, d.answer);
    const std::string after = d.outcome == "ok" ? fmt::format("{}, MFU {}", time_text(d.step_time_s), percent_text(d.mfu)) : d.outcome;
    const std::string gain = d.gain != 0 ? fmt::format(" ({:+.1f} %)", -100 * d.gain) : "";
    text += fmt::format("    -> {}: {}{}\n", d.change, after, gain);
  }
  return r.decisions.empty() ? "The scenario has the best settings already\n" : text;
}

std::string beyond_text(const TuneResult& r) {
  std::string text = "What would help beyond settings (relative change of the step time per relative change)\n";
  for (const Elasticity& e : r.elasticities) text += fmt::format("  {:<34} {:+.3f}\n", e.what, e.elasticity);
  text += "If the hardware is other than assumed\n";
  for (const Trial& t : r.robustness)
    text += fmt::format("  {:<34} {}\n", t.assumption, t.stays ? "the winner stays" : fmt::format("another is faster by {:.2f} %", 100 * t.loss));
  return text;
}

/// GPU-seconds of a step: what it costs.
double gpu_seconds(const ScaleRow& row) { return row.point->step_time_s * static_cast<double>(row.gpus); }

OrderedJson scale_json(const ScaleRow& row) {
  OrderedJson json = {{"nodes", row.nodes}, {"gpus", row.gpus}};
  if (!row.refusal.empty()) json["refused"] = row.refusal;
  if (!row.point) return json;
  json.update(points_json({*row.point})[0]);
  json["gpu_s_per_step"] = gpu_seconds(row);
  return json;
}

std::string scale_text(const std::vector<ScaleRow>& rows) {
  if (rows.empty()) return "";
  Table table({"nodes", "GPUs", "step", "MFU", "GPU-seconds", "settings"}, {5});
  for (const ScaleRow& row : rows) {
    std::vector<std::string> cells = {std::to_string(row.nodes), std::to_string(row.gpus)};
    if (row.point)
      cells.insert(cells.end(), {time_text(row.point->step_time_s), percent_text(row.point->mfu), fmt::format("{:.1f}", gpu_seconds(row)), row.point->words});
    else cells.insert(cells.end(), {"-", "-", "-", row.refusal.empty() ? "nothing fits" : row.refusal});
    table.add(std::move(cells));
  }
  return "The best by number of nodes, at the same global batch\n" + table.render();
}

}  // namespace

OrderedJson to_json(const TuneResult& r) {
  OrderedJson json = {{"schema", "stepcast.tune/1"}, {"scenario", r.scenario}, {"best", points_json(r.best)}, {"points", r.points}, {"evaluated", r.evaluated}};
  json["pruned"] = r.points - r.evaluated - r.refused - r.not_reached;
  json["pruned_by_memory"] = r.pruned_by_memory;
  json["pruned_by_time"] = r.pruned_by_time;
  json["refused"] = r.refused;
  json["not_reached"] = r.not_reached;
  json["gap"] = r.gap;
  json["front"] = points_json(r.front);
  json["decisions"] = OrderedJson::array();
  for (const Decision& d : r.decisions) json["decisions"].push_back(decision_json(d));
  json["elasticities"] = OrderedJson::array();
  for (const Elasticity& e : r.elasticities)
    json["elasticities"].push_back({{"what", e.what}, {"set", sets_json(e.sets)}, {"step_time_s", e.step_time_s}, {"elasticity", e.elasticity}});
  json["robustness"] = OrderedJson::array();
  for (const Trial& t : r.robustness) json["robustness"].push_back({{"assumption", t.assumption}, {"stays", t.stays}, {"loss", t.loss}});
  if (!r.scale.empty()) json["scale"] = OrderedJson::array();
  for (const ScaleRow& row : r.scale) json["scale"].push_back(scale_json(row));
  json["settings"] = OrderedJson::object();
  for (const auto& [name, text] : r.settings) json["settings"][name] = text;
  return json;
}

std::string to_text(const TuneResult& r) {
  std::string text =
      fmt::format("{}: {} points, {} simulated, {} can't be; no point is faster by more than {:.2f} %\n", r.scenario, count_text(static_cast<double>(r.points)),
                  count_text(static_cast<double>(r.evaluated)), count_text(static_cast<double>(r.refused)), 100 * r.gap);
  if (r.best.empty()) return text + "nothing fits into the device's memory\n" + scale_text(r.scale);
  text += points_text(r.best) + "Step time against headroom, among what was simulated\n" + points_text(r.front) + decisions_text(r) + beyond_text(r) +
          scale_text(r.scale) + "Settings\n";
  for (const auto& [name, lines] : r.settings) {
    if (name == "fsdp1" || name == "fsdp2" || name == "environment") text += fmt::format("--- {}\n{}", name, lines);
  }
  return text + "--- accelerate, torchtitan, deepspeed, llm_foundry: --json or --out\n";
}

}  // namespace stepcast::cli
