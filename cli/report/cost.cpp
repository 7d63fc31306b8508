// See cost.hpp.
#include "cli/report/cost.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

/// The figures that were asked for, `factor` times as large.
OrderedJson cost_figures(const Cost& c, double factor) {
  OrderedJson json = {{"gpu_hours", factor * c.gpu_hours}, {"days", factor * c.days}};
  if (c.asked.gpu_hour_price > 0) {
    json["price"] = factor * c.price;
    json["price_per_million_tokens"] = factor * c.price_per_million_tokens;
  }
  if (c.asked.gpu_watts > 0) json["kilowatt_hours"] = factor * c.kilowatt_hours;
  return json;
}

std::string amount_text(double value) { return value < 1000 ? fmt::format("{:.4g}", value) : count_text(value); }

}  // namespace

Cost cost_of(const Report& report, const CostQuestion& question) {
  Cost cost;
  cost.asked = question;
  const double seconds = question.tokens / (report.tokens_per_s_per_gpu * static_cast<double>(report.ranks));
  cost.days = seconds / 86400;
  cost.gpu_hours = seconds / 3600 * static_cast<double>(report.ranks);
  cost.price = cost.gpu_hours * question.gpu_hour_price;
  cost.price_per_million_tokens = cost.price / question.tokens * 1e6;
  cost.kilowatt_hours = cost.gpu_hours * question.gpu_watts / 1000;
  const Percentiles& times = report.interval.step_time_s;
  if (report.interval.members > report.interval.left_out)
    cost.relative = Percentiles{times.p10 / report.step_time_s, times.p50 / report.step_time_s, times.p90 / report.step_time_s};
  return cost;
}

std::vector<CostLine> lines_of(const Cost& c) {
  std::vector<CostLine> lines;
  const auto add = [&](const std::string& name, double value) {
    lines.push_back({name, amount_text(value), c.relative ? amount_text(value * c.relative->p10) + " to " + amount_text(value * c.relative->p90) : ""});
  };
  add("days", c.days);
  add("GPU-hours", c.gpu_hours);
  if (c.asked.gpu_hour_price > 0) {
    add(fmt::format("price, at {:g} per GPU-hour", c.asked.gpu_hour_price), c.price);
    add("price per million tokens", c.price_per_million_tokens);
  }
  if (c.asked.gpu_watts > 0) add(fmt::format("kWh, at {:g} W per GPU", c.asked.gpu_watts), c.kilowatt_hours);
  return lines;
}

OrderedJson to_json(const Cost& c) {
  OrderedJson json = {{"tokens", c.asked.tokens}};
  json.update(cost_figures(c, 1));
  if (c.relative) json["interval"] = {{"p10", cost_figures(c, c.relative->p10)}, {"p90", cost_figures(c, c.relative->p90)}};
  return json;
}

std::string to_text(const Cost& c) {
  Table table({"", "", c.relative ? "80 % of the forecasts" : ""});
  for (const CostLine& line : lines_of(c)) table.add({line.name, line.value, line.range});
  return fmt::format("Training on {} tokens\n", count_text(c.asked.tokens)) + table.render();
}

}  // namespace stepcast::cli
