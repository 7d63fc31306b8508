// `bench` on the CUDA driver, on fakes: each kind of point gives a time, and the driver makes no fault. docs/real_backend.md, "Measuring".
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "real_backend/bench/kernels.hpp"
#include "real_backend/cuda/driver.hpp"
#include "tests/fakes/machine.hpp"
#include "tests/support/tiny_models.hpp"

namespace stepcast::real::bench {
namespace {

const Effort kLittle{.warm_up = 1, .least = 2, .most = 2, .seconds = 0};

Target on_fakes() { return {.make_driver = cuda::make_driver, .own_clock = true, .outgrows = 1 << 12, .head_start = 1 << 12}; }

/// Runs f on a machine of two GPUs, which must find no fault.
template <class F>
void on_machine(F f) {
  const fakes::Machine machine(2, std::size_t{1} << 28);
  f(on_fakes());
  for (const std::string& fault : machine.faults()) FAIL_CHECK(fault);
  for (const std::string& leak : machine.leaks()) FAIL_CHECK(leak);
}

TEST_CASE("bench on GPUs: kernels of a program and of the sweep, by the device's clock") {
  on_machine([](const Target& target) {
    for (const KernelCase& kernel : kernels_of(program::build_program(test::tiny_gpt(), 1))) CHECK(measure(target, kernel, 2, kLittle).median > 0);
    for (const KernelCase& kernel : sweep(hw::Dtype::bf16))
      if (kernel.call.parts[0].count <= 1 << 13) CHECK(measure(target, kernel, 1, kLittle).median > 0);
  });
}

TEST_CASE("bench on GPUs: launches, memory of the device, copies") {
  on_machine([](const Target& target) {
    CHECK(measure_launch_call(target, kLittle).median > 0);
    CHECK(measure_launch_latency(target, kLittle).median > 0);
    CHECK(measure_device_malloc(target, 1 << 20, kLittle).median > 0);
    CHECK(measure_device_free(target, 1 << 20, kLittle).median > 0);
    for (const bool to_device : {false, true})
      for (const bool pinned : {false, true}) CHECK(measure_copy(target, to_device, pinned, 1 << 16, kLittle).median > 0);
  });
}

TEST_CASE("bench on GPUs: collectives of all kinds, and a product beside one") {
  on_machine([](const Target& target) {
    for (const auto kind : {hw::CollectiveKind::all_gather, hw::CollectiveKind::reduce_scatter, hw::CollectiveKind::all_reduce})
      CHECK(measure_collective(target, {kind, hw::Dtype::fp32, 4096, {2, 1}}, kLittle).median > 0);
    CHECK(measure_beside(target, product(hw::Dtype::fp32), {hw::CollectiveKind::all_gather, hw::Dtype::fp32, 4096, {2, 1}}, kLittle).median > 0);
  });
}

}  // namespace
}  // namespace stepcast::real::bench
