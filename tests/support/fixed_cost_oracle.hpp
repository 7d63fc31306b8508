// An independent evaluation of FSDP1 schedules with fixed costs: walks the host's calls once, keeping only times (max-plus), straight from the published rules of
// torch.distributed.fsdp. It shares no code with the program builder or the simulator. Times in nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace stepcast::test {

struct OracleSetting {
  int layers = 4, steps = 3, accumulation = 1;
  bool hybrid = false, no_shard = false;  // hybrid: FULL_SHARD, or SHARD_GRAD_OP, in the shard group
  bool shard_grad_op = false, forward_prefetch = false, limiter = true, no_sync = false;
  int prefetch = 0;  // 0 BACKWARD_PRE, 1 BACKWARD_POST, 2 none
  std::int64_t embedding_forward = 0, block_forward = 0, head_forward = 0, head_backward = 0, block_backward = 0, embedding_backward = 0, optimizer = 0;
  std::int64_t gather_block = 0, gather_root = 0, scatter_block = 0, scatter_root = 0, host_kernel = 0, host_collective = 0;
  std::int64_t all_reduce = 0;  // of each unit
};

class Oracle {
 public:
  explicit Oracle(const OracleSetting& setting) : s_(setting), units_(static_cast<std::size_t>(setting.layers + 1)) {}

  /// Ends of the optimizer of each step.
  std::vector<std::int64_t> run() {
    std::vector<std::int64_t> ends;
    for (int step = 0; step < s_.steps; ++step) {
      for (int m = 0; m < s_.accumulation; ++m) {
        sync_ = !s_.no_sync || m + 1 == s_.accumulation;
        forward();
        backward();
      }
      kernel(s_.optimizer);
      ends.push_back(compute_);
    }
    return ends;
  }

 private:
  struct Unit {
    bool prefetched = false, unsharded = false, needs_backward = false;
  };
  [[nodiscard]] int root() const { return s_.layers; }
  Unit& unit(int u) { return units_[static_cast<std::size_t>(u)]; }

  void kernel(std::int64_t duration) {
    host_ += s_.host_kernel;
    compute_ = std::max(compute_, host_) + duration;
  }
  void collective(std::int64_t& stream, std::int64_t duration) { collective(stream, nccl_, duration); }
  void collective(std::int64_t& stream, std::int64_t& communicator, std::int64_t duration) {
    host_ += s_.host_collective;
    stream = communicator = std::max({stream, communicator, host_}) + duration;
  }

  void unshard(int u) {
    if (s_.limiter && frees_.size() >= 2) {
      host_ = std::max(host_, frees_.front());
      frees_.pop_front();
    }
    if (!unit(u).unsharded && !s_.no_shard) collective(gather_, u == root() ? s_.gather_root : s_.gather_block);
    unit(u).unsharded = true;
  }
  void reshard(int u, bool free) {
    if (!free || s_.no_shard) return;
    unit(u).unsharded = unit(u).prefetched = false;
    if (s_.limiter) frees_.push_back(std::max(compute_, host_));
  }

  void pre_forward(int u, int next) {
    if (!known_) next = -1;
    if (!unit(u).prefetched) unshard(u);
    compute_ = std::max(compute_, gather_);
    if (s_.forward_prefetch && next >= 0 && !unit(next).prefetched) {
      unshard(next);
      unit(next).prefetched = true;
    }
  }
  void post_forward(int u) {
    reshard(u, u != root() && !s_.shard_grad_op);
    unit(u).needs_backward = true;
  }
  void prefetch_previous(int u) {
    const int v = u == root() ? s_.layers - 1 : u - 1;
    if (v < 0 || !unit(v).needs_backward || unit(v).prefetched) return;
    unshard(v);
    unit(v).prefetched = true;
  }
  void pre_backward(int u) {
    if (!unit(u).prefetched) unshard(u);
    compute_ = std::max(compute_, gather_);
    unit(u).needs_backward = false;
    if (s_.prefetch == 0) prefetch_previous(u);
  }
  void post_backward(int u) {
    reshard(u, sync_ || !s_.shard_grad_op);
    if (s_.prefetch == 1) prefetch_previous(u);
    if (!sync_) return;
    scatter_ = std::max(scatter_, compute_);
    if (s_.no_shard) return collective(scatter_, s_.all_reduce);
    collective(scatter_, u == root() ? s_.scatter_root : s_.scatter_block);
    if (!s_.hybrid) return;
    reduce_ = std::max(reduce_, scatter_);
    collective(reduce_, replicas_, s_.all_reduce);
  }

  void forward() {
    gather_ = std::max(gather_, compute_);
    pre_forward(root(), 0);
    kernel(s_.embedding_forward);
    for (int u = 0; u < s_.layers; ++u) {
      pre_forward(u, u + 1 < s_.layers ? u + 1 : -1);
      kernel(s_.block_forward);
      post_forward(u);
    }
    kernel(s_.head_forward);
    post_forward(root());
    known_ = true;
  }
  void backward() {
    pre_backward(root());
    kernel(s_.head_backward);
    for (int u = s_.layers - 1; u >= 0; --u) {
      pre_backward(u);
      kernel(s_.block_backward);
      post_backward(u);
    }
    kernel(s_.embedding_backward);
    post_backward(root());
    if (sync_) compute_ = std::max({compute_, scatter_, reduce_});
    for (Unit& u : units_) u.prefetched = false;
  }

  OracleSetting s_;
  std::vector<Unit> units_;
  std::deque<std::int64_t> frees_;
  std::int64_t host_ = 0, compute_ = 0, gather_ = 0, scatter_ = 0, nccl_ = 0, reduce_ = 0, replicas_ = 0;
  bool known_ = false, sync_ = true;
};

}  // namespace stepcast::test
