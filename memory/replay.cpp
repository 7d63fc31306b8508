// Runs a history through an allocator whose events finish when the history says so. Rules: docs/caching_allocator.md, "Replay". Test: tests/unit/replay_test.cpp.
#include "memory/replay.hpp"

#include <algorithm>
#include <unordered_map>

#include "hw_models/input_error.hpp"

namespace stepcast::memory {
namespace {

/// Events of a stream are numbered in the order of recording and finish in that order.
class CountedEvents final : public EventSource {
 public:
  explicit CountedEvents(int streams) : recorded_(static_cast<std::size_t>(std::max(streams, 0))), finished_(recorded_) {}

  std::uint64_t record(int stream) override { return recorded_[static_cast<std::size_t>(stream)]++; }
  [[nodiscard]] bool done(int stream, std::uint64_t event) const override { return event < finished_[static_cast<std::size_t>(stream)]; }

  void complete(int stream, std::uint64_t count) {
    const auto s = static_cast<std::size_t>(stream);
    finished_[s] += std::min(count, recorded_[s] - finished_[s]);
  }
  /// Event `event` of the stream is done, and so are all before it. One that a flush finished stays done.
  void complete_through(int stream, std::uint64_t event) {
    std::uint64_t& finished = finished_[static_cast<std::size_t>(stream)];
    finished = std::max(finished, event + 1);
  }
  [[nodiscard]] std::uint64_t recorded(int stream) const { return recorded_[static_cast<std::size_t>(stream)]; }
  void complete_all() { finished_ = recorded_; }

 private:
  std::vector<std::uint64_t> recorded_, finished_;
};

class Replayer {
 public:
  Replayer(const Settings& settings, std::int64_t device_bytes, int streams, const std::string& file, const std::string& pointer)
      : events_(streams), allocator_(settings, device_bytes, streams, events_), streams_(streams), file_(file), pointer_(pointer) {}

  /// False if the operation is a malloc that failed.
  bool step(const ReplayOp& op, std::size_t index) {
    if (op.size < 0 || op.count < 0) refuse(index, "negative size or count");
    if (names_stream(op.kind) && (op.stream < 0 || op.stream >= streams_)) refuse(index, "unknown stream " + std::to_string(op.stream));
    switch (op.kind) {
      case ReplayOp::Kind::malloc: return malloc(op, index);
      case ReplayOp::Kind::free: free(op, index); break;
      case ReplayOp::Kind::record_stream: record_stream(op, index); break;
      case ReplayOp::Kind::complete: events_.complete(op.stream, static_cast<std::uint64_t>(op.count)); break;
      case ReplayOp::Kind::free_deferred: free_deferred(op, index); break;
      case ReplayOp::Kind::free_completed: free_completed(op, index); break;
      case ReplayOp::Kind::empty_cache:
        events_.complete_all();
        allocator_.empty_cache();
        break;
    }
    return true;
  }

  [[nodiscard]] const Statistics& statistics() const { return allocator_.statistics(); }

 private:
  static bool names_stream(ReplayOp::Kind kind) {
    return kind != ReplayOp::Kind::free && kind != ReplayOp::Kind::free_completed && kind != ReplayOp::Kind::empty_cache;
  }

  bool malloc(const ReplayOp& op, std::size_t index) {
    const auto [entry, fresh] = live_.try_emplace(op.id, kNoBlock);
    if (!fresh) refuse(index, "id " + std::to_string(op.id) + " is already allocated");
    Outcome outcome = allocator_.malloc(op.size, op.stream);
    if (outcome.kind == Outcome::Kind::must_drain) {
      events_.complete_all();
      outcome = allocator_.malloc_after_drain(op.size, op.stream);
    }
    entry->second = outcome.block;
    return outcome.kind == Outcome::Kind::done;
  }

  void free(const ReplayOp& op, std::size_t index) {
    allocator_.free(find(op, index)->second);
    live_.erase(op.id);
  }

  void free_deferred(const ReplayOp& op, std::size_t index) {
    record_stream(op, index);
    const std::uint64_t event = events_.recorded(op.stream);
    free(op, index);
    // Without a block (the malloc failed, or asked for nothing) no event was recorded, and there is nothing to finish later.
    const bool waits = events_.recorded(op.stream) > event;
    if (!pending_.try_emplace(op.id, Waiting{op.stream, waits ? event : kNoEvent}).second) refuse(index, "an earlier free of this id is not completed");
  }

  void free_completed(const ReplayOp& op, std::size_t index) {
    const auto entry = pending_.find(op.id);
    if (entry == pending_.end()) refuse(index, "id " + std::to_string(op.id) + " has no free to complete");
    if (entry->second.event != kNoEvent) events_.complete_through(entry->second.stream, entry->second.event);
    pending_.erase(entry);
  }

  void record_stream(const ReplayOp& op, std::size_t index) { allocator_.record_stream(find(op, index)->second, op.stream); }

  std::unordered_map<std::int64_t, BlockId>::iterator find(const ReplayOp& op, std::size_t index) {
    const auto entry = live_.find(op.id);
    if (entry == live_.end()) refuse(index, "id " + std::to_string(op.id) + " is not allocated");
    return entry;
  }

  [[noreturn]] void refuse(std::size_t index, const std::string& what) const { throw InputError(file_, pointer_ + "/" + std::to_string(index), what); }

  static constexpr std::uint64_t kNoEvent = ~std::uint64_t{0};
  struct Waiting {
    int stream;
    std::uint64_t event;
  };

  CountedEvents events_;
  CachingAllocator allocator_;
  std::unordered_map<std::int64_t, BlockId> live_;     // kNoBlock if the malloc failed or asked for nothing; the allocator ignores that one
  std::unordered_map<std::int64_t, Waiting> pending_;  // deferred frees
  int streams_;
  std::string file_, pointer_;
};

void raise_to(Statistics& peak, const Statistics& now) {
  for (const auto counter : {&Statistics::allocated, &Statistics::active, &Statistics::reserved, &Statistics::inactive_split, &Statistics::requested,
                             &Statistics::segments, &Statistics::device_mallocs, &Statistics::device_frees, &Statistics::retries, &Statistics::ooms}) {
    peak.*counter = std::max(peak.*counter, now.*counter);
  }
}

}  // namespace

Replay replay(std::span<const ReplayOp> ops, const Settings& settings, std::int64_t device_bytes, int streams, const std::string& file,
              const std::string& pointer) {
  Replayer replayer(settings, device_bytes, streams, file, pointer);
  Replay result;
  result.after.reserve(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!replayer.step(ops[i], i)) result.oom.push_back(i);
    result.after.push_back(replayer.statistics());
    raise_to(result.peak, result.after.back());
  }
  return result;
}

}  // namespace stepcast::memory
