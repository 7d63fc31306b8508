// The end of reading: order by time, checks over the whole file, headers. Test: tests/unit/profile_reader_test.cpp.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "trace/profile/builder.hpp"
#include "trace/profile/import.hpp"

namespace stepcast::trace::profile {

namespace {

using Json = nlohmann::json;

template <class Item, class When>
void order(std::vector<Item>& items, When when) {
  std::stable_sort(items.begin(), items.end(), [when](const Item& a, const Item& b) { return when(a) < when(b); });
}

std::optional<std::int64_t> integer_at(const Json& object, const char* key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  if (at == object.end() || !at->is_number_integer()) return {};
  if (at->is_number_unsigned() && at->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
  return at->get<std::int64_t>();
}

std::string string_at(const Json& object, const char* key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

}  // namespace

void Builder::header(std::string_view key, const Value& value) {
  Header& header = profile_.header;
  if (key == "baseTimeNanoseconds") {
    header.base_time_ns = integer_of(value);
    if (header.base_time_ns && (*header.base_time_ns < 0 || *header.base_time_ns > kLatest)) header.base_time_ns.reset(), note("base_time_out_of_range");
  }
  if (key != "distributedInfo" && key != "deviceProperties") return;
  const Json json = Json::parse(value.text.begin(), value.text.end(), nullptr, false);
  if (json.is_discarded()) return note("broken_headers");
  if (key == "distributedInfo") {
    header.rank = integer_at(json, "rank");
    header.world_size = integer_at(json, "world_size");
    header.backend = string_at(json, "backend");
    return;
  }
  for (const Json& device : json) {
    const auto id = integer_at(device, "id");
    if (!id) continue;
    header.gpus[*id] = string_at(device, "name");
    if (const auto bytes = integer_at(device, "totalGlobalMem")) header.gpu_memory_bytes[*id] = static_cast<double>(*bytes);
  }
}

/// Sorts what came in the order of the file. Launches keep pointing at their calls.
void Builder::put_in_order() {
  order(profile_.device_ops, [](const DeviceOp& op) { return op.begin; });
  order(profile_.host_ops, [](const HostOp& op) { return op.begin; });
  order(profile_.memory, [](const MemoryEvent& event) { return event.time; });
  auto& calls = profile_.host_calls;
  std::vector<std::uint32_t> places(calls.size());
  std::iota(places.begin(), places.end(), 0U);
  std::stable_sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) { return calls[a].begin < calls[b].begin; });
  std::vector<HostCall> sorted;
  std::vector<std::uint32_t> new_place(calls.size());
  sorted.reserve(calls.size());
  for (const std::uint32_t place : places) {
    new_place[place] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(calls[place]);
  }
  calls = std::move(sorted);
  for (auto& [correlation, place] : profile_.launches) place = new_place[place];
}

void Builder::note_device_oddities() {
  std::vector<Time> ends(profile_.streams.size(), Time::min());
  std::set<std::string> hosts, devices;
  bool any = false;
  for (const DeviceOp& op : profile_.device_ops) {
    if (op.kind == DeviceKind::other) continue;
    any = true;
    if (op.begin < ends[op.stream]) note("same_stream_overlaps");
    ends[op.stream] = std::max(ends[op.stream], op.end);
    const HostCall* launch = profile_.launch_of(op);
    if (!launch) note("device_ops_without_launch_call");
    else if (op.begin < launch->begin) note("device_ops_starting_before_their_launch_call");
    devices.insert(profile_.devices[profile_.streams[op.stream].device]);
  }
  if (!any) note("no_device_events");
  const auto& gpus = profile_.header.gpus;
  for (const std::string& device : devices) {
    const auto id = integer_of({device, Value::Kind::string});
    if (!gpus.empty() && (!id || gpus.count(*id) == 0)) note("device_ids_not_in_deviceProperties");
    for (const std::string& thread : profile_.threads) {
      if (thread.substr(0, thread.find('/')) != device) continue;
      note("pid_shared_by_host_and_device_events");
      break;
    }
  }
}

/// Steps follow each other; marks of several threads, or one within another, would count time twice.
void Builder::note_overlapping_steps() {
  Time end = Time::min();
  for (const HostOp& op : profile_.host_ops) {
    if (!is_step(profile_.names[op.name])) continue;
    if (op.begin < end) note("overlapping_steps");
    end = std::max(end, op.end);
  }
}

Profile Builder::finish(const std::string& label) {
  profile_.label = label;
  put_in_order();
  note_device_oddities();
  note_overlapping_steps();
  for (const auto& [category, count] : profile_.categories) {
    if (!is_known_category(category)) note("events_of_unknown_category", count);
  }
  return std::move(profile_);
}

Profile import_profile(ByteSource& source, const std::string& label) {
  Builder builder;
  read_events(source, label, builder);
  return builder.finish(label);
}

}  // namespace stepcast::trace::profile
