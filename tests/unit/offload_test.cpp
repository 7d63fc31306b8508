// Parameters, gradients and optimizer on the host: copies, waits, host work and what is left on the device, for every framework that offloads.
#include <doctest/doctest.h>

#include "program/build.hpp"
#include "program/check.hpp"
#include "program/count.hpp"
#include "program/model.hpp"
#include "program/zero_stage12.hpp"
#include "tests/support/ledger.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::of;

StepSpec offloaded(Framework framework, CpuOffload what = CpuOffload::parameters) {
  StepSpec spec = test::reference_step();
  spec.model.layers = 2;
  spec.policy.framework = framework;
  spec.policy.cpu_offload = what;
  spec.policy.overlap_comm = framework == Framework::zero3;
  spec.optimizer.implementation = OptimizerImpl::fused;
  return spec;
}

/// Bytes copied in the second step.
struct Copied {
  std::int64_t to_device = 0, to_host = 0;
};
Copied copied(const Program& p) {
  Copied bytes;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind != OpKind::launch) continue;
    const hw::KernelShape& shape = p.kernels[op.id].shape;
    if (!shape.together) continue;  // the input
    if (shape.kind == hw::KernelKind::copy_to_device) bytes.to_device += shape.write_bytes;
    if (shape.kind == hw::KernelKind::copy_to_host) bytes.to_host += shape.read_bytes;
  }
  return bytes;
}

std::int64_t host_units(const Program& p, hw::HostWork work) { return count(p, p.steps[1]).host_work[static_cast<std::size_t>(work)]; }

TEST_CASE("FSDP1: fp32 shards come for each gather, fp32 gradients go; nothing of them stays on the device") {
  const StepSpec spec = offloaded(Framework::fsdp1);
  const Program p = build_program(spec, 3);
  CHECK(check(p).empty());
  const std::int64_t all = parameters(spec.model), part = all / 32, blocks = 2 * parameters_per_block(spec.model) / 32;
  CHECK(copied(p).to_device == 4 * (part + blocks));  // the blocks' twice
  CHECK(copied(p).to_host == 4 * part);
  CHECK(host_units(p, hw::HostWork::cpu_adam) == (part + (1 << 20) - 1) / (1 << 20));
  CHECK(test::count_of(test::words(p, p.steps[1], {OpKind::host_wait}), "host waits gradients on the host") == 1);
  auto l = test::ledger(p);
  CHECK(of(l.at_end["optimizer"], Owner::parameters) == 0);
  CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 0);
  CHECK(of(l.at_end["optimizer"], Owner::gradients) == 0);
}

TEST_CASE("FSDP1: PyTorch's multi-tensor and single-tensor forms run op by op on the host") {
  StepSpec spec = offloaded(Framework::fsdp1);
  spec.optimizer.implementation = OptimizerImpl::foreach;
  CHECK(host_units(build_program(spec, 2), hw::HostWork::cpu_adam) == 0);
  CHECK(host_units(build_program(spec, 2), hw::HostWork::cpu_adam_by_tensor) > 0);
}

TEST_CASE("FSDP2: the same bytes, one copy per parameter, one wait per group") {
  const StepSpec spec = offloaded(Framework::fsdp2);
  const Program p = build_program(spec, 3);
  CHECK(check(p).empty());
  const std::int64_t all = parameters(spec.model), part = all / 32, blocks = 2 * parameters_per_block(spec.model) / 32;
  const auto close = [](std::int64_t a, std::int64_t b) { return std::abs(a - b) < 1000; };  // sizes of tensors are averaged
  CHECK(close(copied(p).to_device, 4 * (part + blocks)));
  CHECK(close(copied(p).to_host, 4 * part));
  CHECK(test::count_prefix(test::words(p, p.steps[1], {OpKind::host_wait}), "host waits reduced(") == 3);
  auto l = test::ledger(p);
  for (const Owner owner : {Owner::parameters, Owner::optimizer, Owner::gradients}) CHECK(of(l.at_end["optimizer"], owner) == 0);
}

TEST_CASE("FSDP2 adds later micro-batches on the host, behind copies that block") {
  StepSpec spec = offloaded(Framework::fsdp2);
  spec.batch.grad_accum = 2;
  spec.optimizer.clip_grad_norm = false;
  const Program p = build_program(spec, 3);
  CHECK(check(p).empty());
  CHECK(host_units(p, hw::HostWork::cpu_pass) > 0);
  spec.policy.no_sync = true;
  CHECK(host_units(build_program(spec, 3), hw::HostWork::cpu_pass) == 0);
}

TEST_CASE("ZeRO-2: own gradients go in fp32, updated partitions come back in fp32") {
  for (const bool overlap : {false, true}) {
    StepSpec spec = offloaded(Framework::zero2, CpuOffload::optimizer);
    spec.policy.overlap_comm = overlap;
    const Program p = build_program(spec, 3);
    CHECK(check(p).empty());
    const std::int64_t part = ZeroStage12::partition_of(spec);
    CHECK(copied(p).to_device == 4 * part);
    CHECK(std::abs(copied(p).to_host - 4 * part) < 1000);  // rounded up bucket by bucket
    CHECK(host_units(p, hw::HostWork::cpu_adam) == (part + (1 << 20) - 1) / (1 << 20));
    auto l = test::ledger(p);
    CHECK(of(l.at_end["optimizer"], Owner::parameters) == 2 * 32 * part);
    CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 0);
    CHECK(of(l.at_end["backward"], Owner::gradients) == 0);
  }
}

TEST_CASE("ZeRO-2 over micro-batches: the sum is on the host in the compute type and fetched to be added to") {
  StepSpec spec = offloaded(Framework::zero2, CpuOffload::optimizer);
  spec.batch.grad_accum = 3;
  const Program p = build_program(spec, 3);
  CHECK(check(p).empty());
  const std::int64_t part = ZeroStage12::partition_of(spec);
  CHECK(std::abs(copied(p).to_host - (2 * 2 * part + 4 * part)) < 1000);
  CHECK(std::abs(copied(p).to_device - (2 * 2 * part + 4 * part)) < 1000);
}

TEST_CASE("ZeRO-3: the optimizer alone, or the parameters too, which then come for each gather") {
  StepSpec spec = offloaded(Framework::zero3, CpuOffload::optimizer);
  const std::int64_t part = parameters(spec.model) / 32;
  Program p = build_program(spec, 3);
  CHECK(check(p).empty());
  CHECK(copied(p).to_device == 2 * part);
  CHECK(copied(p).to_host == 4 * part);
  auto l = test::ledger(p);
  CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 0);
  CHECK(of(l.at_end["optimizer"], Owner::parameters) == 2 * part + 2 * 5 * 4096);
  spec.policy.cpu_offload = CpuOffload::parameters;
  spec.policy.stage3_max_reuse_distance = 0;
  p = build_program(spec, 3);
  CHECK(check(p).empty());
  CHECK(copied(p).to_device == 2 * 2 * (part - 5 * 4096 / 32) + 2 * 5 * 4096 / 32);  // large ones twice, small ones once
  l = test::ledger(p);
  CHECK(of(l.at_end["optimizer"], Owner::parameters) == 2 * 5 * 4096);
  spec.world = {1, 1};
  CHECK(check(build_program(spec, 3)).empty());
}

}  // namespace
}  // namespace stepcast::program
