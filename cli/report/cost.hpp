// What training on so many tokens takes at a forecast speed: time, GPU-hours, money, energy. docs/report.md, "Cost"; test: tests/unit/explain_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/report/report.hpp"

namespace stepcast::cli {

struct CostQuestion {
  double tokens = 0, gpu_hour_price = 0, gpu_watts = 0;  // gpu_watts: mean power of a GPU and of what hangs on it
};

struct Cost {
  CostQuestion asked;
  double gpu_hours = 0, days = 0, price = 0, kilowatt_hours = 0;
  double price_per_million_tokens = 0;
  std::optional<Percentiles> relative;  // of step times over the forecast's, where the report has an interval: all figures are proportional to them
};

/// days = tokens / (tokens/s/GPU x GPUs) / 86,400 s; GPU-hours = days x 24 x GPUs; price = GPU-hours x price; energy = GPU-hours x W / 1000. 32 GPUs of 400 W for an hour are 12.8 kWh.
Cost cost_of(const Report& report, const CostQuestion& question);

/// One figure of a cost in words, and the range of 80 % of the forecasts where there is one.
struct CostLine {
  std::string name, value, range;
};
std::vector<CostLine> lines_of(const Cost& cost);

nlohmann::ordered_json to_json(const Cost& cost);
std::string to_text(const Cost& cost);

}  // namespace stepcast::cli
