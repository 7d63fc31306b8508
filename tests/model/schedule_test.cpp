// What each FSDP setting does to the step, with fixed costs and hand sums (ns). L = 8 blocks, forward 1000, backward 2000 a block.
#include <doctest/doctest.h>

#include "tests/support/fixed_cost_run.hpp"

using namespace stepcast;
using test::OracleSetting;
using test::steady_ns;

namespace {

constexpr std::int64_t kLayers = 8;

OracleSetting base() {
  OracleSetting s;
  s.layers = static_cast<int>(kLayers);
  s.steps = 4;
  s.embedding_forward = 600;
  s.block_forward = 1000;
  s.head_forward = 600;
  s.head_backward = 1200;
  s.block_backward = 2000;
  s.embedding_backward = 600;
  s.optimizer = 100;
  s.gather_block = s.gather_root = s.scatter_block = s.scatter_root = 500;  // t_AG = t_RS = t_bwd / 4
  return s;
}

/// All kernels of a step.
std::int64_t compute_ns(const OracleSetting& s) {
  return s.embedding_forward + s.head_forward + s.head_backward + s.embedding_backward + s.optimizer + kLayers * (s.block_forward + s.block_backward);
}

}  // namespace

TEST_CASE("BACKWARD_PRE leaves only the first gather and the last reduction exposed; NONE exposes a gather per block and a reduction between blocks") {
  OracleSetting s = base();
  // Exposed with PRE: AG(root), which waits for the optimizer (500); RS(b0) hides under the embedding's backward, RS(root) does not (500).
  CHECK(steady_ns(s) == compute_ns(s) + 500 + 500);
  s.prefetch = 2;
  // AG(b7) still hides under the head's backward, since the host is ahead; each later block waits for RS(b_{i+1}) and then AG(b_i).
  CHECK(steady_ns(s) == compute_ns(s) + 500 + 500 + (kLayers - 1) * (500 + 500));
}

TEST_CASE("when gather and reduction take longer than a block's backward, the backward is as long as its communication") {
  OracleSetting s = base();
  s.gather_block = s.scatter_block = 1500;  // 3000 a block against 2000
  // Forward: AG(root) 500, then 8 gathers of 1500 back to back; b7 computes 1000, the head 600 and its backward 1200. AG(b7) and AG(b6) are done by then: b7's backward 2000.
  const std::int64_t first_reduction = 500 + kLayers * 1500 + 1000 + 600 + 1200 + 2000;
  // From RS(b7) on the FIFO holds RS(b7) AG(b5) RS(b6) AG(b4) .. RS(b2) AG(b0) RS(b1) RS(b0): 8 + 6 operations, then RS(root) 500.
  // It is idle once: RS(b1) ends 1500 after AG(b0), b0's backward 2000 after it.
  CHECK(steady_ns(s) == first_reduction + (kLayers + kLayers - 2) * 1500 + 500 + s.scatter_root + s.optimizer);
}

TEST_CASE("the limiter changes nothing in time when the host is ahead and the GPU is the bound") {
  OracleSetting on = base(), off = base();
  off.limiter = false;
  CHECK(steady_ns(on) == steady_ns(off));
}

TEST_CASE("BACKWARD_POST equals BACKWARD_PRE within a tail for a fast host; a slow host exposes its gathers") {
  OracleSetting pre = base(), post = base();
  post.prefetch = 1;
  CHECK(std::abs(steady_ns(post) - steady_ns(pre)) <= 1000);
  pre.host_kernel = post.host_kernel = 1900;  // the host launches a block's backward just in time
  CHECK(steady_ns(post) > steady_ns(pre));
}

TEST_CASE("forward_prefetch gains nothing when the GPU is the bound") {
  OracleSetting without = base(), with = base();
  with.forward_prefetch = true;
  CHECK(steady_ns(with) == steady_ns(without));
}

TEST_CASE("SHARD_GRAD_OP: no gather in the backward") {
  OracleSetting s = base();
  s.prefetch = 2;
  s.shard_grad_op = true;
  CHECK(steady_ns(s) == compute_ns(s) + 500 + 500);  // NONE costs nothing, since there is nothing to prefetch
}

TEST_CASE("accumulation without no_sync repeats all communication; with no_sync only the last micro-batch reduces") {
  OracleSetting s = base();
  s.accumulation = 4;
  s.scatter_root = 700;
  const std::int64_t micro = compute_ns(s) - s.optimizer;
  // Each further micro-batch: its compute, RS(root) exposed in the final callback. AG(root) of the next one waits for compute and so for that reduction: exposed.
  CHECK(steady_ns(s) == 4 * (micro + 700 + 500) + s.optimizer);
  s.no_sync = true;
  CHECK(steady_ns(s) == 4 * (micro + 500) + 700 + s.optimizer);
}

TEST_CASE("explicit ranks and the folded one agree to the picosecond") {
  OracleSetting s = base();
  s.host_kernel = 37;
  s.host_collective = 111;
  CHECK(test::run_fixed(s).step_end == test::run_fixed(s, 8).step_end);
}

TEST_CASE("hybrid sharding: the replicas' all-reduce runs beside gathers and reduce-scatters, and only what is left at the end is exposed") {
  OracleSetting s = base();
  s.hybrid = true;
  s.all_reduce = 1500;  // less than a block's backward: hidden, but for the last two
  // After b0's backward: RS(b0) 500, AR(b0) until 2000, AR(root) until 3500; the embedding's backward hides 600 of it.
  CHECK(steady_ns(s) == compute_ns(s) + s.gather_root + 3500 - s.embedding_backward);
  s.all_reduce = 3000;  // more: the all-reduces run back to back from the end of RS(b7) on, nine of them; nothing else waits
  const std::int64_t first_reduction =
      s.gather_root + s.embedding_forward + kLayers * s.block_forward + s.head_forward + s.head_backward + s.block_backward + 500;
  CHECK(steady_ns(s) == first_reduction + (kLayers + 1) * 3000 + s.optimizer);
  // Behind one another in one FIFO they would delay the gathers: 8 x (500 + 500 + 3000) from the first reduction on already take longer.
  CHECK(steady_ns(s) < first_reduction + kLayers * (500 + 500 + 3000));
}

TEST_CASE("no sharding: all-reduces hide under the backward; the root's is exposed") {
  OracleSetting s = base();
  s.no_shard = true;
  s.all_reduce = 1500;
  // AR(b0) ends 900 after the embedding's backward (600), then the root's.
  CHECK(steady_ns(s) == compute_ns(s) + (1500 - s.embedding_backward) + 1500);
}

TEST_CASE("hybrid sharding: explicit ranks and the folded one agree to the picosecond") {
  OracleSetting s = base();
  s.hybrid = true;
  s.all_reduce = 1700;
  s.host_kernel = 37;
  s.host_collective = 111;
  CHECK(test::run_fixed(s).step_end == test::run_fixed(s, 32).step_end);
}
