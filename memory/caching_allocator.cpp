// The order of the tries and the public calls; what the tries release is in reclaim.cpp. Rules: docs/caching_allocator.md, "The tries".
// Tests: tests/unit/caching_allocator_test.cpp, tests/model/allocator_traces_test.cpp.
#include "memory/caching_allocator.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <utility>

#include "hw_models/input_error.hpp"
#include "memory/allocator_state.hpp"
#include "memory/sizes.hpp"

namespace stepcast::memory {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::int64_t share(double fraction, std::int64_t bytes) { return static_cast<std::int64_t>(fraction * static_cast<double>(bytes)); }

}  // namespace

CachingAllocator::State::State(const Settings& settings, std::int64_t device_bytes, int stream_count, EventSource& source)
    : limit(settings.memory_fraction ? share(*settings.memory_fraction, device_bytes) : device_bytes),
      max_split(settings.max_split_size.value_or(kUnlimited)),
      divisions(settings.roundup_power2_divisions),
      gc_above(settings.memory_fraction && settings.garbage_collection_threshold > 0 ? share(settings.garbage_collection_threshold, limit) : kUnlimited),
      expandable(settings.expandable_segments),
      streams(stream_count),
      heap(stream_count, expandable),
      deferred(stream_count, heap.lists()),
      ranges(heap, device_bytes),
      events(&source) {}

void CachingAllocator::State::refuse_request() { throw std::invalid_argument("malloc: negative size or unknown stream"); }

std::int64_t CachingAllocator::State::device_bytes_for(const Request& request) const {
  return expandable ? round_up(request.rounded, page_bytes(is_small_list(request.list))) : segment_bytes(request.rounded);
}

Block& CachingAllocator::State::handed_out(BlockId id) {
  if (!heap.blocks.valid(id) || heap.blocks[id].state != BlockState::allocated) throw std::invalid_argument("block is not handed out");
  return heap.blocks[id];
}

/// One of the events that a deferred free waits for is done.
void CachingAllocator::State::finish_event(BlockId block) {
  if (--heap.blocks[block].events == 0) heap.give_back(block);
}

/// Try 1. Only the single best fit is looked at: PyTorch does not go on to the next block if this one is refused.
BlockId CachingAllocator::State::take_best_fit(const Request& request) {
  if (!is_small_list(request.list)) ++heap.lookups;
  const FreeList::Fit fit = heap.best_fit(request.list, request.rounded);
  if (fit.block == kNoBlock) return kNoBlock;
  const std::int64_t size = heap.blocks[fit.block].size;
  if (request.rounded < max_split ? size >= max_split : size >= request.rounded + kLargeSegmentBytes) return kNoBlock;
  heap.unlist(fit);
  return fit.block;
}

BlockId CachingAllocator::State::take_from_device(const Request& request) {
  const std::int64_t room = limit - heap.statistics.reserved;
  if (expandable) return ranges.grow(request.list, request.rounded, room);
  const std::int64_t bytes = segment_bytes(request.rounded);
  return bytes > room ? kNoBlock : heap.add_segment(request.list, bytes);
}

Outcome CachingAllocator::State::hand_out(BlockId block, const Request& request) {
  const std::int64_t rest = heap.blocks[block].size - request.rounded;
  const bool split = is_small_list(request.list) || expandable ? rest >= kMinBlockBytes : request.rounded < max_split && rest > kLargeSplitRest;
  heap.hand_out(block, request.rounded, request.bytes, split);
  return {.block = block, .bytes = heap.blocks[block].size};
}

Outcome CachingAllocator::State::ask_device(const Request& request) {
  collect_garbage();
  BlockId block = take_from_device(request);
  if (block == kNoBlock && release_oversize(request)) block = take_from_device(request);
  return block == kNoBlock ? Outcome{.kind = Outcome::Kind::must_drain} : hand_out(block, request);
}

Outcome CachingAllocator::State::flush_and_retry(const Request& request) {
  flush();
  ++heap.statistics.retries;
  const BlockId block = take_from_device(request);
  if (block != kNoBlock) return hand_out(block, request);
  ++heap.statistics.ooms;
  return {.kind = Outcome::Kind::out_of_memory};
}

namespace {

BlockInfo info_of(BlockId id, const Block& block) {
  const bool live = block.state == BlockState::allocated || block.state == BlockState::pending;
  return {.block = id,
          .address = block.address,
          .size = block.size,
          .requested = live ? block.requested : 0,
          .stream = stream_of_list(block.list),
          .small_pool = is_small_list(block.list),
          .begins_segment = block.prev == kNoBlock,
          .state = block.state};
}

/// What the device did in one call: the difference of the running counters.
class DeviceCalls {
 public:
  explicit DeviceCalls(const Heap& heap)
      : heap_(heap),
        mallocs_(heap.statistics.device_mallocs),
        frees_(heap.statistics.device_frees),
        released_(heap.released),
        reserved_(heap.statistics.reserved) {}

  [[nodiscard]] Outcome noted(Outcome outcome, std::int64_t asked) const {
    outcome.device_mallocs = static_cast<std::int32_t>(heap_.statistics.device_mallocs - mallocs_);
    outcome.device_frees = static_cast<std::int32_t>(heap_.statistics.device_frees - frees_);
    outcome.released_bytes = heap_.released - released_;
    outcome.segment_bytes = outcome.kind == Outcome::Kind::done ? heap_.statistics.reserved - reserved_ + outcome.released_bytes : asked;
    return outcome;
  }

 private:
  const Heap& heap_;
  std::int64_t mallocs_, frees_, released_, reserved_;
};

}  // namespace

CachingAllocator::CachingAllocator(const Settings& settings, std::int64_t device_bytes, int streams, EventSource& events) {
  constexpr int kMaxStreams = 64;  // one bit each in Block::uses; PyTorch hands out 32 per priority
  validate(settings, "allocator settings");
  if (device_bytes < 0 || device_bytes > kMaxBytes) throw InputError("allocator settings", "", "device memory must be between 0 and 1 PiB");
  if (streams < 1 || streams > kMaxStreams) throw InputError("allocator settings", "", "the number of streams must be between 1 and 64");
  state_ = std::make_unique<State>(settings, device_bytes, streams, events);
  statistics_ = &state_->heap.statistics;
}

CachingAllocator::~CachingAllocator() = default;
CachingAllocator::CachingAllocator(CachingAllocator&&) noexcept = default;

Outcome CachingAllocator::malloc(std::int64_t bytes, int stream) {
  State& state = *state_;
  const State::Request request = state.request(bytes, stream);
  if (bytes == 0) return {};
  if (state.polls(request) != 0) state.deferred.poll(*state.events, [&](BlockId block) { state.finish_event(block); });
  if (const BlockId block = state.take_best_fit(request); block != kNoBlock) return state.hand_out(block, request);
  const DeviceCalls calls(state.heap);
  return calls.noted(state.ask_device(request), state.device_bytes_for(request));
}

std::uint64_t CachingAllocator::polls(std::int64_t bytes, int stream) const {
  return state_->deferred.streams() == 0 ? 0 : state_->polls(state_->request(bytes, stream));
}

/// Garbage collection looks at the blocks of all lists and at when they were freed.
void CachingAllocator::poll_when_needed() { state_->poll_always = state_->gc_above != kUnlimited; }

Outcome CachingAllocator::malloc_after_drain(std::int64_t bytes, int stream) {
  State& state = *state_;
  const State::Request request = state.request(bytes, stream);
  if (bytes == 0) return {};
  const DeviceCalls calls(state.heap);
  return calls.noted(state.flush_and_retry(request), state.device_bytes_for(request));
}

void CachingAllocator::free(BlockId id) {
  if (id == kNoBlock) return;
  State& state = *state_;
  Block& block = state.handed_out(id);
  state.heap.statistics.allocated -= block.size;
  state.heap.statistics.requested -= block.requested;
  if (block.uses == 0) return state.heap.give_back(id);
  block.state = BlockState::pending;
  block.events = 0;
  for (std::uint64_t rest = block.uses; rest != 0; rest &= rest - 1) {
    const int stream = std::countr_zero(rest);
    ++block.events;
    state.deferred.push(stream, state.events->record(stream), id, block.list);
  }
}

void CachingAllocator::record_stream(BlockId id, int stream) {
  if (id == kNoBlock) return;
  Block& block = state_->handed_out(id);
  if (stream < 0 || stream >= state_->streams) throw std::invalid_argument("record_stream: unknown stream");
  if (stream != stream_of_list(block.list)) block.uses |= std::uint64_t{1} << stream;
}

void CachingAllocator::empty_cache() { state_->flush(); }

std::uint64_t CachingAllocator::address(BlockId block) const { return state_->heap.blocks[block].address; }

std::int64_t CachingAllocator::size(BlockId block) const { return block == kNoBlock ? 0 : state_->heap.blocks[block].size; }

std::vector<BlockInfo> CachingAllocator::snapshot() const {
  std::vector<BlockInfo> infos;
  const std::vector<Block>& table = state_->heap.blocks.table();
  for (std::size_t id = 0; id < table.size(); ++id)
    if (table[id].state != BlockState::gone) infos.push_back(info_of(static_cast<BlockId>(id), table[id]));
  std::sort(infos.begin(), infos.end(), [](const BlockInfo& a, const BlockInfo& b) { return a.address < b.address; });
  return infos;
}

}  // namespace stepcast::memory
