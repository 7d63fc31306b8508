// See points.hpp.
#include "cli/sweep/points.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/predict.hpp"
#include "cli/without_limit.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

double number_in(const OrderedJson& report, const char* key) {
  const auto found = report.find(key);
  return found != report.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_in(const OrderedJson& report, const char* key) {
  const auto found = report.find(key);
  return found != report.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

OrderedJson point_of(const scenarios::Scenario& scenario, const program::Program& program) {
  Report report = forecast(scenario, program);
  report.assumptions.clear();  // two thirds of a report's length, and the same in thousands of points
  OrderedJson point = OrderedJson::object();
  if (report.outcome == "out_of_memory") point["missing_bytes"] = missing_bytes(scenario, program, report);
  point["report"] = to_json(report);
  point["report"].erase("assumptions");
  return point;
}

OrderedJson refused_point(const std::string& why) { return {{"report", {{"outcome", "refused"}, {"reason", why}}}}; }

PointRow row_of(const OrderedJson& point, const std::string& place) {
  const auto found = point.find("report");
  if (found == point.end() || !found->is_object() || text_in(*found, "outcome").empty()) throw InputError(place, "/report", "is not the report of a point");
  const OrderedJson& report = *found;
  const auto whole = [](double value) { return static_cast<std::int64_t>(std::clamp(value, -1e18, 1e18)); };
  PointRow row;
  row.outcome = text_in(report, "outcome");
  row.bound = text_in(report, "bound");
  row.refusal = text_in(report, "reason");
  row.step_time_s = number_in(report, "step_time_s");
  row.tokens_per_s_per_gpu = number_in(report, "tokens_per_s_per_gpu");
  row.has_mfu = report.contains("mfu") && report["mfu"].is_number();
  row.mfu = number_in(report, "mfu");
  row.hfu = number_in(report, "hfu");
  row.exposed_comm_s = number_in(report, "exposed_comm_s");
  row.peak_reserved_bytes = whole(number_in(report, "peak_reserved_bytes"));
  row.has_headroom = report.contains("memory_headroom_bytes") && report["memory_headroom_bytes"].is_number() && row.outcome == "ok";
  row.headroom_bytes = whole(number_in(report, "memory_headroom_bytes"));
  row.missing_bytes = whole(number_in(point, "missing_bytes"));
  return row;
}

}  // namespace stepcast::cli
