// One rank: header, events, host, HTA's numbers. docs/diagnose.md, "JSON"; test: tests/golden/diagnose_test.cpp.
#include "cli/report/diagnose/json.hpp"

#include "cli/report/diagnose/memory.hpp"
#include "hw_models/ordered_json.hpp"
#include "trace/profile/oddities.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::microseconds;

template <class T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

OrderedJson json_of_header(const profile::Header& header) {
  OrderedJson gpus = OrderedJson::array();
  for (const auto& [id, name] : header.gpus) gpus.push_back(name);
  return {{"rank", or_null(header.rank)},
          {"world_size", or_null(header.world_size)},
          {"backend", header.backend},
          {"base_time_ns", or_null(header.base_time_ns)},
          {"gpus", gpus}};
}

OrderedJson json_of_events(const profile::Profile& p) {
  return {{"total", p.events},
          {"phases", OrderedJson(p.phases)},
          {"X_by_category", OrderedJson(p.categories)},
          {"flows", OrderedJson(p.flows)},
          {"python_function", p.python_functions},
          {"memory_instants", p.memory.size()},
          {"call_stack_args", p.call_stacks}};
}

OrderedJson json_of_calls(const std::map<std::string, profile::CallTotal>& calls) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, call] : calls) json[name] = {{"count", call.count}, {"total_us", microseconds(call.total)}, {"max_us", microseconds(call.max)}};
  return json;
}

OrderedJson json_of(const profile::MemoryTotals& m) {
  const auto known = [&](std::int64_t value) { return m.has_totals ? OrderedJson(value) : OrderedJson(); };
  return {{"events", m.events},
          {"allocs", m.allocs},
          {"frees", m.frees},
          {"zero", m.zero},
          {"net_bytes", m.net_bytes},
          {"running_sum_peak", m.running_sum_peak},
          {"running_sum_min", m.running_sum_min},
          {"has_totals", m.has_totals},
          {"peak_total_allocated", known(m.peak_allocated)},
          {"first_total_allocated", known(m.first_allocated)},
          {"last_total_allocated", known(m.last_allocated)},
          {"peak_total_reserved", known(m.peak_reserved)},
          {"min_total_reserved", known(m.min_reserved)},
          {"reserved_changes", known(m.reserved_changes)},
          {"addr", m.with_address}};
}

OrderedJson json_of_steps(const std::vector<profile::Step>& steps) {
  OrderedJson json = OrderedJson::array();
  for (const profile::Step& step : steps) {
    json.push_back({{"name", step.name}, {"duration_us", microseconds(step.time.end - step.time.begin)}, {"start_us", microseconds(step.time.begin)}});
  }
  return json;
}

double percent(profile::Time part, profile::Time whole) {
  return whole.count() == 0 ? 0 : 100 * static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

}  // namespace

OrderedJson json_of(const profile::HostMetrics& host) {
  OrderedJson memory = OrderedJson::object();
  for (const auto& [device, totals] : host.memory) memory[device] = json_of(totals);
  return {
      {"host_calls", json_of_calls(host.calls)},
      {"host_stall_calls", json_of_calls(host.stalls)},
      {"dataloader", {{"calls", host.data_loader.count}, {"total_us", microseconds(host.data_loader.total)}, {"max_us", microseconds(host.data_loader.max)}}},
      {"memory", memory}};
}

OrderedJson json_of(const profile::HtaMetrics& hta) {
  OrderedJson sums = OrderedJson::object(), idle = OrderedJson::object();
  for (const auto& [type, sum] : hta.sum_by_type) sums[type] = microseconds(sum);
  for (const auto& [stream, parts] : hta.idle_by_stream) {
    idle[std::to_string(stream)] = {
        {"host_wait_us", microseconds(parts.host_wait)}, {"kernel_wait_us", microseconds(parts.kernel_wait)}, {"other_us", microseconds(parts.other)}};
  }
  return {{"kernel_time_us", microseconds(hta.kernel_time)},
          {"idle_time_us", microseconds(hta.idle_time)},
          {"compute_time_us", microseconds(hta.compute_time)},
          {"non_compute_time_us", microseconds(hta.non_compute_time)},
          {"idle_time_pctg", percent(hta.idle_time, hta.kernel_time)},
          {"compute_time_pctg", percent(hta.compute_time, hta.kernel_time)},
          {"non_compute_time_pctg", percent(hta.non_compute_time, hta.kernel_time)},
          {"comp_comm_overlap_pctg", or_null(hta.comp_comm_overlap_pctg)},
          {"gpu_rows", hta.gpu_rows},
          {"duplicate_rows_from_correlation_merge", hta.duplicate_rows},
          {"rounded_to_us", hta.rounded_to_us},
          {"sum_us_by_type", sums},
          {"idle_by_stream", idle},
          {"launches",
           {{"rows", hta.launches.rows},
            {"sum_cpu_us", microseconds(hta.launches.sum_cpu)},
            {"sum_gpu_us", microseconds(hta.launches.sum_gpu)},
            {"sum_delay_us", microseconds(hta.launches.sum_delay)},
            {"max_delay_us", microseconds(hta.launches.max_delay)}}}};
}

OrderedJson json_of(const profile::RankDiagnosis& rank) {
  const profile::Profile& p = rank.profile;
  OrderedJson json = {{"file", p.label}, {"rank", or_null(p.header.rank)}, {"steps", json_of_steps(rank.steps)}, {"devices", OrderedJson::object()}};
  for (const profile::DeviceMetrics& device : rank.devices) json["devices"][p.devices[device.device]] = json_of(device, p);
  json["oddities"] = OrderedJson(p.oddities);
  json["oddity_severities"] = OrderedJson::object();
  for (const auto& [name, count] : p.oddities) json["oddity_severities"][name] = profile::name(profile::severity_of(name));
  json["header"] = json_of_header(p.header);
  json["events"] = json_of_events(p);
  json.update(json_of(rank.host));
  json["memory_timeline"] = memory_json(rank);
  json["hta_definition"] = rank.hta ? json_of(*rank.hta) : OrderedJson();
  return json;
}

}  // namespace stepcast::cli
