// Buckets, hooks, order of all-reduces and memory of DDP.
#include <doctest/doctest.h>

#include "program/build.hpp"
#include "program/ddp.hpp"
#include "program/model.hpp"
#include "tests/support/ledger.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::ledger, test::of;
using Words = std::vector<std::string>;

StepSpec ddp(std::int64_t layers = 4, const ModelShape& model = test::llama2_7b()) {
  StepSpec spec = test::reference_step(model);
  spec.model.layers = layers;
  spec.policy.framework = Framework::ddp;
  spec.precision.reduce = hw::Dtype::fp32;
  return spec;
}

/// Bytes of the all-reduces of a step, in order: of the second one unless told otherwise, whose buckets are rebuilt.
std::vector<std::int64_t> all_reduces(const StepSpec& spec, std::size_t step = 1) {
  const Program p = build_program(spec, 3);
  std::vector<std::int64_t> bytes;
  for (const Op& op : p.slice(p.steps[step])) {
    if (op.kind == OpKind::collective && op.stream == Stream::all_reduce) bytes.push_back(p.collectives[op.id].shape.bytes);
  }
  return bytes;
}

TEST_CASE("a tensor that reaches the cap closes its bucket; the first bucket has a cap of its own") {
  const std::int64_t bytes[] = {3, 1, 6, 2, 2, 30, 1};
  CHECK(assign_buckets(bytes, 4, 10) == std::vector<std::vector<std::size_t>>{{0, 1}, {2, 3, 4}, {5}, {6}});
  CHECK(assign_buckets(bytes, 100, 100) == std::vector<std::vector<std::size_t>>{{0, 1, 2, 3, 4, 5, 6}});
  CHECK(assign_buckets({}, 4, 10).empty());
}

TEST_CASE("Llama-2-7B in fp32: every matrix is larger than 25 MiB and has its bucket, norms join the next") {
  const auto bytes = all_reduces(ddp());
  CHECK(bytes.size() == 1 + 4 * 7 + 1);  // head; 7 matrices a block; embedding
  CHECK(bytes.front() == 4 * 32000 * 4096);
  CHECK(bytes[1] == 4 * (4096 + 11008 * 4096));  // final norm, then the last block's down projection
  CHECK(bytes.back() == 4 * (4096 + 32000 * 4096));
  std::int64_t total = 0;
  for (const std::int64_t b : bytes) total += b;
  CHECK(total == 4 * parameters(ddp().model));
}

TEST_CASE("bucket_cap holds for the first bucket too, until buckets are rebuilt with a first one of 1 MiB") {
  StepSpec spec = ddp();
  spec.policy.bucket_cap = std::int64_t{1} << 30;
  const auto bytes = all_reduces(spec, 0), rebuilt = all_reduces(spec);
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) CHECK(bytes[i] >= std::int64_t{1} << 30);
  CHECK(rebuilt[0] == 4 * 32000 * 4096);  // the head closes the first bucket
  for (std::size_t i = 1; i + 1 < rebuilt.size(); ++i) CHECK(rebuilt[i] >= std::int64_t{1} << 30);
  spec.policy.bucket_cap = std::int64_t{1} << 40;
  CHECK(all_reduces(spec, 0).size() == 1);
  CHECK(all_reduces(spec).size() == 2);
}

TEST_CASE("buckets are rebuilt once, in the order in which gradients arrived") {
  StepSpec spec = ddp(1);
  spec.policy.bucket_cap = std::int64_t{200} << 20;
  // Registered: norm1, q, k, v, out, norm2, gate, up, down. The backward of the block makes down, up, gate, norm2, out, q, k, v, norm1 ready in this order.
  const std::int64_t square = std::int64_t{4096} * 4096, wide = std::int64_t{11008} * 4096, norm = 4096, table = std::int64_t{32000} * 4096;
  CHECK(all_reduces(spec, 0) == std::vector<std::int64_t>{4 * table, 4 * (norm + 2 * wide), 4 * (wide + norm + square), 4 * (3 * square + norm + table)});
  CHECK(all_reduces(spec, 1) == std::vector<std::int64_t>{4 * table, 4 * (norm + 2 * wide), 4 * (wide + norm + square), 4 * (3 * square + norm + table)});
  const Program p = build_program(spec, 4);
  CHECK(test::count_of(test::words(p, p.steps[1], {OpKind::free}), "free") == test::count_of(test::words(p, p.steps[2], {OpKind::free}), "free") + 4);
  CHECK(p.steps[2] == p.steps[3]);
}

TEST_CASE("under no_sync and in views, buckets are rebuilt where their gradients allow it") {
  StepSpec spec = ddp(2);
  spec.batch.grad_accum = 2;
  const auto first_rebuilt = [](const StepSpec& s) {  // by step
    const Program p = build_program(s, 3);
    for (std::size_t i = 0; i < 3; ++i) {
      for (const Op& op : p.slice(p.steps[i])) {
        if (op.kind == OpKind::alloc && p.buffers[op.id].label == "bucket0.rebuilt") return i;
      }
    }
    return std::size_t{99};
  };
  CHECK(first_rebuilt(spec) == 0);  // in the second micro-batch
  spec.policy.gradient_as_bucket_view = true;
  CHECK(first_rebuilt(spec) == 1);
  spec.policy.gradient_as_bucket_view = false;
  spec.policy.no_sync = true;
  CHECK(first_rebuilt(spec) == 1);
}

TEST_CASE("an all-reduce is issued as soon as its gradients are there, within the block") {
  const Program p = build_program(ddp(2), 2);
  const Words all = test::words(p, p.steps[1], {OpKind::launch, OpKind::collective});
  const auto first = std::find(all.begin(), all.end(), "AR");
  REQUIRE(first != all.end());
  CHECK(*(first - 1) == "kernel aten::mul_ into bucket");
  CHECK(*(first - 2) == "kernel ToCopyBackward0 weight gradient");
  CHECK(*(first - 3) == "kernel MmBackward0 weight head");
  const auto second = std::find(first + 1, all.end(), "AR");  // the last block's down projection, whose weight gradient comes early in its backward
  CHECK(*(second - 3) == "kernel MmBackward0 weight down");
  CHECK(std::find(second, all.end(), "kernel MmBackward0 weight up") != all.end());
}

TEST_CASE("no_sync: all-reduces in the last micro-batch alone; compute waits there") {
  StepSpec spec = ddp(2);
  spec.batch.grad_accum = 3;
  CHECK(all_reduces(spec).size() == 3 * (2 + 2 * 7));
  spec.policy.no_sync = true;
  CHECK(all_reduces(spec).size() == 2 + 2 * 7);
}

TEST_CASE("tied embeddings: the shared gradient is in the last bucket as registered, and in the last but one as it arrives") {
  StepSpec spec = ddp(2, test::gpt2_xl());
  spec.batch.seq_len = 1024;
  CHECK(all_reduces(spec, 0).back() >= 4 * 50257 * 1600);
  const auto bytes = all_reduces(spec);
  CHECK(bytes.back() == 4 * 1024 * 1600);  // rebuilt: the positions' gradient comes after the one that embedding and head share
  CHECK(bytes[bytes.size() - 2] >= 4 * 50257 * 1600);
  std::int64_t total = 0;
  for (const std::int64_t b : bytes) total += b;
  CHECK(total == 4 * parameters(spec.model));
}

TEST_CASE("memory: 16 bytes a parameter, and 4 more for buckets unless gradients are views of them") {
  StepSpec spec = ddp();
  const std::int64_t all = parameters(spec.model);
  auto l = ledger(spec);
  CHECK(of(l.at_end["optimizer"], Owner::parameters) == 4 * all);
  CHECK(of(l.at_end["optimizer"], Owner::gradients) == 4 * all);
  CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 8 * all);
  CHECK(of(l.at_end["optimizer"], Owner::reduction) == 4 * all);
  CHECK(of(l.at_end["forward"], Owner::parameters) == 4 * all + 2 * all);  // autocast's copies, saved for the backward
  spec.policy.gradient_as_bucket_view = true;
  l = ledger(spec);
  CHECK(of(l.at_end["optimizer"], Owner::gradients) == 0);
  CHECK(of(l.at_end["optimizer"], Owner::reduction) == 4 * all);
  spec.recompute.mode = RecomputeMode::full;  // what is recomputed is cast again
  l = ledger(spec);
  CHECK(of(l.at_end["forward"], Owner::parameters) == 4 * all + 2 * root_parameters(spec.model));
}

TEST_CASE("gradients are copied into buckets and, unless they are views, back") {
  const auto count = [](const StepSpec& spec) {
    const Program p = build_program(spec, 2);
    const Words all = test::words(p, p.steps[1], {OpKind::launch});
    return test::count_of(all, "kernel aten::mul_ into bucket");
  };
  StepSpec spec = ddp();
  const long tensors = 4 * 9 + 3;
  CHECK(count(spec) == 2 * tensors);
  spec.policy.gradient_as_bucket_view = true;
  CHECK(count(spec) == tensors);
}

TEST_CASE("one rank reduces nothing") {
  StepSpec spec = ddp(2);
  spec.world = {1, 1};
  CHECK(all_reduces(spec).empty());
}

}  // namespace
}  // namespace stepcast::program
