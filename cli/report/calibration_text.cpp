// The tables of a calibration. See calibration.hpp.
#include <fmt/format.h>

#include <cmath>

#include "cli/report/calibration.hpp"
#include "cli/report/table.hpp"
#include "hw_models/profile_rules.hpp"

namespace stepcast::cli {
namespace {

using calibration::FittedParameter;
using calibration::Owner;

std::string count(std::size_t n) { return count_text(static_cast<double>(n)); }

/// A value with the unit that profiles give it.
std::string value_text(const calibration::Parameter& parameter, double value) {
  if (parameter.owner == Owner::host_clock) return fmt::format("{:.4g} us", value * 1e6);
  const hw::ConstantRule* rule = hw::find_rule(parameter.owner == Owner::gpu ? hw::gpu_rules() : hw::node_rules(), parameter.name);
  if (!rule || !rule->dimension) return fmt::format("{:.4g}", value);
  if (*rule->dimension == Dimension::time) return fmt::format("{:.4g} us", value * 1e6);
  if (*rule->dimension == Dimension::flop_rate) return fmt::format("{:.4g} TFLOP/s", value / 1e12);
  if (*rule->dimension == Dimension::rate) return fmt::format("{:.4g} GB/s", value / 1e9);
  return fmt::format("{:.4g}", value);
}

std::string files_text(const CalibrationReport& report) {
  Table table({"file", "kind", "rows", "left out", "other lines"}, {0, 1});
  std::string notes;
  for (const calibration::MeasurementFile& file : report.files) {
    std::size_t out = 0;
    for (const auto& [reason, rows] : file.left_out) out += rows;
    table.add({file.file, file.format, count(file.rows.size()), count(out), count(file.lines_without_data)});
    for (const std::string& note : file.notes) notes += "  " + file.file + ": " + note + "\n";
  }
  return table.render() + notes;
}

std::string left_out_text(const CalibrationReport& report) {
  if (report.left_out.empty()) return "";
  std::string text = "\nRows that were not used\n";
  Table table({"", ""});
  for (const auto& [reason, rows] : report.left_out) table.add({reason, count(rows)});
  return text + table.render();
}

std::string remark(const FittedParameter& p, int starts) {
  const bool pushed = std::abs(std::log(p.value / p.parameter.prior)) > p.parameter.width;  // to where another term of a formula takes over
  std::string text = p.undetermined <= calibration::kUndetermined ? "" : pushed ? "bounded on one side by these data" : "not determined by these data";
  if (p.at_limit) text += std::string(text.empty() ? "" : "; ") + "at the limit of its range";
  if (p.starts_agreed < starts) text += fmt::format("{}{} of {} starts agree", text.empty() ? "" : "; ", p.starts_agreed, starts);
  return text;
}

std::string parameters_text(const CalibrationReport& report) {
  Table table({"constant", "of", "prior", "", "fitted", "", "variance left", "remark"}, {0, 1, 7});
  for (const FittedParameter& p : report.fit.parameters) {
    table.add({p.parameter.name, calibration::name(p.parameter.owner), value_text(p.parameter, p.parameter.prior),
               fmt::format("+-{:.0f} %", 100 * p.parameter.width), value_text(p.parameter, p.value), fmt::format("+-{:.1f} %", 100 * p.spread),
               percent_text(p.undetermined), remark(p, report.fit.starts)});
  }
  return "\nConstants (spreads are standard deviations; variance left: 100 % where the data say nothing)\n" + table.render();
}

std::string residuals_text(const std::vector<calibration::ResidualGroup>& groups, const char* title) {
  if (groups.empty()) return "";
  Table table({"", "size", "rows", "median", "mean", "p90", "max", "bias"}, {0, 1});
  for (const calibration::ResidualGroup& g : groups) {
    const auto& e = g.errors;
    table.add({g.decade.empty() ? g.group : "", g.decade.empty() ? "all" : g.decade, count(e.count), percent_text(e.median), percent_text(e.mean),
               percent_text(e.p90), percent_text(e.max), percent_text(e.bias)});
  }
  return std::string("\n") + title + "\n" + table.render();
}

std::string advice_text(const CalibrationReport& report) {
  if (!report.advice) return "";
  const calibration::Advice& a = *report.advice;
  return "\n" + wrapped(fmt::format("Widest: {} (+-{:.0f} %). To narrow it most, measure: {}; expected then: +-{:.0f} %.", a.parameter, 100 * a.spread,
                                    a.measurement, 100 * a.after),
                        0);
}

}  // namespace

std::string calibration_text(const CalibrationReport& report) {
  std::string text = files_text(report) + left_out_text(report);
  if (!report.device.empty()) text += "\nGPU of the kernel times: " + report.device + "\n";
  text += parameters_text(report);
  if (!report.fit.converged) text += "The fit did not converge: take the values as a hint.\n";
  text += residuals_text(report.fitted, "Errors on the rows that were fitted");
  text += residuals_text(report.held_out, "Errors on the rows that were held out");
  return text + advice_text(report);
}

}  // namespace stepcast::cli
