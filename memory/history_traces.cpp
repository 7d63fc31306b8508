// Reader of files of allocator traces: operations, and the counters recorded after each. Format: docs/caching_allocator.md, "Histories".
// Test: tests/unit/history_test.cpp.
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "memory/history_formats.hpp"
#include "memory/sizes.hpp"

namespace stepcast::memory {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr EnumName<ReplayOp::Kind> kOperations[] = {{ReplayOp::Kind::malloc, "malloc"},
                                                    {ReplayOp::Kind::free, "free"},
                                                    {ReplayOp::Kind::record_stream, "record_stream"},
                                                    {ReplayOp::Kind::complete, "complete"},
                                                    {ReplayOp::Kind::empty_cache, "empty_cache"}};

Settings read_settings(Reader from) {
  Settings settings;
  if (from.has("max_split_size")) settings.max_split_size = from.integer("max_split_size", {kLargeSegmentBytes + 1, kMaxBytes});
  from.maybe("roundup_power2_divisions", settings.roundup_power2_divisions, {0, kMaxDivisions});
  const auto divisions = static_cast<std::uint64_t>(settings.roundup_power2_divisions);
  if (divisions != 0 && !std::has_single_bit(divisions)) from.fail("roundup_power2_divisions", "must be a power of two", "0 turns it off");
  if (from.has("memory_fraction")) settings.memory_fraction = from.number("memory_fraction", {std::numeric_limits<double>::denorm_min(), 1});
  from.maybe("garbage_collection_threshold", settings.garbage_collection_threshold, Limits<double>{0, 0.999999});
  from.maybe("expandable_segments", settings.expandable_segments);
  from.finish();
  return settings;
}

ReplayOp read_op(Reader from, int streams) {
  ReplayOp op;
  op.kind = from.enumeration("op", kOperations);
  const auto stream = [&] { op.stream = static_cast<int>(from.integer("stream", {0, streams - 1})); };
  const auto id = [&] { op.id = from.integer("id", {std::numeric_limits<std::int64_t>::min(), kAny}); };
  switch (op.kind) {
    case ReplayOp::Kind::malloc:
      id();
      op.size = from.integer("size", {0, kAny});
      stream();
      break;
    case ReplayOp::Kind::record_stream:
      id();
      stream();
      break;
    case ReplayOp::Kind::complete:
      stream();
      op.count = from.integer("count", {0, kAny});
      break;
    case ReplayOp::Kind::empty_cache: break;
    default: id(); break;
  }
  from.finish();
  return op;
}

const Json& array_at(const Json& object, const char* key, const std::string& file, const std::string& pointer, std::size_t size) {
  const Json& found = object.at(key);
  if (!found.is_array()) throw InputError(file, pointer, "expected an array");
  if (size != 0 && found.size() != size) {
    throw InputError(file, pointer, "has " + std::to_string(found.size()) + " entries for " + std::to_string(size) + " operations");
  }
  return found;
}

std::int64_t whole(const Json& value, const std::string& file, const std::string& pointer) {
  const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kAny));
  if (!fits) throw InputError(file, pointer, "expected a whole number");
  return value.get<std::int64_t>();
}

/// One row of counters for each operation.
std::vector<Recorded> read_after(const Json& rows, const std::vector<std::size_t>& fields, const std::string& file, const std::string& pointer) {
  std::vector<Recorded> recorded(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string place = pointer + "/" + std::to_string(i);
    if (!rows[i].is_array() || rows[i].size() != fields.size()) {
      throw InputError(file, place, "expected an array of " + std::to_string(fields.size()) + " numbers, one for each of /fields");
    }
    recorded[i].op = i;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      recorded[i].counters.*kCounters[fields[f]].value = whole(rows[i][f], file, place + "/" + std::to_string(f));
    }
  }
  return recorded;
}

/// The list of failed mallocs must be the one that the counter of failures tells.
void check_oom(const Json& oom, const std::vector<ReplayOp>& ops, const std::string& file, const std::string& pointer) {
  for (std::size_t i = 0; i < oom.size(); ++i) {
    const std::string place = pointer + "/" + std::to_string(i);
    const std::int64_t op = whole(oom[i], file, place);
    if (op < 0 || op >= static_cast<std::int64_t>(ops.size()) || ops[static_cast<std::size_t>(op)].kind != ReplayOp::Kind::malloc) {
      throw InputError(file, place, std::to_string(op) + " is not the index of a malloc");
    }
  }
}

std::vector<std::size_t> read_fields(Reader& root) {
  std::vector<std::size_t> fields;
  for (const std::string& name : root.texts("fields")) {
    std::size_t at = 0;
    while (at < kCounters.size() && name != kCounters[at].name) ++at;
    if (at == kCounters.size()) root.fail("fields", "unknown counter \"" + name.substr(0, 40) + "\"");
    for (const std::size_t other : fields) {
      if (other == at) root.fail("fields", "\"" + name + "\" is there twice");
    }
    fields.push_back(at);
  }
  if (fields.empty()) root.fail("fields", "names no counter");
  return fields;
}

History read_trace(Reader from, const Json& json, const std::vector<std::size_t>& fields, const std::string& file) {
  History history;
  from.ignore("seed");
  history.id = from.has("id") ? from.text("id", 200) : from.pointer();
  history.device_bytes = from.integer("device_bytes", {0, kMaxBytes});
  history.streams = static_cast<int>(from.integer("streams", {1, 64}));
  if (from.has("settings")) history.settings = read_settings(from.object("settings"));
  for (Reader& op : from.objects("ops")) history.ops.push_back(read_op(std::move(op), history.streams));
  history.pointer = from.pointer() + "/ops";
  if (history.ops.empty()) from.fail("ops", "is empty");
  if (from.has("oom")) check_oom(array_at(json, "oom", file, from.pointer() + "/oom", 0), history.ops, file, from.pointer() + "/oom");
  if (from.has("after")) {
    const std::string pointer = from.pointer() + "/after";
    history.fields = fields;
    history.recorded = read_after(array_at(json, "after", file, pointer, history.ops.size()), fields, file, pointer);
  } else {
    history.why_nothing_recorded = "the trace has no counters (\"after\")";
  }
  from.finish();
  return history;
}

}  // namespace

std::vector<History> read_traces(const Json& document, const std::string& file) {
  Reader root(document, file);
  root.ignore("format");
  const std::vector<std::size_t> fields = root.has("fields") ? read_fields(root) : std::vector<std::size_t>{};
  std::vector<History> histories;
  std::vector<Reader> traces = root.objects("traces");
  root.finish();
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (fields.empty() && document["traces"][i].contains("after")) root.fail("fields", "is missing", "name the columns of \"after\"");
    histories.push_back(read_trace(std::move(traces[i]), document["traces"][i], fields, file));
  }
  return histories;
}

}  // namespace stepcast::memory
