// The event engine: ranks with a host thread and streams, communicators that meet across ranks, fluid sharing of what they contend for.
// It knows streams, events, collectives and memory; it has never heard of FSDP. Semantics: docs/models.md, "Execution".
// device.cpp moves streams and collectives, host.cpp makes the program's calls, simulate.cpp sets up and collects.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/program.hpp"
#include "sim/event_queue.hpp"
#include "sim/rank.hpp"
#include "sim/recorder.hpp"
#include "sim/sharing.hpp"
#include "sim/simulate.hpp"

namespace stepcast::sim {

/// Ranks that share a communicator, and the collective that they are in.
struct Group {
  program::Communicator communicator = program::Communicator::shard;
  std::vector<std::uint32_t> members;
  std::uint32_t arrived = 0;
  std::uint32_t entry = 0;  // collective entry of the first to arrive
  SimTime first_arrival{};
  std::int32_t step = 0;  // in which it was called
  bool transferring = false;
  std::uint32_t order = 0;  // of the pending end event
  SimTime updated{}, remaining{};
  double speed = 1;
  std::uint64_t retimed = 0;  // stamp of the last look at its speed
};

/// What the engine needs of a Program::buffers entry, close together.
struct BufferFacts {
  std::int64_t bytes = 0;
  program::Owner owner{};
};

/// A kernel next to a collective, with the DRAM to itself: what nearly every kernel of a sharded step becomes, worked out once.
struct SlowKernel {
  double speed = 1;
  SimTime duration{};
};

class Engine {
 public:
  Engine(std::span<const program::Program* const> programs, const PriceList& prices, const Options& options);
  Result run();

 private:
  static constexpr std::uint64_t kAllStreams = ~std::uint64_t{0};

  // host.cpp
  void run_host(Rank& rank);
  bool next_range(Rank& rank);
  bool execute(Rank& rank, const program::Op& op);
  [[nodiscard]] SimTime host_cost(const Rank& rank, const program::Op& op) const;
  void pause(Rank& rank);
  [[nodiscard]] std::uint64_t looks_at(const Rank& rank, const program::Op& op) const;
  bool reach_now(Rank& rank, std::uint64_t streams = kAllStreams);
  void block(Rank& rank, Host::State state, trace::HostState reason, std::uint32_t waits_for);
  void resume(Rank& rank);
  bool host_wait(Rank& rank, const program::Op& op);
  bool enqueue(Rank& rank, const program::Op& op);
  bool allocate(Rank& rank, const program::Op& op);
  bool charge_allocation(Rank& rank, const memory::Outcome& outcome);
  void release(Rank& rank, const program::Op& op);
  void account(const Rank& rank, std::uint32_t buffer, const memory::Outcome& taken);
  [[nodiscard]] BytesByOwner held_by_owner(const Memory& memory) const;
  void take_batch(Rank& rank);
  void run_out_of_memory(const Rank& rank, const program::Op& op, const memory::Outcome& outcome);

  // device.cpp
  void handle(const Event& event);
  void settle(Rank& rank);
  [[nodiscard]] bool may_advance(const Rank& rank, std::uint64_t streams) const;
  [[nodiscard]] SimTime earliest_end(const Rank& rank, const Stream& stream) const;
  void next_turn(Rank& rank);
  void advance(Rank& rank, std::uint32_t stream);
  void start_kernel(Rank& rank, std::uint32_t stream);
  void end_kernel(Rank& rank, std::uint32_t stream);
  void complete_record(Rank& rank, std::uint32_t event);
  void retire(Rank& rank, std::uint32_t stream);
  void wake_host(Rank& rank, std::uint32_t stream);
  void reach_collective(Rank& rank, std::uint32_t stream);
  void start_collective(std::uint32_t group);
  void count_waits(const Group& group);
  [[nodiscard]] SimTime transfer_time(const Group& group) const;
  void end_collective(std::uint32_t group);
  void end_collective_on(Rank& rank, const Group& group);
  [[nodiscard]] static std::uint32_t kernel_at_head(const Rank& rank, std::uint32_t stream);
  [[nodiscard]] double lone_speed(const Rank& rank, std::uint32_t stream) const;
  [[nodiscard]] Flow kernel_flow(const Rank& rank, std::uint32_t stream) const;
  [[nodiscard]] Flow collective_flow(const Group& group) const;
  void retime(Rank& rank);
  void retime_kernels(Rank& rank);
  void set_speed(Rank& rank, std::uint32_t stream, double speed);
  void price_slow_kernels();
  [[nodiscard]] SimTime kernel_end(const Rank& rank, std::uint32_t stream) const;
  void retime_collectives(const Group& changed);
  [[nodiscard]] double collective_speed(const Rank& rank, std::uint32_t group) const;
  void set_group_speed(std::uint32_t group, double speed);
  [[nodiscard]] std::uint32_t group_of(const Rank& rank, program::Communicator communicator) const;

  // simulate.cpp
  void make_groups();
  void describe_deadlock();
  Result collect();

  [[nodiscard]] static bool recorded(const Rank& rank) { return rank.recorder != nullptr; }
  /// The rank whose memory the result speaks of.
  [[nodiscard]] static bool first(const Rank& rank) { return rank.index == 0; }
  [[nodiscard]] static Recorder& recorder(const Rank& rank) { return *rank.recorder; }

  const program::Program& program_;  // the tables, which all ranks' programs share
  const PriceList& prices_;
  const Options& options_;
  Variation variation_;
  EventQueue queue_;
  SimTime now_{};
  std::vector<Rank> ranks_;               // never moved: a rank's allocator watches its streams
  std::vector<BufferFacts> buffers_;      // by Program::buffers
  std::vector<SlowKernel> slow_kernels_;  // by Program::kernels
  std::vector<Group> groups_;
  std::array<std::vector<std::uint32_t>, program::kCommunicators> group_index_;  // rank -> group
  Recording recording_;
  std::vector<Recorder> recorders_;  // of the ranks that are recorded, which point to them: never moved
  MemoryAccount account_;
  Result result_;
  std::uint32_t unfinished_ = 0;
  std::uint64_t retime_stamp_ = 0;
  bool stopped_ = false;
  bool threads_ = false;  // collectives are threads of the processors that kernels run on
};

}  // namespace stepcast::sim
