// Happens-before by vector clocks over the streams (after Flanagan and Freund, "FastTrack", PLDI 2009: last write and last read per lane are enough).
// Edges: host order into each enqueued op; FIFO of a stream; record to wait; record to host_wait; FIFO of a communicator. Rules: docs/check.md.
#include "program/check.hpp"

#include <fmt/format.h>

#include <set>
#include <tuple>

#include "program/vector_clock.hpp"

namespace stepcast::program {
namespace {

/// One use of a buffer by a device op.
struct Use {
  Epoch epoch;
  OpPlace place;
};

/// What pools remember: the last use of any freed memory per stream, and the buffer that it was.
struct Hazard {
  Use use;
  std::uint32_t buffer = 0;
  OpPlace given_back;
};
using Hazards = std::array<Hazard, kStreams>;

struct BufferState {
  enum class Life : std::uint8_t { never, live, freed };
  Life life = Life::never;
  Stream pool = Stream::compute;
  std::uint16_t recorded_streams = 0;  // bit per stream
  static_assert(kStreams <= 16);
  OpPlace taken, given_back;
  Use last_write;
  std::array<Use, kStreams> last_read{};
  Hazards inherited{};  // uses of freed memory of the pool at the moment of alloc: any access must come after them
};

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program), buffers_(program.buffers.size()), events_(program.events.size()) {
    for (const Op& op : program.ops) allocates_ = allocates_ || op.kind == OpKind::alloc;
  }

  std::vector<Finding> run() {
    if (malformed()) return std::move(findings_);
    walk(program_.setup, -1);
    std::vector<bool> before, after;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      // A step that has run twice from the same range brings nothing new the third time.
      if (i >= 2 && program_.steps[i] == program_.steps[i - 1] && program_.steps[i] == program_.steps[i - 2]) continue;
      walk(program_.steps[i], static_cast<std::int32_t>(i));
      before = std::move(after);
      after = live();
    }
    if (!before.empty()) leaks(before, after);
    return std::move(findings_);
  }

 private:
  struct EventState {
    bool recorded = false;
    VectorClock clock;
  };

  // --- ids -----------------------------------------------------------------------------------------------------------------------------------------
  [[nodiscard]] std::size_t table_size(OpKind kind) const {
    switch (kind) {
      case OpKind::launch: return program_.kernels.size();
      case OpKind::collective: return program_.collectives.size();
      case OpKind::record:
      case OpKind::wait:
      case OpKind::host_wait: return program_.events.size();
      case OpKind::alloc:
      case OpKind::free:
      case OpKind::record_stream: return program_.buffers.size();
      case OpKind::mark: return program_.marks.size();
      default: return ~std::size_t{0};
    }
  }

  [[nodiscard]] bool valid(const Op& op) const {
    if (op.stream >= Stream::count_ || op.kind > OpKind::mark || op.id >= table_size(op.kind)) return false;
    if (std::size_t{op.operands} + op.operand_count > program_.operands.size()) return op.operand_count == 0;
    for (const Operand& operand : program_.operands_of(op)) {
      if (operand.buffer >= program_.buffers.size()) return false;
    }
    return op.kind != OpKind::collective || program_.collectives[op.id].communicator < Communicator::count_;
  }

  bool malformed() {
    const auto bad = [&](Range range) { return range.begin > range.end || range.end > program_.ops.size(); };
    for (const Range& range : program_.steps) {
      if (bad(range))
        add({Fault::malformed, {}, {}, fmt::format("malformed: a step's range {}..{} is not within {} ops", range.begin, range.end, program_.ops.size())});
    }
    if (bad(program_.setup)) add({Fault::malformed, {}, {}, "malformed: the range of the set-up is not within the ops"});
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      if (valid(program_.ops[i])) continue;
      add({Fault::malformed, {i, -1, kNoOp, 0}, {}, fmt::format("malformed: op {} ({}) points outside the program's tables", i, name(program_.ops[i].kind))});
    }
    return !findings_.empty();
  }

  // --- the walk ------------------------------------------------------------------------------------------------------------------------------------
  void walk(Range range, std::int32_t step) {
    for (std::uint32_t i = range.begin; i < range.end; ++i) {
      place_ = {i, step, units_.empty() ? kNoOp : units_.back(), 0};
      visit(program_.ops[i]);
    }
  }

  void visit(const Op& op) {
    switch (op.kind) {
      case OpKind::launch:
      case OpKind::collective: enqueue(op); break;
      case OpKind::record: record(op); break;
      case OpKind::wait:
        if (recorded(op)) stream_clock(op.stream).join(events_[op.id].clock);
        break;
      case OpKind::host_wait:
        if (recorded(op)) host_.join(events_[op.id].clock);
        break;
      case OpKind::alloc: alloc(op); break;
      case OpKind::free: free(op); break;
      case OpKind::record_stream: record_stream(op); break;
      case OpKind::mark: mark(op); break;
      case OpKind::host_work:
      case OpKind::next_batch: break;
    }
  }

  VectorClock& stream_clock(Stream stream) { return streams_[static_cast<std::size_t>(stream)]; }

  void enqueue(const Op& op) {
    VectorClock& clock = stream_clock(op.stream);
    clock.join(host_);
    VectorClock* communicator = op.kind == OpKind::collective ? &communicators_[static_cast<std::size_t>(program_.collectives[op.id].communicator)] : nullptr;
    if (communicator) clock.join(*communicator);
    const auto lane = static_cast<std::uint8_t>(op.stream);
    const Use use{{lane, clock.done[lane] + 1}, place_};
    for (const Operand& operand : program_.operands_of(op)) access(operand, use, clock);
    clock.done[lane] = use.epoch.n;
    if (communicator) *communicator = clock;
  }

  void record(const Op& op) {
    EventState& event = events_[op.id];
    event.recorded = true;
    event.clock = stream_clock(op.stream);
    event.clock.join(host_);
  }

  bool recorded(const Op& op) {
    if (events_[op.id].recorded) return true;
    add({Fault::wait_before_record, place_, {}, fmt::format("wait before record: {} has no effect, since no record has been issued before it", words(place_))});
    return false;
  }

  void mark(const Op& op) {
    const MarkEntry& entry = program_.marks[op.id];
    if (entry.kind != MarkKind::unit && entry.kind != MarkKind::recompute) return;
    if (entry.begin) units_.push_back(op.id);
    else if (!units_.empty()) units_.pop_back();
  }

  // --- memory --------------------------------------------------------------------------------------------------------------------------------------
  void alloc(const Op& op) {
    BufferState& buffer = buffers_[op.id];
    if (buffer.life == BufferState::Life::live) return add_pair(Fault::alloc_twice, buffer.taken, op.id, "takes it again while it is live, taken by");
    buffer = BufferState{};
    buffer.life = BufferState::Life::live;
    buffer.pool = op.stream;
    buffer.taken = place_;
    buffer.inherited = pools_[static_cast<std::size_t>(op.stream)];
  }

  void free(const Op& op) {
    BufferState& buffer = buffers_[op.id];
    if (buffer.life == BufferState::Life::freed) return add_pair(Fault::free_twice, buffer.given_back, op.id, "gives it back again, after");
    if (buffer.life == BufferState::Life::never) return add_single(Fault::free_twice, op.id, "gives back what was never taken");
    buffer.life = BufferState::Life::freed;
    buffer.given_back = place_;
    release(buffer, op.id);
  }

  /// The pool may hand the memory out at once. Uses on streams named by record_stream need no order: the allocator waits for an event there.
  void release(const BufferState& buffer, std::uint32_t id) {
    Hazards& pool = pools_[static_cast<std::size_t>(buffer.pool)];
    const auto note = [&](const Use& use) {
      const std::size_t lane = use.epoch.stream;
      const bool covered = lane != static_cast<std::size_t>(buffer.pool) && (buffer.recorded_streams >> lane & 1) != 0;
      if (!covered && use.epoch.n > pool[lane].use.epoch.n) pool[lane] = {use, id, buffer.given_back};
    };
    note(buffer.last_write);
    for (const Use& read : buffer.last_read) note(read);
  }

  void record_stream(const Op& op) {
    BufferState& buffer = buffers_[op.id];
    if (buffer.life == BufferState::Life::live)
      buffer.recorded_streams = static_cast<std::uint16_t>(buffer.recorded_streams | 1U << static_cast<unsigned>(op.stream));
    else if (buffer.life == BufferState::Life::freed)
      add_pair(Fault::use_after_free, buffer.given_back, op.id, "names a stream for it, after it was given back by");
    else if (allocates_) add_single(Fault::use_before_alloc, op.id, "names a stream for it before it is taken");
  }

  void access(const Operand& operand, const Use& use, VectorClock& clock) {
    BufferState& buffer = buffers_[operand.buffer];
    alive(buffer, operand.buffer);
    for (const Hazard& hazard : buffer.inherited) {
      if (ordered(hazard.use.epoch, clock) || hazard.use.epoch.stream == use.epoch.stream) continue;
      add_reuse(hazard, operand.buffer);
      repair(clock, hazard.use.epoch);
    }
    const bool writes = operand.access != Access::read, reads = operand.access != Access::write;
    after(buffer.last_write, operand.buffer, clock, use, writes ? "writes it" : "reads it", "writes it");
    if (writes) {
      for (const Use& read : buffer.last_read) after(read, operand.buffer, clock, use, "writes it", "reads it");
      buffer.last_write = use;
    }
    if (reads) buffer.last_read[use.epoch.stream] = use;
  }

  void alive(const BufferState& buffer, std::uint32_t id) {
    if (!allocates_ || buffer.life == BufferState::Life::live) return;  // a program without any alloc (fixed costs) has no memory to check
    if (buffer.life == BufferState::Life::freed) add_pair(Fault::use_after_free, buffer.given_back, id, "uses it after it was given back by");
    else add_single(Fault::use_before_alloc, id, "uses it before it is taken");
  }

  void after(const Use& earlier, std::uint32_t buffer, VectorClock& clock, const Use& use, const char* now, const char* then) {
    // The op's own epoch is not in the clock yet: an op that names a buffer twice does not race with itself.
    if (ordered(earlier.epoch, clock) || earlier.epoch.stream == use.epoch.stream) return;
    add({Fault::race, earlier.place, place_,
         fmt::format("race on {}: {} {}, and nothing orders it after {}, which {}; a wait of {} for {} is missing", label(buffer), words(place_), now,
                     words(earlier.place), then, stream_name(place_), stream_name(earlier.place))});
    repair(clock, earlier.epoch);
  }

  static void repair(VectorClock& clock, const Epoch& epoch) { clock.done[epoch.stream] = std::max(clock.done[epoch.stream], epoch.n); }

  [[nodiscard]] std::vector<bool> live() const {
    std::vector<bool> result(buffers_.size());
    for (std::size_t i = 0; i < buffers_.size(); ++i) result[i] = buffers_[i].life == BufferState::Life::live;
    return result;
  }

  void leaks(const std::vector<bool>& before, const std::vector<bool>& after) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (!after[i] || before[i]) continue;
      add({Fault::leak,
           buffers_[i].taken,
           {},
           fmt::format("leak of {} ({} bytes): taken by {}, live at the end of the step, not at the end of the step before",
                       label(static_cast<std::uint32_t>(i)), program_.buffers[i].bytes, words(buffers_[i].taken))});
    }
  }

  // --- findings ------------------------------------------------------------------------------------------------------------------------------------
  void add(Finding finding) {
    if (reported_.emplace(finding.fault, finding.first.op, finding.second.op).second) findings_.push_back(std::move(finding));
  }
  void add_pair(Fault fault, const OpPlace& first, std::uint32_t buffer, const char* what) {
    add({fault, first, place_, fmt::format("{} of {}: {} {} {}", name(fault), label(buffer), words(place_), what, words(first))});
  }
  void add_single(Fault fault, std::uint32_t buffer, const char* what) {
    add({fault, place_, {}, fmt::format("{} of {}: {} {}", name(fault), label(buffer), words(place_), what)});
  }
  void add_reuse(const Hazard& hazard, std::uint32_t buffer) {
    add({Fault::reuse_race, hazard.use.place, place_,
         fmt::format("reuse race: {} uses {}, whose memory may be that of {}, given back by {} while {} may still use it; a record_stream for {} or a wait for "
                     "it is missing",
                     words(place_), label(buffer), label(hazard.buffer), words(hazard.given_back), words(hazard.use.place), stream_name(hazard.use.place))});
  }

  [[nodiscard]] std::string words(const OpPlace& place) const { return describe(program_, place); }
  [[nodiscard]] std::string label(std::uint32_t buffer) const { return program_.buffers[buffer].label; }
  [[nodiscard]] const char* stream_name(const OpPlace& place) const { return name(program_.ops[place.op].stream); }

  const Program& program_;
  std::vector<BufferState> buffers_;
  std::vector<EventState> events_;
  std::array<VectorClock, kStreams> streams_{};
  std::array<VectorClock, kCommunicators> communicators_{};
  VectorClock host_;  // what the host knows to be complete
  std::array<Hazards, kStreams> pools_{};
  std::vector<std::uint32_t> units_;
  OpPlace place_;
  bool allocates_ = false;
  std::set<std::tuple<Fault, std::uint32_t, std::uint32_t>> reported_;  // the same pair in a later step is the same fault
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check(const Program& program) { return Checker(program).run(); }

}  // namespace stepcast::program
