// What differs between reports and why. Every number is read with care: a report file may come from anywhere. Test: tests/unit/compare_test.cpp.
#include "cli/report/compare.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace stepcast::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMetrics[] = {"step_time_s",
                                    "tokens_per_s_per_gpu",
                                    "mfu",
                                    "hfu",
                                    "mfu_6p",
                                    "peak_allocated_bytes",
                                    "peak_reserved_bytes",
                                    "num_alloc_retries",
                                    "comm_s",
                                    "exposed_comm_s",
                                    "overlap_fraction",
                                    "compute_s",
                                    "idle_s",
                                    "host_blocked_s",
                                    "data_wait_s"};

const Json* member(const Json& j, const std::string& key) {
  if (!j.is_object()) return nullptr;
  const auto at = j.find(key);
  return at == j.end() ? nullptr : &*at;
}

std::optional<double> number(const Json& j, const std::string& key) {
  const Json* value = member(j, key);
  return value && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

Json or_null(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json metrics(const Json& a, const Json& b) {
  Json result = Json::object();
  for (const char* key : kMetrics) {
    const auto from = number(a, key), to = number(b, key);
    const bool both = from && to && *from != 0;
    result[key] = {{"from", or_null(from)}, {"to", or_null(to)}, {"change", both ? Json(*to / *from - 1) : Json(nullptr)}};
  }
  return result;
}

/// Keys of a section in both reports, in the order of the first and then of the second.
std::vector<std::string> keys_of(const Json& a, const Json& b, const char* section) {
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const Json* report : {&a, &b}) {
    const Json* rows = member(*report, section);
    if (!rows || !rows->is_object()) continue;
    for (const auto& [key, value] : rows->items()) {
      if (seen.insert(key).second) keys.push_back(key);
    }
  }
  return keys;
}

double row_number(const Json& report, const char* section, const std::string& row, const char* key) {
  const Json* rows = member(report, section);
  const Json* entry = rows ? member(*rows, row) : nullptr;
  if (!entry) return 0;
  return key ? number(*entry, key).value_or(0) : entry->is_number() ? entry->get<double>() : 0;
}

void sort_by_delta(Json& rows, const char* key) {
  std::stable_sort(rows.begin(), rows.end(), [key](const Json& x, const Json& y) { return std::abs(x[key].get<double>()) > std::abs(y[key].get<double>()); });
}

/// Step time = kernels on the compute stream + its idle time by cause, so the differences of the parts add up to that of the step.
Json step_parts(const Json& a, const Json& b, double scale) {
  Json parts = Json::array();
  double busy_a = number(a, "step_time_s").value_or(0), busy_b = number(b, "step_time_s").value_or(0);
  const auto add = [&](const std::string& part, double from, double to) {
    if (from != 0 || to != 0) parts.push_back({{"part", part}, {"from_s", from}, {"to_s", to * scale}, {"delta_s", to * scale - from}});
  };
  for (const std::string& cause : keys_of(a, b, "gaps")) {
    const double from = row_number(a, "gaps", cause, "total_s"), to = row_number(b, "gaps", cause, "total_s");
    busy_a -= from;
    busy_b -= to;
    add("idle: " + cause, from, to);
  }
  add("kernels", busy_a, busy_b);
  sort_by_delta(parts, "delta_s");
  return parts;
}

/// Ratio by which times of `b` count, so that both stand for the same number of tokens.
double token_scale(const Json& a, const Json& b) {
  const auto tokens_a = number(a, "tokens_per_step_per_gpu"), tokens_b = number(b, "tokens_per_step_per_gpu");
  const bool known = tokens_a && tokens_b && *tokens_a > 0 && *tokens_b > 0;
  return known ? *tokens_a / *tokens_b : 1;
}

Json step_time(const Json& a, const Json& b) {
  const auto from = number(a, "step_time_s"), to = number(b, "step_time_s");
  if (!from || !to) return nullptr;
  const double scale = token_scale(a, b);
  const bool scaled = scale != 1;
  return {{"from_s", *from},
          {"to_s", *to * scale},
          {"delta_s", *to * scale - *from},
          {"scaled_to_tokens", scaled ? Json(*number(a, "tokens_per_step_per_gpu")) : Json(nullptr)},
          {"parts", step_parts(a, b, scale)}};
}

Json rows_of(const Json& a, const Json& b, const char* section, const char* label, const std::vector<const char*>& columns, double scale = 1) {
  Json rows = Json::array();
  for (const std::string& key : keys_of(a, b, section)) {
    Json row = {{label, key}};
    bool differs = false;
    for (const char* column : columns) {
      const double from = row_number(a, section, key, column), to = scale * row_number(b, section, key, column);
      differs = differs || from != to;
      row[std::string("from_") + column] = from;
      row[std::string("to_") + column] = to;
    }
    if (differs) rows.push_back(std::move(row));
  }
  return rows;
}

Json memory(const Json& a, const Json& b) {
  Json rows = Json::array();
  for (const std::string& owner : keys_of(a, b, "memory")) {
    const double from = row_number(a, "memory", owner, nullptr), to = row_number(b, "memory", owner, nullptr);
    if (from != to) rows.push_back({{"owner", owner}, {"from_bytes", from}, {"to_bytes", to}, {"delta_bytes", to - from}});
  }
  sort_by_delta(rows, "delta_bytes");
  return rows;
}

/// Settings of the resolved scenarios that differ. Names and words about them do not count.
Json settings(const Json& a, const Json& b) {
  const Json* from = member(a, "resolved_scenario");
  const Json* to = member(b, "resolved_scenario");
  if (!from || !to || !from->is_object() || !to->is_object()) return nullptr;
  const Json flat_a = from->flatten(), flat_b = to->flatten();
  std::set<std::string> pointers;
  for (const Json* flat : {&flat_a, &flat_b}) {
    for (const auto& [pointer, value] : flat->items()) pointers.insert(pointer);
  }
  Json rows = Json::array();
  for (const std::string& pointer : pointers) {
    if (pointer == "/name" || pointer == "/why" || pointer == "/schema") continue;
    const Json* x = member(flat_a, pointer);
    const Json* y = member(flat_b, pointer);
    if (x && y && *x == *y) continue;
    rows.push_back({{"pointer", pointer}, {"from", x ? *x : Json(nullptr)}, {"to", y ? *y : Json(nullptr)}});
  }
  return rows;
}

Json difference(const std::vector<std::string>& names, const std::vector<Json>& reports, std::size_t i) {
  const Json &a = reports[0], &b = reports[i];
  const auto text = [](const Json& report, const char* key) { return member(report, key) ? *member(report, key) : Json(nullptr); };
  return {{"name", names[i]},
          {"against", names[0]},
          {"settings", settings(a, b)},
          {"outcome", {{"from", text(a, "outcome")}, {"to", text(b, "outcome")}}},
          {"bound", {{"from", text(a, "bound")}, {"to", text(b, "bound")}}},
          {"metrics", metrics(a, b)},
          {"step_time", step_time(a, b)},
          {"phases", rows_of(a, b, "phases", "phase", {"span_s", "exposed_comm_s", "idle_s"}, token_scale(a, b))},
          {"collectives", rows_of(a, b, "collectives", "kind", {"calls", "bytes", "exposed_s"})},
          {"memory", memory(a, b)}};
}

}  // namespace

Json compare(const std::vector<std::string>& names, const std::vector<Json>& reports) {
  Json differences = Json::array();
  for (std::size_t i = 1; i < reports.size(); ++i) differences.push_back(difference(names, reports, i));
  return {{"schema", "stepcast.compare/1"}, {"names", names}, {"reports", reports}, {"differences", differences}};
}

}  // namespace stepcast::cli
