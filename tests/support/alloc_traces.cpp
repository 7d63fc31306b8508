// Strict reader of the trace file: an unknown setting, operation or column is an error, so that no trace is replayed half.
#include "support/alloc_traces.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace stepcast::test {
namespace {

using nlohmann::json;

memory::Settings read_settings(const json& from) {
  memory::Settings settings;
  for (const auto& [key, value] : from.items()) {
    if (key == "max_split_size") settings.max_split_size = value.get<std::int64_t>();
    else if (key == "roundup_power2_divisions") settings.roundup_power2_divisions = value.get<std::int64_t>();
    else if (key == "memory_fraction") settings.memory_fraction = value.get<double>();
    else if (key == "garbage_collection_threshold") settings.garbage_collection_threshold = value.get<double>();
    else if (key == "expandable_segments") settings.expandable_segments = value.get<bool>();
    else throw std::runtime_error("unknown allocator setting " + key);
  }
  return settings;
}

memory::ReplayOp read_op(const json& from) {
  using Kind = memory::ReplayOp::Kind;
  const auto name = from.at("op").get<std::string>();
  memory::ReplayOp op;
  if (name == "malloc") op.kind = Kind::malloc;
  else if (name == "free") op.kind = Kind::free;
  else if (name == "record_stream") op.kind = Kind::record_stream;
  else if (name == "complete") op.kind = Kind::complete;
  else throw std::runtime_error("unknown operation " + name);
  op.id = from.value("id", std::int64_t{0});
  op.size = from.value("size", std::int64_t{0});
  op.stream = from.value("stream", 0);
  op.count = from.value("count", std::int64_t{0});
  return op;
}

memory::Statistics read_row(const json& row) {
  const auto at = [&](std::size_t i) { return row.at(i).get<std::int64_t>(); };
  memory::Statistics s;
  s.allocated = at(0), s.active = at(1), s.reserved = at(2), s.inactive_split = at(3);
  s.segments = at(4), s.device_mallocs = at(5), s.device_frees = at(6), s.retries = at(7), s.ooms = at(8);
  return s;
}

}  // namespace

std::vector<AllocTrace> read_alloc_traces(const std::string& path) {
  std::ifstream file(path);
  if (!file) return {};
  const json document = json::parse(file);
  const std::vector<std::string> fields{"allocated", "active", "reserved", "inactive_split", "segments", "device_mallocs", "device_frees", "retries", "ooms"};
  if (document.at("fields").get<std::vector<std::string>>() != fields) throw std::runtime_error(path + ": other columns than expected");
  std::vector<AllocTrace> traces;
  for (const json& from : document.at("traces")) {
    AllocTrace trace;
    trace.id = from.at("id").get<std::string>();
    trace.settings = read_settings(from.at("settings"));
    trace.device_bytes = from.at("device_bytes").get<std::int64_t>();
    trace.streams = from.at("streams").get<int>();
    trace.oom = from.at("oom").get<std::vector<std::size_t>>();
    for (const json& op : from.at("ops")) trace.ops.push_back(read_op(op));
    for (const json& row : from.at("after")) trace.after.push_back(read_row(row));
    traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace stepcast::test
