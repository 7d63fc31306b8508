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

using test::of;
using Words = std::vector<std::string>;

StepSpec ddp(std::int64_t layers = 4, const ModelShape& model = test::llama2_7b()) {
  StepSpec spec = test::reference_step(model);
  spec.model.layers = layers;
  spec.policy.framework = Framework::ddp;
  spec.precision.reduce = hw::Dtype::fp32;
  return spec;
}

test::Ledger ledger(const StepSpec& spec) { return test::ledger(build_program(spec, 2)); }

/// Bytes of the all-reduces of a step, in order.
std::vector<std::int64_t> all_reduces(const StepSpec& spec) {
  const Program p = build_program(spec, 2);
  std::vector<std::int64_t> bytes;
  for (const Op& op : p.slice(p.steps[1])) {
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

TEST_CASE("bucket_cap holds for the first bucket too") {
  StepSpec spec = ddp();
  spec.policy.bucket_cap = std::int64_t{1} << 30;
  const auto bytes = all_reduces(spec);
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) CHECK(bytes[i] >= std::int64_t{1} << 30);
  spec.policy.bucket_cap = std::int64_t{1} << 40;
  CHECK(all_reduces(spec).size() == 1);
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

TEST_CASE("tied embeddings: the shared gradient is in the last bucket") {
  StepSpec spec = ddp(2, test::gpt2_xl());
  spec.batch.seq_len = 1024;
  const auto bytes = all_reduces(spec);
  CHECK(bytes.back() >= 4 * 50257 * 1600);
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
