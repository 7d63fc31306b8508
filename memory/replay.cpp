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
  void complete_all() { finished_ = recorded_; }

 private:
  std::vector<std::uint64_t> recorded_, finished_;
};

class Replayer {
 public:
  Replayer(const Settings& settings, std::int64_t device_bytes, int streams, const std::string& file)
      : events_(streams), allocator_(settings, device_bytes, streams, events_), streams_(streams), file_(file) {}

  /// False if the operation is a malloc that failed.
  bool step(const ReplayOp& op, std::size_t index) {
    if (op.size < 0 || op.count < 0) refuse(index, "negative size or count");
    const bool names_stream = op.kind != ReplayOp::Kind::free;
    if (names_stream && (op.stream < 0 || op.stream >= streams_)) refuse(index, "unknown stream " + std::to_string(op.stream));
    switch (op.kind) {
      case ReplayOp::Kind::malloc: return malloc(op, index);
      case ReplayOp::Kind::free: free(op, index); break;
      case ReplayOp::Kind::record_stream: record_stream(op, index); break;
      case ReplayOp::Kind::complete: events_.complete(op.stream, static_cast<std::uint64_t>(op.count)); break;
    }
    return true;
  }

  [[nodiscard]] const Statistics& statistics() const { return allocator_.statistics(); }

 private:
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

  void record_stream(const ReplayOp& op, std::size_t index) { allocator_.record_stream(find(op, index)->second, op.stream); }

  std::unordered_map<std::int64_t, BlockId>::iterator find(const ReplayOp& op, std::size_t index) {
    const auto entry = live_.find(op.id);
    if (entry == live_.end()) refuse(index, "id " + std::to_string(op.id) + " is not allocated");
    return entry;
  }

  [[noreturn]] void refuse(std::size_t index, const std::string& what) const { throw InputError(file_, "/ops/" + std::to_string(index), what); }

  CountedEvents events_;
  CachingAllocator allocator_;
  std::unordered_map<std::int64_t, BlockId> live_;  // kNoBlock if the malloc failed or asked for nothing; the allocator ignores that one
  int streams_;
  std::string file_;
};

void raise_to(Statistics& peak, const Statistics& now) {
  for (const auto counter : {&Statistics::allocated, &Statistics::active, &Statistics::reserved, &Statistics::inactive_split, &Statistics::requested,
                             &Statistics::segments, &Statistics::device_mallocs, &Statistics::device_frees, &Statistics::retries, &Statistics::ooms}) {
    peak.*counter = std::max(peak.*counter, now.*counter);
  }
}

}  // namespace

Replay replay(std::span<const ReplayOp> ops, const Settings& settings, std::int64_t device_bytes, int streams, const std::string& file) {
  Replayer replayer(settings, device_bytes, streams, file);
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
