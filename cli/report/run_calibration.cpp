// A calibration on whole runs as text and JSON. See cli/calibrate/runs.hpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "calibration/fit.hpp"
#include "cli/calibrate/runs.hpp"
#include "cli/report/table.hpp"
#include "cli/report/validate.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

using calibration::ErrorSummary;

/// Runs that would tell, where those at hand do not.
constexpr std::array<const char*, 4> kTelling{
    "runs whose compute takes most of the step: large micro-batches on one node",
    "runs on several nodes whose gathers are exposed: one sequence per GPU, full sharding; or logs of nccl-tests",
    "runs on many nodes with small messages: small models, full sharding, growing numbers of nodes; or logs of nccl-tests",
    "runs that wait for the host: small models, one short sequence per GPU; or a trace",
};

struct RunErrors {
  ErrorSummary before, after;
};

RunErrors errors_of(const RunCalibration& c, bool held_out) {
  std::vector<double> before, after;
  for (const CalibratedRun& run : c.runs) {
    if (run.held_out == held_out) before.push_back(run.before), after.push_back(run.after);
  }
  return {calibration::summarize(before), calibration::summarize(after)};
}

void add_errors(const std::string& name, const ErrorSummary& s, Table& table) {
  if (s.count == 0) return;
  table.add({name, std::to_string(s.count), percent_number(s.median), percent_number(s.mean), percent_number(s.p90), percent_number(s.max),
             fmt::format("{:+.1f}", 100 * s.bias)});
}

bool tells(const FittedFactor& factor) { return factor.variance_left <= calibration::kUndetermined; }

std::string factor_table(const RunCalibration& c) {
  Table table({"factor", "value", "spread, %", "variance left, %", "of"}, {0, 4});
  for (std::size_t i = 0; i < kFactorNames.size(); ++i) {
    const FittedFactor& f = c.factors[i];
    const std::vector<std::string> names = constants_of(i, c.gpu, c.node);
    const std::string of = names.empty()       ? "no constant of these profiles"
                           : names.size() == 1 ? names.front()
                                               : fmt::format("{} and {} more", names.front(), names.size() - 1);
    table.add(
        {kFactorNames[i], tells(f) ? fmt::format("{:.3f}", f.value) : "-", tells(f) ? percent_number(f.spread) : "", percent_number(f.variance_left), of});
  }
  return table.render();
}

std::string not_told(const RunCalibration& c) {
  std::string text;
  for (std::size_t i = 0; i < kFactorNames.size(); ++i) {
    if (!tells(c.factors[i])) text += fmt::format("  {}: not determined, left as it was. Would tell: {}\n", kFactorNames[i], kTelling[i]);
  }
  return text;
}

std::string left_out(const RunCalibration& c) {
  std::string text;
  for (const auto& [reason, ids] : c.left_out)
    text += fmt::format("  left out: {} ({}{})\n", reason, ids.front(), ids.size() > 1 ? fmt::format(" and {} more", ids.size() - 1) : "");
  return text;
}

OrderedJson factor_json(const RunCalibration& c, std::size_t i) {
  const FittedFactor& f = c.factors[i];
  return {
      {"value", f.value}, {"spread", f.spread}, {"variance_left", f.variance_left}, {"determined", tells(f)}, {"constants", constants_of(i, c.gpu, c.node)}};
}

OrderedJson errors_json(const RunErrors& errors) { return {{"before", summary_json(errors.before)}, {"after", summary_json(errors.after)}}; }

}  // namespace

std::string to_text(const RunCalibration& c) {
  const RunErrors fitted = errors_of(c, false), held = errors_of(c, true);
  Table errors({"tokens/s/GPU, error in %", "runs", "median", "mean", "p90", "max", "bias"});
  add_errors("fitted, before", fitted.before, errors);
  add_errors("fitted, after", fitted.after, errors);
  add_errors("held out, before", held.before, errors);
  add_errors("held out, after", held.after, errors);
  return fmt::format("{} runs of {}\n", fitted.before.count + held.before.count, c.file) + factor_table(c) + not_told(c) + "\n" + errors.render() + left_out(c);
}

nlohmann::ordered_json to_json(const RunCalibration& c) {
  OrderedJson factors = OrderedJson::object(), runs = OrderedJson::array(), out = OrderedJson::array();
  for (std::size_t i = 0; i < kFactorNames.size(); ++i) factors[kFactorNames[i]] = factor_json(c, i);
  for (const CalibratedRun& run : c.runs)
    runs.push_back({{"id", run.id}, {"held_out", run.held_out}, {"measured_tokens_per_s_per_gpu", run.measured}, {"before", run.before}, {"after", run.after}});
  for (const auto& [reason, ids] : c.left_out) out.push_back({{"reason", reason}, {"ids", ids}});
  return {{"schema", "stepcast.run_calibration/1"},
          {"file", c.file},
          {"factors", factors},
          {"errors", {{"fitted", errors_json(errors_of(c, false))}, {"held_out", errors_json(errors_of(c, true))}}},
          {"runs", runs},
          {"left_out", out}};
}

}  // namespace stepcast::cli
