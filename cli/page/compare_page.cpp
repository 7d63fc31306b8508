// See compare_page.hpp.
#include "cli/page/compare_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

/// Reports may come from files: what they lack or have as something else is null.
OrderedJson number_of(const OrderedJson& report, const char* key) {
  const auto found = report.find(key);
  return found != report.end() && found->is_number() ? *found : OrderedJson(nullptr);
}

std::string text_of(const OrderedJson& report, const char* key) {
  const auto found = report.find(key);
  return found != report.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string shown(const OrderedJson& value) { return value.is_string() ? value.get<std::string>() : value.is_null() ? "-" : value.dump(); }

OrderedJson progression(const OrderedJson& comparison) {
  OrderedJson json = section("progression", "Side by side", "The MFU of each.");
  json["stages"] = OrderedJson::array();
  for (std::size_t i = 0; i < comparison["reports"].size(); ++i) {
    const OrderedJson& report = comparison["reports"][i];
    json["stages"].push_back({{"name", comparison["names"][i]},
                              {"why", report.contains("scenario") && report["scenario"].is_object() ? text_of(report["scenario"], "why") : ""},
                              {"outcome", text_of(report, "outcome")},
                              {"bound", text_of(report, "bound")},
                              {"mfu", number_of(report, "mfu")},
                              {"step_time_s", number_of(report, "step_time_s")},
                              {"tokens_per_s_per_gpu", number_of(report, "tokens_per_s_per_gpu")}});
  }
  return json;
}

OrderedJson bridge(const OrderedJson& difference) {
  const OrderedJson& step = difference["step_time"];
  const double from = step["from_s"], to = step["to_s"];
  std::string text = fmt::format("{} becomes {}: {:+.1f} %.", time_text(from), time_text(to), 100 * (to / from - 1));
  if (!step["scaled_to_tokens"].is_null()) text += " For as many tokens as the first has in a step.";
  OrderedJson json = section("bridge", fmt::format("Step time, from {} to {}", shown(difference["against"]), shown(difference["name"])), text);
  json["from"] = {{"name", difference["against"]}, {"seconds", from}};
  json["to"] = {{"name", difference["name"]}, {"seconds", to}};
  json["parts"] = OrderedJson::array();
  for (const OrderedJson& part : step["parts"]) json["parts"].push_back({{"part", part["part"]}, {"delta_s", part["delta_s"]}});
  return json;
}

OrderedJson settings(const OrderedJson& difference) {
  OrderedJson json = section("table", fmt::format("Settings of {} that differ", shown(difference["name"])), "");
  json["columns"] = {"setting", shown(difference["against"]), shown(difference["name"])};
  json["rows"] = OrderedJson::array();
  for (const OrderedJson& row : difference["settings"]) json["rows"].push_back({row["pointer"], shown(row["from"]), shown(row["to"])});
  json["text"] = fmt::format("{} of them.", json["rows"].size());
  return json;
}

OrderedJson memory(const OrderedJson& difference) {
  OrderedJson json = section("table", fmt::format("Memory at the peak of {}", shown(difference["name"])), "Whose memory differs, largest difference first.");
  json["columns"] = {"owner", shown(difference["against"]), shown(difference["name"]), "difference"};
  json["rows"] = OrderedJson::array();
  for (const OrderedJson& row : difference["memory"]) {
    const double delta = row["delta_bytes"];
    json["rows"].push_back({row["owner"], size_text(row["from_bytes"]), size_text(row["to_bytes"]), (delta < 0 ? "-" : "+") + size_text(std::abs(delta))});
  }
  return json;
}

}  // namespace

Page compare_page(const OrderedJson& comparison) {
  Page page{"compare", shown(comparison["names"][0]), "", {}, {}, {}};
  for (std::size_t i = 1; i < comparison["names"].size(); ++i) page.title += (i == 1 ? " against " : ", ") + shown(comparison["names"][i]);
  for (std::size_t i = 0; i < comparison["reports"].size(); ++i) {
    const OrderedJson& report = comparison["reports"][i];
    const OrderedJson step = number_of(report, "step_time_s"), mfu = number_of(report, "mfu");
    page.tiles.push_back({shown(comparison["names"][i]), step.is_null() ? text_of(report, "outcome") : time_text(step),
                          mfu.is_null() ? "" : fmt::format("MFU {}, bound by {}", percent_text(mfu), text_of(report, "bound"))});
  }
  const auto has_mfu = [](const OrderedJson& report) { return !number_of(report, "mfu").is_null(); };
  if (std::any_of(comparison["reports"].begin(), comparison["reports"].end(), has_mfu)) page.sections.push_back(progression(comparison));
  for (const OrderedJson& difference : comparison["differences"]) {
    if (!difference["step_time"].is_null()) page.sections.push_back(bridge(difference));
    if (!difference["settings"].is_null() && !difference["settings"].empty()) page.sections.push_back(settings(difference));
    if (!difference["memory"].empty()) page.sections.push_back(memory(difference));
  }
  return page;
}

}  // namespace stepcast::cli
