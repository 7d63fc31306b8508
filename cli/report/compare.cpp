// What differs between reports and why. Every number is read with care: a report file may come from anywhere. Test: tests/unit/compare_test.cpp.
#include "cli/report/compare.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

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

const OrderedJson* member(const OrderedJson& j, const std::string& key) {
  if (!j.is_object()) return nullptr;
  const auto at = j.find(key);
  return at == j.end() ? nullptr : &*at;
}

std::optional<double> number(const OrderedJson& j, const std::string& key) {
  const OrderedJson* value = member(j, key);
  return value && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

OrderedJson or_null(std::optional<double> value) { return value ? OrderedJson(*value) : OrderedJson(nullptr); }

OrderedJson metrics(const OrderedJson& a, const OrderedJson& b) {
  OrderedJson result = OrderedJson::object();
  for (const char* key : kMetrics) {
    const auto from = number(a, key), to = number(b, key);
    const bool both = from && to && *from != 0;
    result[key] = {{"from", or_null(from)}, {"to", or_null(to)}, {"change", both ? OrderedJson(*to / *from - 1) : OrderedJson(nullptr)}};
  }
  return result;
}

/// Keys of a section in both reports, in the order of the first and then of the second.
std::vector<std::string> keys_of(const OrderedJson& a, const OrderedJson& b, const char* section) {
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const OrderedJson* report : {&a, &b}) {
    const OrderedJson* rows = member(*report, section);
    if (!rows || !rows->is_object()) continue;
    for (const auto& [key, value] : rows->items()) {
      if (seen.insert(key).second) keys.push_back(key);
    }
  }
  return keys;
}

double row_number(const OrderedJson& report, const char* section, const std::string& row, const char* key) {
  const OrderedJson* rows = member(report, section);
  const OrderedJson* entry = rows ? member(*rows, row) : nullptr;
  if (!entry) return 0;
  return key ? number(*entry, key).value_or(0) : entry->is_number() ? entry->get<double>() : 0;
}

void sort_by_delta(OrderedJson& rows, const char* key) {
  std::stable_sort(rows.begin(), rows.end(),
                   [key](const OrderedJson& x, const OrderedJson& y) { return std::abs(x[key].get<double>()) > std::abs(y[key].get<double>()); });
}

/// Step time = kernels on the compute stream + its idle time by cause, so the differences of the parts add up to that of the step.
OrderedJson step_parts(const OrderedJson& a, const OrderedJson& b, double scale) {
  OrderedJson parts = OrderedJson::array();
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
double token_scale(const OrderedJson& a, const OrderedJson& b) {
  const auto tokens_a = number(a, "tokens_per_step_per_gpu"), tokens_b = number(b, "tokens_per_step_per_gpu");
  const bool known = tokens_a && tokens_b && *tokens_a > 0 && *tokens_b > 0;
  return known ? *tokens_a / *tokens_b : 1;
}

OrderedJson step_time(const OrderedJson& a, const OrderedJson& b) {
  const auto from = number(a, "step_time_s"), to = number(b, "step_time_s");
  if (!from || !to) return nullptr;
  const double scale = token_scale(a, b);
  const bool scaled = scale != 1;
  return {{"from_s", *from},
          {"to_s", *to * scale},
          {"delta_s", *to * scale - *from},
          {"scaled_to_tokens", scaled ? OrderedJson(*number(a, "tokens_per_step_per_gpu")) : OrderedJson(nullptr)},
          {"parts", step_parts(a, b, scale)}};
}

OrderedJson rows_of(const OrderedJson& a, const OrderedJson& b, const char* section, const char* label, const std::vector<const char*>& columns,
                    double scale = 1) {
  OrderedJson rows = OrderedJson::array();
  for (const std::string& key : keys_of(a, b, section)) {
    OrderedJson row = {{label, key}};
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

OrderedJson memory(const OrderedJson& a, const OrderedJson& b) {
  OrderedJson rows = OrderedJson::array();
  for (const std::string& owner : keys_of(a, b, "memory")) {
    const double from = row_number(a, "memory", owner, nullptr), to = row_number(b, "memory", owner, nullptr);
    if (from != to) rows.push_back({{"owner", owner}, {"from_bytes", from}, {"to_bytes", to}, {"delta_bytes", to - from}});
  }
  sort_by_delta(rows, "delta_bytes");
  return rows;
}

/// Settings of the resolved scenarios that differ. Names and words about them do not count.
OrderedJson settings(const OrderedJson& a, const OrderedJson& b) {
  const OrderedJson* from = member(a, "resolved_scenario");
  const OrderedJson* to = member(b, "resolved_scenario");
  if (!from || !to || !from->is_object() || !to->is_object()) return nullptr;
  const OrderedJson flat_a = from->flatten(), flat_b = to->flatten();
  std::set<std::string> pointers;
  for (const OrderedJson* flat : {&flat_a, &flat_b}) {
    for (const auto& [pointer, value] : flat->items()) pointers.insert(pointer);
  }
  OrderedJson rows = OrderedJson::array();
  for (const std::string& pointer : pointers) {
    if (pointer == "/name" || pointer == "/why" || pointer == "/schema") continue;
    const OrderedJson* x = member(flat_a, pointer);
    const OrderedJson* y = member(flat_b, pointer);
    if (x && y && *x == *y) continue;
    rows.push_back({{"pointer", pointer}, {"from", x ? *x : OrderedJson(nullptr)}, {"to", y ? *y : OrderedJson(nullptr)}});
  }
  return rows;
}

OrderedJson difference(const std::vector<std::string>& names, const std::vector<OrderedJson>& reports, std::size_t i) {
  const OrderedJson &a = reports[0], &b = reports[i];
  const auto text = [](const OrderedJson& report, const char* key) { return member(report, key) ? *member(report, key) : OrderedJson(nullptr); };
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

OrderedJson compare(const std::vector<std::string>& names, const std::vector<OrderedJson>& reports) {
  OrderedJson differences = OrderedJson::array();
  for (std::size_t i = 1; i < reports.size(); ++i) differences.push_back(difference(names, reports, i));
  return {{"schema", "stepcast.compare/1"}, {"names", names}, {"reports", reports}, {"differences", differences}};
}

}  // namespace stepcast::cli
