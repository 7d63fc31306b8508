// Memory that an FSDP2 step holds, summed by hand: staging buffers, parameter storages, gradients, the reduce-scatter's input. Llama-2-7B shapes, 32 ranks,
// bf16 with fp32 master. B, R: gathered bytes of a block and of the root; b, r: their shards.
#include <doctest/doctest.h>

#include "program/build.hpp"
#include "program/model.hpp"
#include "tests/support/ledger.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::ledger, test::of;

StepSpec spec_of(std::int64_t layers = 4) {
  StepSpec spec = test::reference_step();
  spec.model.layers = layers;
  spec.policy.framework = Framework::fsdp2;
  return spec;
}

constexpr std::int64_t kBlock = 202'383'360, kRoot = 262'148'096;
constexpr std::int64_t B = 2 * kBlock, R = 2 * kRoot, b = B / 32;

TEST_CASE("forward: the group before keeps its staging buffer while the next one is gathered") {
  auto l = ledger(spec_of());
  // Block 0: root's storages and staging, the block's cast shard and staging. Later blocks: two staging buffers in place of root's, R + 2 B + b.
  CHECK(of(l.peak["forward"], Owner::all_gather) == R + R + b + B);
  CHECK(R + R + b + B > R + 2 * B + b);
  CHECK(of(l.at_end["forward"], Owner::all_gather) == R);  // the root's storages are kept, no staging is
}

TEST_CASE("forward: three buffers of a unit, two in the copy-in pool and one in compute's") {
  StepSpec spec = spec_of();
  spec.model.vocab = 32;  // a small root: 2 * 32 * 4096 + 4096 elements
  const std::int64_t root = 2 * (2 * 32 * 4096 + 4096);
  auto l = ledger(spec);
  CHECK(l.pool_peak["forward"][static_cast<std::size_t>(Stream::copy_in)] == 2 * B + b);
  CHECK(of(l.peak["forward"], Owner::all_gather) == root + 2 * B + b);  // but at no time all three: storages are given back before the next all-gather
  spec.policy.forward_prefetch_depth = 1;                               // unless that is issued early
  l = ledger(spec);
  CHECK(of(l.peak["forward"], Owner::all_gather) == root + 3 * B + b);
}

TEST_CASE("backward: storages of this block, staging of the next, gradients, and one reduce-scatter input of the block before") {
  auto l = ledger(spec_of());
  CHECK(of(l.peak["backward"], Owner::all_gather) == R + 2 * B + b);
  // Gradients: block 0's, the head's (kept until the root's post-backward), three reduced shards in fp32. The root's alone are less: R + 4 shards.
  const std::int64_t head = 2 * (32000 * 4096 + 4096), shard = 4 * kBlock / 32;
  CHECK(of(l.peak["backward"], Owner::gradients) == B + head + 3 * shard);
  CHECK(of(l.peak["backward"], Owner::reduction) == R + R / 32);  // the root's input and output; blocks: B + b
  CHECK(of(l.at_end["backward"], Owner::reduction) == 0);
  CHECK(of(l.at_end["backward"], Owner::all_gather) == 0);
  StepSpec fp32 = spec_of();
  fp32.precision.reduce = hw::Dtype::fp32;
  l = ledger(fp32);
  CHECK(of(l.peak["backward"], Owner::reduction) == 2 * R);  // chunk_cat casts on the way, the output is the sharded gradient itself
}

TEST_CASE("deeper lists hold more staging buffers") {
  StepSpec spec = spec_of();
  spec.policy.backward_prefetch_depth = 3;
  CHECK(of(ledger(spec).peak["backward"], Owner::all_gather) == R + 4 * B + b);  // storages of block 3, staging of 2, 1 and 0
}

TEST_CASE("after the forward: all blocks kept, none, or an eighth of each") {
  StepSpec spec = spec_of();
  spec.policy.reshard_after_forward = kKeepAfterForward;
  CHECK(of(ledger(spec).at_end["forward"], Owner::all_gather) == R + 4 * B);
  spec.policy.reshard_after_forward = 8;
  CHECK(of(ledger(spec).at_end["forward"], Owner::all_gather) == R + 4 * B / 8);
}

TEST_CASE("accumulation without reduction keeps the gradients, in the reduction type") {
  StepSpec spec = spec_of();
  spec.batch.grad_accum = 2;
  spec.policy.no_sync = true;
  const std::int64_t all = 4 * kBlock + kRoot;
  // At the second backward's block 3: everything of the first, the block's own once more, the head's.
  const std::int64_t head = 2 * (32000 * 4096 + 4096);
  CHECK(of(ledger(spec).peak["backward"], Owner::gradients) == 2 * all + B + head);
  spec.precision.reduce = hw::Dtype::fp32;
  CHECK(of(ledger(spec).peak["backward"], Owner::gradients) == 4 * all + B + head);
}

TEST_CASE("16 bytes per local parameter stay") {
  auto l = ledger(spec_of());
  const std::int64_t local = (4 * kBlock + kRoot) / 32;
  CHECK(of(l.at_end["optimizer"], Owner::parameters) == 4 * local);
  CHECK(of(l.at_end["optimizer"], Owner::gradients) == 4 * local);
  CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 8 * local);
  CHECK(of(l.at_end["optimizer"], Owner::activations) == 0);
}

TEST_CASE("kernels of FSDP2 on the compute stream: copy-out and chunk_cat; no concat, no divides") {
  const Program p = build_program(spec_of(), 2);
  std::map<std::string, int> count;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind != OpKind::launch) continue;
    const KernelEntry& kernel = p.kernels[op.id];
    ++count[kernel.op];
    if (kernel.op == "fsdp::split_with_sizes_copy") CHECK(op.stream == Stream::compute);
    if (kernel.op == "fsdp::chunk_cat") CHECK(op.stream == Stream::compute);
    if (kernel.op == "fsdp::all_gather_copy_in") CHECK(op.stream == Stream::copy_in);
  }
  CHECK(count["fsdp::all_gather_copy_in"] == 1 + 4 + 4);
  CHECK(count["fsdp::split_with_sizes_copy"] == 1 + 4 + 4);
  CHECK(count["fsdp::chunk_cat"] == 5);
  CHECK(count["aten::to sharded gradient"] == 5);
  CHECK(count["aten::div_ pre-divide"] == 0);
  CHECK(count["SplitWithSizesBackward cat"] == 0);
}

}  // namespace
}  // namespace stepcast::program
