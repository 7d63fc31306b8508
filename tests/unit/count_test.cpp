// Counts against hand sums. Definitions: docs/check.md, "Counting".
#include "program/count.hpp"

#include <doctest/doctest.h>

#include "tests/support/small_program.hpp"

using namespace stepcast;
using namespace stepcast::program;
using test::SmallProgram;

namespace {

hw::KernelShape gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  hw::KernelShape shape;
  shape.kind = hw::KernelKind::gemm;
  shape.batch = batch;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  return shape;
}

hw::KernelShape copy(std::int64_t bytes) {
  hw::KernelShape shape;
  shape.read_bytes = bytes;
  shape.write_bytes = bytes;
  return shape;
}

ModelShape llama_2_7b() {
  ModelShape model;
  model.hidden = 4096;
  model.layers = 32;
  model.heads = 32;
  model.kv_heads = 32;
  model.head_dim = 128;
  model.ffn = 11008;
  model.vocab = 32000;
  return model;
}

}  // namespace

TEST_CASE("counts of a small step equal the hand sums") {
  SmallProgram p;
  p.launch("mm", Stream::compute, {}, gemm(2, 3, 5));
  p.mark(MarkKind::recompute, true, "again").launch("mm", Stream::compute, {}, gemm(2, 3, 5)).mark(MarkKind::recompute, false, "again");
  p.launch("copy", Stream::compute, {}, copy(100), hw::HostWork::op_backward);
  p.collective("ag", hw::CollectiveKind::all_gather, Communicator::shard, Stream::unshard, {}, 3200, {8, 4});
  p.collective("ar", hw::CollectiveKind::all_reduce, Communicator::replica, Stream::all_reduce, {}, 400, {1, 4});
  p.record("e", Stream::compute).wait(Stream::unshard, "e").end_step();
  const Counts c = count(p.program, p.program.steps[0]);
  CHECK(c.executed.in(flop) == 120);  // 2 kernels of 2*2*3*5
  CHECK(c.recomputed.in(flop) == 60);
  CHECK(c.dram.in(byte) == 2 * (2 * (10 + 15 + 6)) + 200);  // bf16: (mk + kn + mn) * 2 bytes, twice; the copy in and out
  CHECK(c.launches == 3);
  CHECK(c.host_work[static_cast<std::size_t>(hw::HostWork::op_forward)] == 2);
  CHECK(c.host_work[static_cast<std::size_t>(hw::HostWork::op_backward)] == 1);
  CHECK(c.host_work[static_cast<std::size_t>(hw::HostWork::collective_call)] == 2);
  CHECK(c.collectives[0].calls == 1);
  CHECK(c.collectives[0].bytes == 3200);
  CHECK(c.collectives[0].wire_bytes.in(byte) == 3100);  // 31/32
  CHECK(c.collectives[2].wire_bytes.in(byte) == 600);   // 2 * 3/4 * 400
}

TEST_CASE("model FLOPs: 2,200 tokens/s per GPU on a 7e9-parameter model are 92.4 TFLOP/s and 29.6 % of an A100") {
  const Flops per_token = model_flops_per_token(llama_2_7b(), 7'000'000'000, 2048, FlopsConvention::six_p);
  const double teraflops = 2200 * per_token.in(teraflop);
  CHECK(teraflops == doctest::Approx(92.4));
  CHECK(teraflops / 312 == doctest::Approx(0.296).epsilon(0.001));
}

TEST_CASE("model FLOPs: attention adds 12 L h s per token, half of that when only causal pairs count") {
  const std::int64_t parameters = 6'738'415'616;
  const auto flops = [&](FlopsConvention c) { return model_flops_per_token(llama_2_7b(), parameters, 4096, c).in(flop); };
  const double dense = 6.0 * 6'738'415'616, attention = 12.0 * 32 * 4096 * 4096;  // 40.43e9 and 6.44e9
  CHECK(flops(FlopsConvention::six_p) == dense);
  CHECK(flops(FlopsConvention::full_attention) == dense + attention);
  CHECK(flops(FlopsConvention::causal_attention) == dense + attention / 2);
  CHECK(attention / dense == doctest::Approx(0.159).epsilon(0.01));
}

TEST_CASE("a global batch of 1,024 sequences is 64 GPUs x 16 x 1 or 64 x 4 x 4: the same tokens per step") {
  const Batch wide{16, 1, 2048}, accumulated{4, 4, 2048};
  CHECK(64 * wide.micro_batch * wide.grad_accum == 1024);
  CHECK(64 * accumulated.micro_batch * accumulated.grad_accum == 1024);
  CHECK(tokens(wide) * wide.grad_accum == tokens(accumulated) * accumulated.grad_accum);
}

TEST_CASE("recomputed FLOPs follow the convention for attention and count the rest as executed") {
  hw::KernelShape attention;
  attention.kind = hw::KernelKind::attention_forward;
  attention.causal = true;
  attention.batch = 2;
  attention.n = attention.kv_heads = 4;
  attention.m = 64;
  attention.k = 16;
  SmallProgram p;
  p.launch("outside", Stream::compute, {}, gemm(100, 100, 100));
  p.mark(MarkKind::recompute, true, "b0").launch("mm", Stream::compute, {}, gemm(2, 3, 5)).launch("attention", Stream::compute, {}, attention);
  p.mark(MarkKind::recompute, false, "b0").end_step();
  const double full = 4.0 * 2 * 4 * 64 * 64 * 16;  // two GEMMs of 2 s^2 d per sequence and head
  const auto flops = [&](FlopsConvention c) { return recomputed_flops(p.program, p.program.steps[0], c).in(flop); };
  CHECK(flops(FlopsConvention::six_p) == 60);
  CHECK(flops(FlopsConvention::full_attention) == 60 + full);
  CHECK(flops(FlopsConvention::causal_attention) == 60 + full / 2);
}
