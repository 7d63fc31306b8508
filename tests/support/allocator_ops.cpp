// The recount behind `audit`, and a driver that decodes settings and operations from bytes. Rules: docs/caching_allocator.md.
#include "support/allocator_ops.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "memory/sizes.hpp"

namespace stepcast::test {
namespace {

using namespace memory;

bool touches(const BlockInfo& a, const BlockInfo& b) { return !b.begins_segment && a.address + static_cast<std::uint64_t>(a.size) == b.address; }

std::string audit_tiling(const std::vector<BlockInfo>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockInfo& block = blocks[i];
    if (block.size <= 0 || block.size % kMinBlockBytes != 0) return "a block's size is no multiple of 512 B";
    if (i == 0) continue;
    const BlockInfo& left = blocks[i - 1];
    if (left.address + static_cast<std::uint64_t>(left.size) > block.address) return "blocks overlap";
    if (block.begins_segment) continue;
    if (!touches(left, block)) return "a gap inside a segment";
    if (left.stream != block.stream || left.small_pool != block.small_pool) return "a segment with two streams or pools";
    const bool mergeable = block.state == BlockState::free || block.state == BlockState::unmapped;
    if (mergeable && left.state == block.state) return "free neighbours are not merged";
  }
  return "";
}

struct Segment {
  std::size_t blocks = 0;
  std::int64_t mapped = 0, free = 0;
};

std::vector<Segment> segments_of(const std::vector<BlockInfo>& blocks) {
  std::vector<Segment> segments;
  for (const BlockInfo& block : blocks) {
    if (block.begins_segment) segments.emplace_back();
    Segment& segment = segments.back();
    ++segment.blocks;
    if (block.state != BlockState::unmapped) segment.mapped += block.size;
    if (block.state == BlockState::free) segment.free += block.size;
  }
  return segments;
}

}  // namespace

std::string audit(const CachingAllocator& allocator, bool expandable) {
  const std::vector<BlockInfo> blocks = allocator.snapshot();
  if (!blocks.empty() && !blocks.front().begins_segment) return "the first block begins no segment";
  if (std::string broken = audit_tiling(blocks); !broken.empty()) return broken;
  const Statistics& said = allocator.statistics();
  Statistics counted;
  for (const BlockInfo& block : blocks) {
    if (block.state == BlockState::allocated) counted.allocated += block.size, counted.requested += block.requested;
    if (block.state == BlockState::allocated || block.state == BlockState::pending) counted.active += block.size;
  }
  for (const Segment& segment : segments_of(blocks)) {
    counted.reserved += segment.mapped;
    if (!expandable && segment.blocks > 1) counted.inactive_split += segment.free;
    if (segment.mapped > 0) ++counted.segments;
  }
  if (said.allocated != counted.allocated) return "allocated differs from the recount";
  if (said.requested != counted.requested) return "requested differs from the recount";
  if (said.active != counted.active) return "active differs from the recount";
  if (said.reserved != counted.reserved) return "reserved differs from the recount";
  if (said.inactive_split != counted.inactive_split) return "inactive_split differs from the recount";
  if (said.segments != counted.segments) return "segments differ from the recount";
  if (!expandable && said.device_mallocs - said.device_frees != said.segments) return "device mallocs less frees are not the segments";
  return "";
}

namespace {

class ManualEvents final : public EventSource {
 public:
  std::uint64_t record(int stream) override { return recorded_[static_cast<std::size_t>(stream)]++; }
  [[nodiscard]] bool done(int stream, std::uint64_t event) const override { return event < finished_[static_cast<std::size_t>(stream)]; }
  void complete(int stream, std::uint64_t count) {
    const auto s = static_cast<std::size_t>(stream);
    finished_[s] = std::min(recorded_[s], finished_[s] + count);
  }
  void complete_all() { finished_ = recorded_; }

 private:
  std::vector<std::uint64_t> recorded_ = std::vector<std::uint64_t>(64), finished_ = std::vector<std::uint64_t>(64);
};

class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> data) : data_(data) {}
  [[nodiscard]] bool empty() const { return at_ >= data_.size(); }
  std::uint8_t next() { return empty() ? std::uint8_t{0} : data_[at_++]; }
  std::int64_t below(std::int64_t limit) { return next() % limit; }

 private:
  std::span<const std::uint8_t> data_;
  std::size_t at_ = 0;
};

struct Setup {
  Settings settings;
  std::int64_t device_bytes;
  int streams;
};

Setup read_setup(Bytes& bytes) {
  const std::uint8_t flags = bytes.next();
  Setup setup{.settings = {}, .device_bytes = (bytes.below(120) + 8) * kMiB + bytes.below(3) * 1000, .streams = static_cast<int>(bytes.below(4)) + 1};
  Settings& s = setup.settings;
  if (flags & 1) s.max_split_size = (21 + bytes.below(40)) * kMiB + bytes.below(2) * 12345;
  if (flags & 2) s.roundup_power2_divisions = std::int64_t{1} << bytes.below(6);
  if (flags & 4) s.memory_fraction = static_cast<double>(bytes.below(100) + 1) / 100;
  if (flags & 8) s.garbage_collection_threshold = static_cast<double>(bytes.below(99) + 1) / 100;
  s.expandable_segments = (flags & 16) != 0;
  return setup;
}

std::int64_t read_size(Bytes& bytes) {
  switch (bytes.below(6)) {
    case 0: return bytes.next() * 7;
    case 1: return bytes.next() * std::int64_t{4096};
    case 2: return bytes.next() * (kMiB / 16) + bytes.next();
    case 3: return bytes.below(64) * kMiB + bytes.next();
    case 4: return std::int64_t{1} << bytes.below(63);
    default: return bytes.below(24) * (kMiB / 2);
  }
}

class Driver {
 public:
  explicit Driver(const Setup& setup) : setup_(setup), allocator_(setup.settings, setup.device_bytes, setup.streams, events_) {}

  std::string step(Bytes& bytes) {
    ++run_.operations;
    const std::uint8_t op = bytes.next() % 16;
    if (op < 7) return malloc(read_size(bytes), static_cast<int>(bytes.below(setup_.streams)));
    if (op < 12) return free(bytes);
    if (op < 14 && !live_.empty()) allocator_.record_stream(pick(bytes), static_cast<int>(bytes.below(setup_.streams)));
    if (op == 14) events_.complete(static_cast<int>(bytes.below(setup_.streams)), bytes.next() % 4U);
    return "";
  }

  [[nodiscard]] std::string audited() const { return audit(allocator_, setup_.settings.expandable_segments); }

  DrivenRun finish(std::string violation) {
    run_.violation = std::move(violation);
    run_.last = allocator_.statistics();
    return run_;
  }

 private:
  BlockId pick(Bytes& bytes) { return live_[static_cast<std::size_t>(bytes.next()) % live_.size()]; }

  /// The block that rounding and best fit must choose, straight from the rules; kNoBlock if none or if pending frees may complete first.
  BlockId expected_fit(std::int64_t size, int stream) const {
    const std::int64_t rounded = round_request(size, setup_.settings.roundup_power2_divisions);
    const std::int64_t max_split = setup_.settings.max_split_size.value_or(kMaxBytes * 2);
    const BlockInfo* best = nullptr;
    const std::vector<BlockInfo> blocks = allocator_.snapshot();
    for (const BlockInfo& block : blocks) {
      if (block.state == BlockState::pending) return kNoBlock;
      if (block.state != BlockState::free || block.stream != stream || block.small_pool != is_small(rounded) || block.size < rounded) continue;
      if (best == nullptr || block.size < best->size) best = &block;
    }
    const bool refused = best != nullptr && (rounded < max_split ? best->size >= max_split : best->size >= rounded + 20 * kMiB);
    return best == nullptr || refused ? kNoBlock : best->block;
  }

  std::string malloc(std::int64_t size, int stream) {
    const BlockId fit = size == 0 ? kNoBlock : expected_fit(size, stream);
    const std::uint64_t fit_address = fit == kNoBlock ? 0 : allocator_.address(fit);
    const std::int64_t retries = allocator_.statistics().retries;
    Outcome outcome = allocator_.malloc(size, stream);
    if (outcome.kind == Outcome::Kind::out_of_memory) return "out of memory before the flush";
    const bool flushed = outcome.kind == Outcome::Kind::must_drain;
    if (flushed) {
      events_.complete_all();
      outcome = allocator_.malloc_after_drain(size, stream);
    }
    if (allocator_.statistics().retries != retries + (flushed ? 1 : 0)) return "retries are not the flushes";
    if (outcome.kind == Outcome::Kind::out_of_memory) return after_oom(outcome);
    return after_malloc(outcome, size, fit, fit_address);
  }

  std::string after_malloc(const Outcome& outcome, std::int64_t size, BlockId fit, std::uint64_t fit_address) {
    if (outcome.kind != Outcome::Kind::done) return "must_drain twice";
    if (size == 0) return outcome.block == kNoBlock ? "" : "a block for nothing";
    if (outcome.bytes < round_request(size, setup_.settings.roundup_power2_divisions)) return "the block is too small";
    if ((outcome.device_mallocs > 0) != (outcome.segment_bytes > 0)) return "device mallocs and bytes disagree";
    if (allocator_.statistics().reserved > setup_.device_bytes) return "more reserved than the card has";
    if (outcome.device_mallocs == 0) ++run_.cache_hits;
    if (fit != kNoBlock) {
      ++run_.best_fits_checked;
      if (outcome.device_mallocs != 0 || allocator_.address(outcome.block) != fit_address) return "not the best fit";
    }
    live_.push_back(outcome.block);
    return "";
  }

  std::string after_oom(const Outcome& outcome) const {
    const std::vector<BlockInfo> blocks = allocator_.snapshot();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].state == BlockState::pending) return "a deferred free survived the flush";
      const bool whole = blocks[i].begins_segment && (i + 1 == blocks.size() || blocks[i + 1].begins_segment);
      if (!setup_.settings.expandable_segments && whole && blocks[i].state == BlockState::free) return "a free segment survived the flush";
    }
    const bool fits = allocator_.statistics().reserved + outcome.segment_bytes <= limit();
    return fits && !setup_.settings.expandable_segments ? "out of memory although the segment fits" : "";
  }

  [[nodiscard]] std::int64_t limit() const {
    return static_cast<std::int64_t>(setup_.settings.memory_fraction.value_or(1.0) * static_cast<double>(setup_.device_bytes));
  }

  std::string free(Bytes& bytes) {
    if (live_.empty()) return "";
    const std::size_t index = bytes.next() % live_.size();
    const Statistics before = allocator_.statistics();
    allocator_.free(live_[index]);
    live_[index] = live_.back();
    live_.pop_back();
    const Statistics& now = allocator_.statistics();
    if (now.allocated >= before.allocated) return "a free that frees nothing";
    if (now.reserved != before.reserved) return "a free that changes reserved memory";
    return "";
  }

  Setup setup_;
  ManualEvents events_;
  CachingAllocator allocator_;
  std::vector<BlockId> live_;
  DrivenRun run_;
};

}  // namespace

DrivenRun drive_allocator(std::span<const std::uint8_t> data, std::size_t audit_every) {
  Bytes bytes(data);
  Driver driver(read_setup(bytes));
  for (std::size_t i = 1; !bytes.empty(); ++i) {
    if (std::string broken = driver.step(bytes); !broken.empty()) return driver.finish(broken);
    if (i % audit_every != 0) continue;
    if (std::string broken = driver.audited(); !broken.empty()) return driver.finish(broken);
  }
  return driver.finish(driver.audited());
}

}  // namespace stepcast::test
