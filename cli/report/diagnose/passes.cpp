// Test: tests/golden/diagnose_test.cpp.
#include "cli/report/diagnose/passes.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::microseconds;

profile::Time all_compute(const profile::PassTotals& passes) {
  profile::Time all{};
  for (const profile::PassTotal& total : passes) all += total.compute;
  return all;
}

}  // namespace

double recomputation_share(const profile::PassTotals& passes) {
  return profile::ratio(passes[static_cast<std::size_t>(profile::Pass::recomputation)].compute, all_compute(passes));
}

OrderedJson json_of(const profile::PassTotals& passes) {
  OrderedJson json = OrderedJson::object();
  for (std::size_t i = 0; i < profile::kPasses; ++i) {
    if (passes[i].kernels > 0) json[name(static_cast<profile::Pass>(i))] = {{"kernels", passes[i].kernels}, {"compute_us", microseconds(passes[i].compute)}};
  }
  return json;
}

OrderedJson json_of(const profile::StepsOnDevice& steps) {
  if (steps.steps == 0) return {};
  const auto mean = [&](profile::Time time) { return microseconds(time) / static_cast<double>(steps.steps); };
  const profile::DeviceTimes& t = steps.times;
  return {{"steps", steps.steps},
          {"step_us", mean(t.span)},
          {"compute_us", mean(t.compute)},
          {"comm_us", mean(t.comm)},
          {"exposed_comm_us", mean(t.exposed_comm)},
          {"exposed_memory_us", mean(t.exposed_memory)},
          {"idle_us", mean(t.idle)}};
}

std::string text_of(const profile::PassTotals& passes) {
  const profile::Time all = all_compute(passes);
  if (all == profile::Time{} || passes[static_cast<std::size_t>(profile::Pass::backward)].kernels == 0) return "";
  std::string text;
  for (std::size_t i = 0; i < profile::kPasses; ++i) {
    if (passes[i].kernels == 0) continue;
    text += fmt::format("{}{} {} ({})", text.empty() ? "Compute by pass: " : ", ", name(static_cast<profile::Pass>(i)),
                        time_text(microseconds(passes[i].compute) * 1e-6), percent_text(profile::ratio(passes[i].compute, all)));
  }
  return wrapped(text, 0);
}

}  // namespace stepcast::cli
