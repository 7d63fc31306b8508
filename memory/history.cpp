// Which kind of history a file is, and comparisons of a replay with what was recorded. docs/caching_allocator.md, "Histories"; test: tests/unit/history_test.cpp.
#include "memory/history.hpp"

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"
#include "memory/history_formats.hpp"
#include "memory/sizes.hpp"

namespace stepcast::memory {
namespace {

constexpr char kPickleStart = '\x80';  // the PROTO opcode, with which every pickle from protocol 2 on begins

std::vector<History> histories_of(const Json& document, const std::string& file, bool limit_given) {
  if (document.is_object() && document.contains("traces")) return read_traces(document, file);
  if (document.is_object() && document.contains("device_traces")) return read_snapshot(document, file, limit_given);
  throw InputError(file, "", "is no allocator history: it has neither \"traces\" nor \"device_traces\"",
                   "give a file of allocator traces, or a PyTorch memory snapshot (torch.cuda.memory._dump_snapshot, or its dictionary as JSON)");
}

}  // namespace

std::vector<History> parse_histories(std::string_view content, const std::string& file, bool limit_given) {
  const std::string shown = printable(file, 400);
  if (content.starts_with("PK")) throw InputError(shown, "", "is an archive of torch.save", "give the file that torch.cuda.memory._dump_snapshot writes");
  const Json document = content.starts_with(kPickleStart) ? read_snapshot_pickle(content, shown) : parse_json(content, file);
  std::vector<History> histories = histories_of(document, shown, limit_given);
  if (histories.empty()) {
    throw InputError(shown, "", "holds no operation", "record the history first: torch.cuda.memory._record_memory_history(max_entries=...)");
  }
  return histories;
}

std::vector<History> read_histories(const std::string& path, bool limit_given) {
  return parse_histories(read_text_file(path, kMaxHistoryBytes), path, limit_given);
}

Replay replay(const History& history, const Settings& settings, std::int64_t device_bytes, const std::string& file) {
  return replay(history.ops, settings, device_bytes, history.streams, file, history.pointer);
}

std::optional<Difference> first_difference(const History& history, const Replay& replayed) {
  for (const Recorded& expected : history.recorded) {
    const Statistics& got = replayed.after.at(expected.op);
    for (const std::size_t field : history.fields) {
      const CounterName& counter = kCounters.at(field);
      if (got.*counter.value == expected.counters.*counter.value) continue;
      const std::size_t place = history.places.empty() ? expected.op : history.places[expected.op];
      return Difference{expected.op, place, counter.name, expected.counters.*counter.value, got.*counter.value};
    }
  }
  return std::nullopt;
}

std::string text_of(const ReplayOp& op) {
  const std::string id = "id " + std::to_string(op.id), stream = "stream " + std::to_string(op.stream);
  switch (op.kind) {
    case ReplayOp::Kind::malloc: return "malloc of " + std::to_string(op.size) + " bytes, " + id + ", " + stream;
    case ReplayOp::Kind::free: return "free of " + id;
    case ReplayOp::Kind::record_stream: return "record_stream of " + id + ", " + stream;
    case ReplayOp::Kind::complete: return "completion of " + std::to_string(op.count) + " events, " + stream;
    case ReplayOp::Kind::free_deferred: return "deferred free of " + id;
    case ReplayOp::Kind::free_completed: return "completed free of " + id;
    case ReplayOp::Kind::empty_cache: return "empty_cache";
  }
  return "?";
}

}  // namespace stepcast::memory
