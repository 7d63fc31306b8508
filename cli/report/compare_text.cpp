// A comparison as text: one column per report, then what differs from the first and why. Test: tests/unit/compare_test.cpp.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/report/compare.hpp"
#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kPartsShown = 8;

std::string signed_text(double value, const std::string& size) { return (value < 0 ? "-" : "+") + size; }
std::string time_delta(double seconds) { return signed_text(seconds, time_text(std::abs(seconds))); }
std::string size_delta(double bytes) { return signed_text(bytes, size_text(std::abs(bytes))); }

using Format = std::string (*)(double);

struct Row {
  const char* title;
  const char* key;
  Format format;
};

std::string plain_count(double value) { return count_text(value); }

constexpr Row kRows[] = {{"step time", "step_time_s", time_text},
                         {"tokens/s/GPU", "tokens_per_s_per_gpu", plain_count},
                         {"MFU", "mfu", percent_text},
                         {"HFU", "hfu", percent_text},
                         {"MFU, 6P only", "mfu_6p", percent_text},
                         {"peak allocated", "peak_allocated_bytes", size_text},
                         {"peak reserved", "peak_reserved_bytes", size_text},
                         {"allocation retries", "num_alloc_retries", plain_count},
                         {"communication", "comm_s", time_text},
                         {"exposed", "exposed_comm_s", time_text},
                         {"compute", "compute_s", time_text},
                         {"device idle", "idle_s", time_text}};

std::string cell(const OrderedJson& report, const Row& row) {
  if (!report.is_object() || !report.contains(row.key) || !report[row.key].is_number()) return "-";
  return row.format(report[row.key].get<double>());
}

std::string side_by_side(const OrderedJson& comparison) {
  std::vector<std::string> header = {""};
  for (const OrderedJson& name : comparison["names"]) header.push_back(name.get<std::string>());
  Table table(header);
  for (const Row& row : kRows) {
    std::vector<std::string> cells = {row.title};
    for (const OrderedJson& report : comparison["reports"]) cells.push_back(cell(report, row));
    table.add(cells);
  }
  for (const char* key : {"bound", "outcome"}) {
    std::vector<std::string> cells = {key};
    for (const OrderedJson& report : comparison["reports"]) {
      const bool text = report.is_object() && report.contains(key) && report[key].is_string();
      cells.push_back(text ? report[key].get<std::string>() : "-");
    }
    table.add(cells);
  }
  return table.render();
}

std::string settings_lines(const OrderedJson& rows) {
  if (!rows.is_array()) return "";
  if (rows.empty()) return "  settings: the same\n";
  Table table({"", "", ""}, {0, 1, 2});
  for (const OrderedJson& row : rows) table.add({row["pointer"].get<std::string>(), row["from"].dump(), "-> " + row["to"].dump()});
  return table.render();
}

std::string step_time(const OrderedJson& step) {
  if (step.is_null()) return "";
  const double from = step["from_s"].get<double>(), to = step["to_s"].get<double>(), delta = step["delta_s"].get<double>();
  std::string text = fmt::format("  step time {} -> {} ({}, {:+.1f} %)", time_text(from), time_text(to), time_delta(delta), from > 0 ? 100 * delta / from : 0);
  if (!step["scaled_to_tokens"].is_null()) text += fmt::format(", scaled to {} tokens per GPU", count_text(step["scaled_to_tokens"].get<double>()));
  if (delta == 0) return text + "\n";
  text += ", of which\n";
  Table table({"", "", "", ""}, {0});
  std::size_t shown = 0;
  for (const OrderedJson& part : step["parts"]) {
    const double part_delta = part["delta_s"].get<double>();
    if (part_delta == 0 || ++shown > kPartsShown) continue;
    table.add({"  " + part["part"].get<std::string>(), time_text(part["from_s"].get<double>()), "-> " + time_text(part["to_s"].get<double>()),
               time_delta(part_delta)});
  }
  return text + table.render();
}

std::string memory_lines(const OrderedJson& difference) {
  const OrderedJson& peak = difference["metrics"]["peak_allocated_bytes"];
  if (!peak["from"].is_number() || !peak["to"].is_number()) return "";
  const double from = peak["from"].get<double>(), to = peak["to"].get<double>();
  if (from == to) return "";
  Table table({"", "", "", ""}, {0});
  for (const OrderedJson& row : difference["memory"]) {
    table.add({"  " + row["owner"].get<std::string>(), size_text(row["from_bytes"].get<double>()), "-> " + size_text(row["to_bytes"].get<double>()),
               size_delta(row["delta_bytes"].get<double>())});
  }
  return fmt::format("  peak allocated {} -> {} ({}), of which\n", size_text(from), size_text(to), size_delta(to - from)) + table.render();
}

std::string collectives(const OrderedJson& rows) {
  std::string text;
  for (const OrderedJson& row : rows) {
    text += fmt::format("  {} per step: {:.0f} -> {:.0f} calls, {} -> {}, exposed {} -> {}\n", row["kind"].get<std::string>(), row["from_calls"].get<double>(),
                        row["to_calls"].get<double>(), size_text(row["from_bytes"].get<double>()), size_text(row["to_bytes"].get<double>()),
                        time_text(row["from_exposed_s"].get<double>()), time_text(row["to_exposed_s"].get<double>()));
  }
  return text;
}

std::string phases(const OrderedJson& rows) {
  std::string text;
  for (const OrderedJson& row : rows) {
    const double from = row["from_span_s"].get<double>(), to = row["to_span_s"].get<double>();
    if (from != to) text += fmt::format("  {}: {} -> {} ({})\n", row["phase"].get<std::string>(), time_text(from), time_text(to), time_delta(to - from));
  }
  return text;
}

}  // namespace

std::string compare_text(const OrderedJson& comparison) {
  std::string text = side_by_side(comparison);
  for (const OrderedJson& d : comparison["differences"]) {
    text += fmt::format("\n{} against {}\n", d["name"].get<std::string>(), d["against"].get<std::string>());
    text += settings_lines(d["settings"]) + step_time(d["step_time"]) + phases(d["phases"]) + collectives(d["collectives"]) + memory_lines(d);
  }
  return text;
}

}  // namespace stepcast::cli
