// The machine form of a calibration. See calibration.hpp.
#include <nlohmann/json.hpp>

#include "cli/report/calibration.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

OrderedJson counts_json(const std::map<std::string, std::size_t>& counts) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

OrderedJson files_json(const CalibrationReport& report) {
  OrderedJson json = OrderedJson::array();
  for (const calibration::MeasurementFile& file : report.files) {
    json.push_back({{"file", file.file},
                    {"format", file.format},
                    {"rows", file.rows.size()},
                    {"left_out", counts_json(file.left_out)},
                    {"lines_without_data", file.lines_without_data},
                    {"notes", file.notes}});
  }
  return json;
}

OrderedJson parameters_json(const calibration::Fit& fit) {
  OrderedJson json = OrderedJson::array();
  for (const calibration::FittedParameter& p : fit.parameters) {
    json.push_back({{"name", p.parameter.name},
                    {"of", calibration::name(p.parameter.owner)},
                    {"value", p.value},
                    {"spread", p.spread},
                    {"prior", p.parameter.prior},
                    {"prior_spread", p.parameter.width},
                    {"variance_left", p.undetermined},
                    {"determined", p.undetermined <= calibration::kUndetermined},
                    {"starts_agreed", p.starts_agreed},
                    {"at_limit", p.at_limit}});
  }
  return json;
}

OrderedJson residuals_json(const std::vector<calibration::ResidualGroup>& groups) {
  OrderedJson json = OrderedJson::array();
  for (const calibration::ResidualGroup& g : groups) {
    json.push_back({{"group", g.group},
                    {"size", g.decade.empty() ? "all" : g.decade},
                    {"count", g.errors.count},
                    {"median", g.errors.median},
                    {"mean", g.errors.mean},
                    {"p90", g.errors.p90},
                    {"max", g.errors.max},
                    {"bias", g.errors.bias}});
  }
  return json;
}

OrderedJson noise_json(const calibration::Fit& fit) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [group, noise] : fit.noise) json[group] = noise;
  return json;
}

}  // namespace

std::string calibration_json(const CalibrationReport& report) {
  OrderedJson json = {{"schema", "stepcast.calibration/1"},
                      {"files", files_json(report)},
                      {"device", report.device},
                      {"rows", {{"fitted", report.fit.fitted.size()}, {"held_out", report.fit.held_out.size()}, {"left_out", counts_json(report.left_out)}}},
                      {"starts", report.fit.starts},
                      {"converged", report.fit.converged},
                      {"parameters", parameters_json(report.fit)},
                      {"noise", noise_json(report.fit)},
                      {"residuals", {{"fitted", residuals_json(report.fitted)}, {"held_out", residuals_json(report.held_out)}}}};
  if (report.advice) {
    const calibration::Advice& a = *report.advice;
    json["next_measurement"] = {{"parameter", a.parameter}, {"measurement", a.measurement}, {"spread", a.spread}, {"spread_after", a.after}};
  }
  if (!report.gpu_profile.empty()) json["profiles"]["gpu"] = OrderedJson::parse(report.gpu_profile);
  if (!report.node_profile.empty()) json["profiles"]["node"] = OrderedJson::parse(report.node_profile);
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace stepcast::cli
