// An independent evaluation of FSDP2 schedules with fixed costs: walks the host's calls once, keeping only times (max-plus), straight from the published rules of
// torch.distributed.fsdp.fully_shard. It shares no code with the program builder or the simulator. Times in nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/fixed_cost_oracle.hpp"

namespace stepcast::test {

/// `costs` carries layers, steps, accumulation, no_sync and all times; its FSDP1 settings are not used.
struct Fsdp2Setting {
  OracleSetting costs;
  int reshard = 1;  // 0 kept, 1 resharded, else among a part of the ranks
  int forward_depth = 0, backward_depth = 1;
};

class Fsdp2Oracle {
 public:
  explicit Fsdp2Oracle(const Fsdp2Setting& setting) : s_(setting), c_(setting.costs), units_(static_cast<std::size_t>(setting.costs.layers + 1)) {}

  /// Ends of the optimizer of each step.
  std::vector<std::int64_t> run() {
    std::vector<std::int64_t> ends;
    for (int step = 0; step < c_.steps; ++step) {
      for (int m = 0; m < c_.accumulation; ++m) {
        sync_ = !c_.no_sync || m + 1 == c_.accumulation;
        forward();
        backward();
      }
      kernel(c_.optimizer);
      ends.push_back(compute_);
    }
    return ends;
  }

 private:
  enum class State { sharded, part, whole };
  struct Unit {
    State state = State::sharded;
    bool pending = false;
    std::int64_t gathered = 0, copied_out = 0, resharded = 0, reduced = -1;
  };
  [[nodiscard]] int root() const { return c_.layers; }
  Unit& unit(int u) { return units_[static_cast<std::size_t>(u)]; }
  static void wait(std::int64_t& stream, std::int64_t event) { stream = std::max(stream, event); }

  void kernel(std::int64_t duration) {
    host_ += c_.host_kernel;
    compute_ = std::max(compute_, host_) + duration;
  }
  void collective(std::int64_t& stream, std::int64_t& communicator, std::int64_t duration) {
    host_ += c_.host_collective;
    stream = communicator = std::max({stream, communicator, host_}) + duration;
  }

  void unshard(int u) {
    Unit& it = unit(u);
    if (it.pending || it.state == State::whole) return;
    if (it.state == State::part) wait(copy_in_, it.resharded), wait(gather_, it.resharded);
    wait(gather_, copy_in_);
    collective(gather_, it.state == State::part ? sub_ : nccl_, u == root() ? c_.gather_root : c_.gather_block);
    it.gathered = gather_;
    it.pending = true;
  }
  void release(int u) {
    wait(copy_in_, unit(u).copied_out);
    wait(gather_, unit(u).copied_out);
  }
  void use(int u, bool in_forward) {
    Unit& it = unit(u);
    if (!it.pending) return;
    it.pending = false;
    if (in_forward && held_ >= 0) release(held_);
    wait(compute_, it.gathered);
    it.copied_out = compute_;
    it.state = State::whole;
    if (in_forward) held_ = u;
    else release(u);
  }

  void pre_forward(int u) {
    unshard(u);
    use(u, true);
    for (int d = 1; u != root() && d <= s_.forward_depth && u + d < c_.layers; ++d) unshard(u + d);
  }
  void post_forward(int u) {
    if (s_.reshard == 0) return;
    unit(u).state = s_.reshard == 1 ? State::sharded : State::part;
    unit(u).resharded = compute_;
  }
  void pre_backward(int u) {
    unshard(u);
    use(u, false);
    if (u == root()) unshard(c_.layers - 1);
    else
      for (int d = 1; d <= s_.backward_depth && u - d >= 0; ++d) unshard(u - d);
  }
  void post_backward(int u) {
    unit(u).state = State::sharded;
    if (!sync_) return;
    if (outstanding_ >= 0) wait(compute_, unit(outstanding_).reduced);
    wait(scatter_, compute_);
    collective(scatter_, nccl_, u == root() ? c_.scatter_root : c_.scatter_block);
    unit(u).reduced = scatter_;
    outstanding_ = u;
  }

  void forward() {
    wait(copy_in_, compute_);
    wait(gather_, compute_);
    pre_forward(root());
    kernel(c_.embedding_forward);
    for (int u = 0; u < c_.layers; ++u) {
      pre_forward(u);
      kernel(c_.block_forward);
      post_forward(u);
    }
    kernel(c_.head_forward);
    if (held_ >= 0) release(held_);
    held_ = -1;
  }
  void backward() {
    pre_backward(root());
    kernel(c_.head_backward);
    for (int u = c_.layers - 1; u >= 0; --u) {
      pre_backward(u);
      kernel(c_.block_backward);
      post_backward(u);
    }
    kernel(c_.embedding_backward);
    post_backward(root());
    for (Unit& u : units_) wait(compute_, u.reduced);
    outstanding_ = -1;
  }

  Fsdp2Setting s_;
  OracleSetting c_;
  std::vector<Unit> units_;
  std::int64_t host_ = 0, compute_ = 0, copy_in_ = 0, gather_ = 0, scatter_ = 0, nccl_ = 0, sub_ = 0;
  int held_ = -1, outstanding_ = -1;
  bool sync_ = true;
};

}  // namespace stepcast::test
