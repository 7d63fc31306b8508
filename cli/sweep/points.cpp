// See points.hpp.
#include "cli/sweep/points.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/predict.hpp"
#include "cli/without_limit.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

using Json = nlohmann::ordered_json;

double number(const Json& report, const char* key) {
  const auto found = report.find(key);
  return found != report.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text(const Json& report, const char* key) {
  const auto found = report.find(key);
  return found != report.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

Json point_of(const scenarios::Scenario& scenario, const program::Program& program) {
  const Report report = forecast(scenario, program);
  Json point = Json::object();
  if (report.outcome == "out_of_memory") point["missing_bytes"] = missing_bytes(scenario, program, report);
  point["report"] = to_json(report);
  return point;
}

Json refused_point(const std::string& why) { return {{"report", {{"outcome", "refused"}, {"reason", why}}}}; }

PointRow row_of(const Json& point, const std::string& place) {
  const auto found = point.find("report");
  if (found == point.end() || !found->is_object() || text(*found, "outcome").empty()) throw InputError(place, "/report", "is not the report of a point");
  const Json& report = *found;
  const auto whole = [](double value) { return static_cast<std::int64_t>(std::clamp(value, -1e18, 1e18)); };
  PointRow row;
  row.outcome = text(report, "outcome");
  row.bound = text(report, "bound");
  row.refusal = text(report, "reason");
  row.step_time_s = number(report, "step_time_s");
  row.tokens_per_s_per_gpu = number(report, "tokens_per_s_per_gpu");
  row.has_mfu = report.contains("mfu") && report["mfu"].is_number();
  row.mfu = number(report, "mfu");
  row.hfu = number(report, "hfu");
  row.exposed_comm_s = number(report, "exposed_comm_s");
  row.peak_reserved_bytes = whole(number(report, "peak_reserved_bytes"));
  row.has_headroom = report.contains("memory_headroom_bytes") && report["memory_headroom_bytes"].is_number() && row.outcome == "ok";
  row.headroom_bytes = whole(number(report, "memory_headroom_bytes"));
  row.missing_bytes = whole(number(point, "missing_bytes"));
  return row;
}

}  // namespace stepcast::cli
