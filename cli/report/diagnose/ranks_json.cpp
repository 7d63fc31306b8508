// The comparison of ranks under the names of docs/diagnose.md. Test: tests/golden/diagnose_test.cpp.
#include "cli/report/diagnose/json.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::microseconds;

OrderedJson json_of(const profile::MatchedCollectives& c) {
  OrderedJson json = {{"count", OrderedJson::object()},
                      {"matched", c.matched},
                      {"matched_from", c.from_end ? "end" : "start"},
                      {"start_skew_us", {{"p50", microseconds(c.start_skew_p50)}, {"max", microseconds(c.start_skew_max)}}},
                      {"end_skew_us", {{"p50", microseconds(c.end_skew_p50)}, {"max", microseconds(c.end_skew_max)}}},
                      {"transfer_sum_us", microseconds(c.transfer)},
                      {"wait_sum_us", OrderedJson::object()},
                      {"last_to_arrive_count", OrderedJson::object()},
                      {"duration_sum_us", OrderedJson::object()},
                      {"least_waiting_rank", c.least_waiting_rank}};
  for (const auto& [rank, r] : c.ranks) {
    const std::string key = std::to_string(rank);
    json["count"][key] = r.count;
    json["wait_sum_us"][key] = microseconds(r.wait);
    json["duration_sum_us"][key] = microseconds(r.duration);
    if (r.last_to_arrive > 0) json["last_to_arrive_count"][key] = r.last_to_arrive;
  }
  return json;
}

}  // namespace

OrderedJson json_of(const profile::AcrossRanks& across) {
  OrderedJson json = {
      {"ranks", across.ranks}, {"collectives", OrderedJson::object()}, {"step_table", OrderedJson::array()}, {"clock_offsets_us", OrderedJson::object()}};
  for (const auto& [type, matched] : across.collectives) json["collectives"][type] = json_of(matched);
  for (const profile::StepAcrossRanks& step : across.steps) {
    OrderedJson durations = OrderedJson::object();
    for (const auto& [rank, time] : step.durations) durations[std::to_string(rank)] = microseconds(time);
    json["step_table"].push_back({{"step", step.step},
                                  {"start_skew_us", microseconds(step.start_skew)},
                                  {"dur_us", durations},
                                  {"slowest", step.slowest},
                                  {"max_over_median", step.max_over_median}});
  }
  json["spent_us"] = OrderedJson::object();
  for (const auto& [rank, spent] : across.spent) {
    for (const auto& [what, time] : spent) json["spent_us"][std::to_string(rank)][what] = microseconds(time);
  }
  for (const auto& [rank, offset] : across.clock_offsets) json["clock_offsets_us"][std::to_string(rank)] = microseconds(offset);
  return json;
}

}  // namespace stepcast::cli
