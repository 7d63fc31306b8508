// The numbers of one device under the names of docs/diagnose.md. Test: tests/golden/diagnose_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/report/diagnose/critical_path.hpp"
#include "cli/report/diagnose/finer_causes.hpp"
#include "cli/report/diagnose/json.hpp"
#include "cli/report/diagnose/passes.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::microseconds;
using profile::Time;

constexpr std::size_t kOpsInJson = 30, kGapsInJson = 12;

OrderedJson ratio_percent(Time part, Time whole) {
  return whole.count() == 0 ? OrderedJson() : OrderedJson(100 * static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

OrderedJson json_of(const profile::DeviceTimes& t) {
  return {{"span_us", microseconds(t.span)},
          {"busy_us", microseconds(t.busy)},
          {"idle_us", microseconds(t.idle)},
          {"idle_pct", t.span.count() == 0 ? OrderedJson(0.0) : ratio_percent(t.idle, t.span)},
          {"compute_us", microseconds(t.compute)},
          {"comm_us", microseconds(t.comm)},
          {"memory_us", microseconds(t.memory)},
          {"exposed_comm_us", microseconds(t.exposed_comm)},
          {"exposed_comm_not_under_compute_or_memory_us", microseconds(t.exposed_comm_not_under_compute_or_memory)},
          {"comm_overlapped_with_compute_us", microseconds(t.comm - t.exposed_comm)},
          {"overlap_pct", ratio_percent(t.comm - t.exposed_comm, t.comm)},
          {"exposed_memory_us", microseconds(t.exposed_memory)},
          {"kernel_sum_us", microseconds(t.kernel_sum)},
          {"device_ops", t.device_ops}};
}

OrderedJson json_of(const profile::TraceLensTimes& t) {
  return {{"computation_us", microseconds(t.computation)},
          {"exposed_comm_us", microseconds(t.exposed_comm)},
          {"exposed_memcpy_us", microseconds(t.exposed_memcpy)},
          {"busy_us", microseconds(t.busy)},
          {"idle_us", microseconds(t.idle)},
          {"total_us", microseconds(t.total)},
          {"total_comm_us", microseconds(t.total_comm)},
          {"total_memcpy_us", microseconds(t.total_memcpy)}};
}

OrderedJson json_of_windows(const std::vector<profile::StepOnDevice>& steps) {
  OrderedJson json = OrderedJson::array();
  for (const auto& [step, t] : steps) {
    json.push_back({{"step", step},
                    {"cpu_window_us", microseconds(t.span)},
                    {"gpu_busy_us", microseconds(t.busy)},
                    {"gpu_idle_us", microseconds(t.idle)},
                    {"compute_us", microseconds(t.compute)},
                    {"comm_us", microseconds(t.comm)},
                    {"memory_us", microseconds(t.memory)},
                    {"exposed_comm_us", microseconds(t.exposed_comm)},
                    {"overlap_pct", ratio_percent(t.comm - t.exposed_comm, t.comm)}});
  }
  return json;
}

OrderedJson json_of(const profile::Distribution& d) {
  return {{"min", microseconds(d.min)}, {"p50", microseconds(d.p50)}, {"p90", microseconds(d.p90)},
          {"p99", microseconds(d.p99)}, {"max", microseconds(d.max)}, {"sum", microseconds(d.sum)}};
}

OrderedJson json_of(const profile::Launches& launches) {
  OrderedJson json = {{"matched", launches.matched}, {"unmatched", launches.unmatched}};
  if (launches.matched == 0) return json;
  json["start_minus_launch_end_us"] = json_of(launches.start_minus_launch_end);
  json["negative"] = launches.negative;
  json["launch_call_us"] = json_of(launches.launch_call);
  return json;
}

/// Number and length of gaps by length, in the steps of docs/diagnose.md.
OrderedJson histogram(const std::vector<profile::IdleGap>& gaps) {
  constexpr std::array kEdges = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
  std::array<std::pair<std::int64_t, Time>, kEdges.size() + 1> bins{};
  for (const profile::IdleGap& gap : gaps) {
    const Time length = gap.time.end - gap.time.begin;
    const auto bin = std::upper_bound(kEdges.begin(), kEdges.end(), length, [](Time t, int edge) { return t < std::chrono::microseconds(edge); });
    auto& [count, total] = bins[static_cast<std::size_t>(bin - kEdges.begin())];
    ++count;
    total += length;
  }
  OrderedJson json = OrderedJson::object();
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const std::string low = i == 0 ? "" : std::to_string(kEdges[i - 1]), high = i == kEdges.size() ? "" : std::to_string(kEdges[i]);
    const std::string label = i == 0 ? "<" + high : i == kEdges.size() ? ">=" + low : fmt::format("{}-{}", low, high);
    if (bins[i].first > 0) json[label] = {bins[i].first, microseconds(bins[i].second)};
  }
  return json;
}

OrderedJson largest(const profile::Gaps& gaps, const profile::Profile& p) {
  std::vector<const profile::IdleGap*> order;
  for (const profile::IdleGap& gap : gaps.gaps) order.push_back(&gap);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->time.end - a->time.begin > b->time.end - b->time.begin; });
  if (order.size() > kGapsInJson) order.resize(kGapsInJson);
  const auto first = std::find_if(p.device_ops.begin(), p.device_ops.end(), [](const auto& op) { return op.kind != profile::DeviceKind::other; });
  OrderedJson json = OrderedJson::array();
  for (const profile::IdleGap* gap : order) {
    json.push_back({{"gap_us", microseconds(gap->time.end - gap->time.begin)},
                    {"start_us_from_first_device_op", microseconds(gap->time.begin - first->begin)},
                    {"cause", name(gap->cause)},
                    {"comm_running_us", microseconds(gap->comm)},
                    {"memcpy_running_us", microseconds(gap->memory)},
                    {"other_compute_us", microseconds(gap->other_compute)},
                    {"next_kernel_start_minus_launch_end_us", gap->launch ? OrderedJson(microseconds(gap->next->begin - gap->launch->end)) : OrderedJson()},
                    {"next_launch_call", gap->launch ? OrderedJson(p.names[gap->launch->name]) : OrderedJson()},
                    {"prev_kernel", p.names[gap->before->name]},
                    {"next_kernel", p.names[gap->next->name]}});
  }
  return json;
}

OrderedJson json_of(const profile::ExactSplit& split) {
  return {{"comm_running", microseconds(split.comm)},
          {"memcpy_or_memset_running", microseconds(split.memory)},
          {"other_stream_compute_running", microseconds(split.other_compute)},
          {"device_idle_before_launch_returned", microseconds(split.before_launch)},
          {"device_idle_after_launch_returned", microseconds(split.after_launch)},
          {"device_idle_no_launch_info", microseconds(split.no_launch)}};
}

OrderedJson json_of(const profile::CollectiveTotal& c) {
  return {{"count", c.count},
          {"sum_us", microseconds(c.sum)},
          {"sum_not_under_compute_us", microseconds(c.not_under_compute)},
          {"min_us", microseconds(c.min)},
          {"max_us", microseconds(c.max)}};
}

void add_queues_and_streams(OrderedJson& json, const profile::DeviceMetrics& m) {
  for (const auto& [stream, queue] : m.queues)
    json["queue_depth"][std::to_string(stream)] = {{"ops", queue.ops}, {"max", queue.max}, {"time_weighted_mean", queue.time_weighted_mean}};
  for (const auto& [stream, sums] : m.streams) {
    json["streams"][std::to_string(stream)] = {{"ops", sums.ops},
                                               {"compute_sum_us", microseconds(sums.compute)},
                                               {"comm_sum_us", microseconds(sums.comm)},
                                               {"memory_sum_us", microseconds(sums.memory)}};
  }
}

}  // namespace

OrderedJson json_of(const profile::Gaps& gaps, const profile::Profile& p) {
  OrderedJson causes = OrderedJson::object();
  for (std::size_t i = 0; i < profile::kCauses; ++i) {
    const profile::CauseSum& sum = gaps.by_cause[i];
    if (sum.count > 0) causes[name(static_cast<profile::Cause>(i))] = {{"count", sum.count}, {"total_us", microseconds(sum.total)}};
  }
  return {{"main_stream", gaps.main_stream},
          {"compute_kernels_on_main_stream", gaps.compute_kernels},
          {"gaps", gaps.gaps.size()},
          {"gap_total_us", microseconds(gaps.total)},
          {"overlapping_consecutive_pairs", gaps.overlapping_pairs},
          {"by_cause", causes},
          {"exact_split_us", json_of(gaps.split)},
          {"histogram_us", histogram(gaps.gaps)},
          {"largest", largest(gaps, p)}};
}

OrderedJson json_of(const profile::DeviceMetrics& m, const profile::Profile& p) {
  OrderedJson json = json_of(m.whole_window);
  json["gaps"] = m.gaps ? json_of(*m.gaps, p) : OrderedJson();
  if (m.gaps) json["gaps"]["waited_for"] = json_of(m.finer);
  json["critical_path"] = json_of(m.paths);
  json["ops_with_launch_call_only"] = m.launched_only ? json_of(*m.launched_only) : OrderedJson();
  json["tracelens_definition"] = {{"all_ops", json_of(m.tracelens)},
                                  {"ops_with_launch_call_only", m.tracelens_launched_only ? json_of(*m.tracelens_launched_only) : OrderedJson()}};
  json["per_cpu_step_window"] = json_of_windows(m.per_cpu_step_window);
  json["per_launching_step"] = OrderedJson::object();
  for (const auto& [step, times] : m.per_launching_step) json["per_launching_step"][step] = json_of(times);
  json["launch"] = json_of(m.launches);
  json["queue_depth"] = OrderedJson::object();
  json["streams"] = OrderedJson::object();
  add_queues_and_streams(json, m);
  json["comm_by_type"] = OrderedJson::object();
  for (const auto& [type, total] : m.comm_by_type) json["comm_by_type"][type] = json_of(total);
  json.update(json_of(m.rates));
  json["passes"] = json_of(m.passes);
  json["recomputation_share"] = recomputation_share(m.passes);
  json["steady_step"] = json_of(m.steady);
  json["distinct_device_op_names"] = m.ops.size();
  json["top_device_ops"] = OrderedJson::array();
  for (std::size_t i = 0; i < std::min(kOpsInJson, m.ops.size()); ++i)
    json["top_device_ops"].push_back({{"name", m.ops[i].name}, {"count", m.ops[i].count}, {"total_us", microseconds(m.ops[i].total)}});
  return json;
}

}  // namespace stepcast::cli
