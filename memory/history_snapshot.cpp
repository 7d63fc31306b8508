// From the entries of a PyTorch memory snapshot to operations that can be replayed. What the entries mean: docs/caching_allocator.md, "Histories".
// Test: tests/unit/snapshot_test.cpp.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "memory/history_formats.hpp"
#include "memory/sizes.hpp"
#include "memory/snapshot_entries.hpp"

namespace stepcast::memory {
namespace {

using Action = SnapshotEntry::Action;
using Kind = ReplayOp::Kind;

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
constexpr int kMaxStreams = 64;

bool gives_back(Action action) { return action == Action::segment_free || action == Action::segment_unmap; }
bool takes(Action action) { return action == Action::segment_alloc || action == Action::segment_map; }

/// Allocations that are older than the history, and when each free is completed.
struct Matching {
  std::vector<SnapshotBlock> older;     // in address order
  std::vector<std::size_t> completion;  // by entry: of a free_requested, the entry that completes it
  std::int64_t older_frees = 0;         // completed here, requested before
};

Matching match(const SnapshotDevice& device, const std::string& file) {
  Matching matching;
  matching.completion.assign(device.entries.size(), kNever);
  std::unordered_map<std::uint64_t, std::size_t> live, pending;  // address -> entry
  const auto fail = [&](std::size_t i, const char* what) {
    throw InputError(file, device.pointer + "/" + std::to_string(device.entries[i].place), "address " + std::to_string(device.entries[i].address) + " " + what);
  };
  for (std::size_t i = 0; i < device.entries.size(); ++i) {
    const SnapshotEntry& entry = device.entries[i];
    if (entry.action == Action::alloc) {
      if (!live.try_emplace(entry.address, i).second) fail(i, "is handed out twice without a free");
      if (pending.count(entry.address) > 0) fail(i, "is handed out before its free is completed");
    } else if (entry.action == Action::free_requested) {
      if (live.erase(entry.address) == 0) matching.older.push_back({entry.address, entry.size, entry.stream});
      if (!pending.try_emplace(entry.address, i).second) fail(i, "is freed twice");
    } else if (entry.action == Action::free_completed) {
      const auto found = pending.find(entry.address);
      if (found == pending.end()) {
        ++matching.older_frees;
        continue;
      }
      matching.completion[found->second] = i;
      pending.erase(found);
    }
  }
  for (const SnapshotBlock& block : device.live_at_end) {
    if (live.count(block.address) == 0) matching.older.push_back(block);
  }
  std::sort(matching.older.begin(), matching.older.end(), [](const SnapshotBlock& a, const SnapshotBlock& b) { return a.address < b.address; });
  return matching;
}

/// Streams beyond the real ones, on which the events of deferred frees wait. On each they are completed in the order of the frees, as in any stream: a free goes to
/// the first stream whose last one is completed before it.
class Waiting {
 public:
  explicit Waiting(int first) : first_(first) {}
  int stream(std::size_t completion) {
    std::size_t s = 0;
    while (s < last_.size() && last_[s] > completion) ++s;
    if (s == last_.size() && first_ + static_cast<int>(s) == kMaxStreams) {
      --s;
      ++out_of_order_;
    } else if (s == last_.size()) {
      last_.push_back(0);
    }
    last_[s] = std::max(last_[s], completion);
    return first_ + static_cast<int>(s);
  }
  [[nodiscard]] int streams() const { return first_ + static_cast<int>(last_.size()); }
  [[nodiscard]] std::int64_t out_of_order() const { return out_of_order_; }

 private:
  int first_;
  std::vector<std::size_t> last_;  // by stream: the latest completion
  std::int64_t out_of_order_ = 0;
};

class Writer {
 public:
  Writer(const SnapshotDevice& device, Matching matching, bool limit_given)
      : device_(device),
        matching_(std::move(matching)),
        waiting_(static_cast<int>(std::max<std::size_t>(1, device.streams.size()))),
        limit_given_(limit_given) {}

  History write() {
    history_.pointer = device_.pointer;
    find_limit();
    for (const SnapshotBlock& block : matching_.older) open(block.address, block.size, block.stream, 0);
    for (std::size_t i = 0; i < device_.entries.size(); ++i) write_entry(i);
    history_.streams = waiting_.streams();
    warn();
    return std::move(history_);
  }

 private:
  [[nodiscard]] std::int64_t reserved_at_begin() const {
    std::int64_t change = 0;
    for (const SnapshotEntry& entry : device_.entries) change += takes(entry.action) ? entry.size : gives_back(entry.action) ? -entry.size : 0;
    return device_.has_segments ? device_.reserved_at_end - change : 0;
  }

  /// A failed request tells how much the device had left.
  void find_limit() {
    now_.reserved = reserved_at_begin();
    complete_ = now_.reserved == 0 && matching_.older.empty();
    std::int64_t reserved = now_.reserved;
    for (const SnapshotEntry& entry : device_.entries) {
      reserved += takes(entry.action) ? entry.size : gives_back(entry.action) ? -entry.size : 0;
      const auto free = static_cast<std::int64_t>(std::min<std::uint64_t>(entry.address, static_cast<std::uint64_t>(kMaxBytes)));
      if (entry.action == Action::oom && reserved >= 0) {
        history_.device_bytes = std::min({history_.device_bytes.value_or(kMaxBytes), reserved + free, kMaxBytes});
      }
    }
  }

  void add(Kind kind, std::int64_t id, std::size_t place, std::int64_t size = 0, int stream = 0) {
    history_.ops.push_back({.kind = kind, .id = id, .size = size, .stream = stream});
    history_.places.push_back(place);
  }

  void open(std::uint64_t address, std::int64_t size, int stream, std::size_t place) {
    add(Kind::malloc, next_id_, place, size, stream);
    now_.requested += size;
    live_[address] = {next_id_++, size};
  }

  /// Counters are comparable at the end of a malloc: the entries of what it released and took stand before its own.
  void record() {
    if (complete_) history_.recorded.push_back({history_.ops.size() - 1, now_});
  }

  void write_entry(std::size_t i) {
    const SnapshotEntry& entry = device_.entries[i];
    switch (entry.action) {
      case Action::alloc:
        open(entry.address, entry.size, entry.stream, entry.place);
        record();
        break;
      case Action::free_requested: request_free(entry, i); break;
      case Action::free_completed: complete_free(entry); break;
      case Action::segment_alloc:
      case Action::segment_map:
        now_.reserved += entry.size;
        ++now_.device_mallocs;
        break;
      case Action::segment_free:
      case Action::segment_unmap:
        now_.reserved -= entry.size;
        ++now_.device_frees;
        if (i + 1 == device_.entries.size() || !gives_back(device_.entries[i + 1].action)) end_of_release(i);
        break;
      case Action::oom:
        ++now_.ooms;
        add(Kind::malloc, next_id_, entry.place, entry.size, entry.stream);
        record();
        add(Kind::free, next_id_++, entry.place);  // where it succeeds now, what would have become of it isn't known
        break;
    }
  }

  void request_free(const SnapshotEntry& entry, std::size_t i) {
    const auto found = live_.find(entry.address);
    const Allocation freed = found->second;
    live_.erase(found);
    now_.requested -= freed.size;
    const std::size_t completion = matching_.completion[i];
    if (completion == i + 1) return add(Kind::free, freed.id, entry.place);
    add(Kind::free_deferred, freed.id, entry.place, 0, waiting_.stream(completion));
    pending_[entry.address] = freed.id;
  }

  void complete_free(const SnapshotEntry& entry) {
    const auto found = pending_.find(entry.address);
    if (found == pending_.end()) return;
    add(Kind::free_completed, found->second, entry.place);
    pending_.erase(found);
  }

  /// What goes back just before memory is taken, or the request fails, is part of a malloc, which the replay decides for itself if it knows the limit.
  void end_of_release(std::size_t i) {
    const bool last = i + 1 == device_.entries.size();
    const bool in_malloc = !last && (takes(device_.entries[i + 1].action) || device_.entries[i + 1].action == Action::oom);
    if (in_malloc && (limit_given_ || history_.device_bytes)) return;
    if (in_malloc) ++assumed_flushes_;
    add(Kind::empty_cache, 0, device_.entries[i].place);
  }

  void warn() {
    const auto say = [&](const std::string& text) { history_.warnings.push_back(text); };
    const auto count = [](std::int64_t n) { return std::to_string(n); };
    if (!matching_.older.empty()) {
      say(count(static_cast<std::int64_t>(matching_.older.size())) + " allocations are older than the history; they are replayed first, in address order");
    }
    for (const auto& [action, times] : device_.unknown_actions) say(count(times) + " entries of the unknown action \"" + action + "\" were left out");
    if (matching_.older_frees > 0) say(count(matching_.older_frees) + " frees were requested before the history begins and were left out");
    if (waiting_.out_of_order() > 0) say(count(waiting_.out_of_order()) + " deferred frees complete in more than 64 streams' orders; they may come back early");
    if (assumed_flushes_ > 0) {
      say("memory went back to the device " + count(assumed_flushes_) +
          " times within an allocation; the device's memory isn't known, so that the replay empties the cache there");
    }
    history_.fields = {2, 4, 6, 7, 9};
    if (!complete_) history_.why_nothing_recorded = "the history begins in the middle of a run: its counters are not known";
    else if (history_.recorded.empty()) history_.why_nothing_recorded = "the history has no allocation";
  }

  const SnapshotDevice& device_;
  Matching matching_;
  Waiting waiting_;
  bool limit_given_;
  bool complete_ = false;  // the history begins with nothing reserved
  History history_;
  Statistics now_;  // as recorded
  struct Allocation {
    std::int64_t id = 0, size = 0;
  };
  std::unordered_map<std::uint64_t, Allocation> live_;       // by address
  std::unordered_map<std::uint64_t, std::int64_t> pending_;  // address -> id
  std::int64_t next_id_ = 0, assumed_flushes_ = 0;
};

/// PyTorch writes every setting; -1 or a number past all devices is no limit.
Settings settings_of(const Json& document, const std::string& file, std::vector<std::string>& warnings) {
  Settings settings;
  const auto found = document.find("allocator_settings");
  if (found == document.end() || found->is_null()) return settings;
  Reader reader(*found, file, "/allocator_settings");
  std::int64_t max_split = -1;
  reader.maybe("max_split_size", max_split);
  if (max_split > kLargeSegmentBytes && max_split <= kMaxBytes) settings.max_split_size = max_split;
  reader.maybe("garbage_collection_threshold", settings.garbage_collection_threshold, Limits<double>{0, 0.999999});
  reader.maybe("expandable_segments", settings.expandable_segments);
  if (auto divisions = reader.maybe_object("roundup_power2_divisions")) {
    std::vector<std::int64_t> values;
    for (const std::string& interval : divisions->keys()) values.push_back(divisions->integer(interval, {0, kMaxDivisions}));
    const bool same = std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == values.front(); });
    if (!same) warnings.emplace_back("roundup_power2_divisions differ by size: not modelled, replayed without them");
    else if (!values.empty()) settings.roundup_power2_divisions = values.front();
  }
  return settings;
}

}  // namespace

std::vector<History> read_snapshot(const Json& document, const std::string& file, bool limit_given) {
  std::vector<std::string> warnings;
  const Settings settings = settings_of(document, file, warnings);
  std::vector<History> histories;
  for (const SnapshotDevice& device : snapshot_devices(document, file)) {
    History history = Writer(device, match(device, file), limit_given).write();
    if (history.ops.empty()) continue;
    history.id = "device " + device.pointer.substr(device.pointer.find_last_of('/') + 1);
    history.settings = settings;
    history.warnings.insert(history.warnings.begin(), warnings.begin(), warnings.end());
    histories.push_back(std::move(history));
  }
  return histories;
}

}  // namespace stepcast::memory
