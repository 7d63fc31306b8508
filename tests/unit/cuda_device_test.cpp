// What the CUDA driver does when something goes wrong, and its small parts. On fakes (tests/fakes).
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "real_backend/cuda/driver.hpp"
#include "real_backend/cuda/handles.hpp"
#include "real_backend/cuda/segments.hpp"
#include "tests/fakes/machine.hpp"
#include "tests/support/text.hpp"
#include "tests/support/tiny_models.hpp"

namespace stepcast::real {
namespace {

using namespace test;
using program::StepSpec;

StepSpec on_two() {
  StepSpec spec = tiny_llama();
  spread(spec, 2);
  return spec;
}

using stepcast::test::any_has;

TEST_CASE("segments follow the policy: one allocation of the device each, given back first, then taken") {
  const fakes::Machine machine(1, 32 << 20);
  {
    cuda::Segments segments;
    const Segment a{0, 20 << 20}, b{64 << 20, 8 << 20}, c{0, 24 << 20};
    segments.follow(std::vector{a, b});
    CHECK(machine.leaks().size() == 2);
    std::byte* second = segments.at(b.address + 100, 50);
    CHECK(second == segments.at(b.address, 1) + 100);
    CHECK_THROWS_AS(static_cast<void>(segments.at(b.address - 1, 1)), std::logic_error);
    CHECK_THROWS_AS(static_cast<void>(segments.at(b.address + static_cast<std::uint64_t>(b.bytes) - 1, 2)), std::logic_error);
    segments.follow(std::vector{b});
    CHECK(machine.leaks().size() == 1);
    CHECK(segments.at(b.address, 1) + 100 == second);
    CHECK_THROWS_WITH_AS(segments.follow(std::vector{c, b}), "the device has no 25165824 bytes in one piece left", OutOfMemory);
  }
  CHECK(machine.leaks().empty());
  CHECK(machine.faults().empty());
}

TEST_CASE("what a library refuses is an exception that names the call") {
  const fakes::Machine machine(1);
  CHECK_THROWS_WITH_AS(cuda::check(cudaSetDevice(7), "cudaSetDevice"), "cudaSetDevice: invalid device ordinal", cuda::DeviceError);
  CHECK_THROWS_WITH_AS(cuda::check(CUBLAS_STATUS_NOT_SUPPORTED, "cublasX"), "cublasX: the requested functionality is not supported", cuda::DeviceError);
  CHECK_THROWS_WITH_AS(cuda::check(ncclRemoteError, "ncclX"), "ncclX: remote process exited or there was a network error", cuda::DeviceError);
}

TEST_CASE("no GPU, or too few of them, is said before anything starts") {
  const program::Program program = program::build_program(on_two(), 1);
  {
    const fakes::Machine machine(0);
    CHECK(cuda::gpus().why_none == "no CUDA-capable device is detected");
    CHECK_THROWS_WITH(train(program, closed_form(on_two()), cuda::make_driver), "no GPU: no CUDA-capable device is detected");
  }
  const fakes::Machine machine(1);
  CHECK(cuda::gpus().name == "fake GPU");
  CHECK_THROWS_WITH(train(program, closed_form(on_two()), cuda::make_driver), "2 ranks need as many GPUs, and there are 1");
}

TEST_CASE("a pool that is too small, or a device, ends the job as out of memory; nothing hangs, nothing is left over") {
  for (const bool of_device : {false, true}) {
    CAPTURE(of_device);
    JobSettings settings = closed_form(on_two());
    if (!of_device) settings.memory.pool_bytes = 3 << 20;
    const fakes::Machine machine(2, of_device ? 5 << 20 : 1 << 30);
    const JobResult result = train(program::build_program(on_two(), 2), settings, cuda::make_driver);
    CHECK(result.out_of_memory);
    CHECK(any_has(result.failures, "out of memory: "));
    CHECK(machine.faults() == std::vector<std::string>{});
    CHECK(machine.leaks() == std::vector<std::string>{});
  }
}

TEST_CASE("a loss that is not a number ends the job on all ranks") {
  JobSettings settings = closed_form(on_two());
  settings.training.hyper.learning_rate = 1e300;
  const fakes::Machine machine(2);
  const JobResult result = train(program::build_program(on_two(), 6), settings, cuda::make_driver);
  CHECK(any_has(result.failures, "the loss is not a finite number in step"));
  CHECK(result.failures.front().starts_with("rank "));
  CHECK(machine.leaks() == std::vector<std::string>{});
}

TEST_CASE("a peer that NCCL reports as gone ends the job, with the rank that saw it") {
  JobSettings settings = closed_form(on_two());
  fakes::Machine machine(2);
  settings.on_step = [&machine](std::int32_t rank, std::int32_t step) {
    if (rank == 1 && step == 1) machine.fail_network(1);
  };
  const JobResult result = train(program::build_program(on_two(), 500), settings, cuda::make_driver);
  REQUIRE_FALSE(result.failures.empty());
  CHECK(result.failures.front().starts_with("rank 1: "));
  CHECK(any_has(result.failures, "remote process exited or there was a network error"));
  CHECK(result.steps.size() < 500);
  CHECK(machine.leaks() == std::vector<std::string>{});
}

TEST_CASE("a collective that one rank never comes to ends the job within its deadline") {
  JobSettings settings = closed_form(on_two());
  settings.deadline_s = 0.5;
  const fakes::Machine machine(2);
  const auto stay_away = [](const Common& common) -> std::unique_ptr<Driver> {
    struct Away final : Driver {
      explicit Away(const Common& job) : common(job), driver(cuda::make_driver(job)) {}
      std::unique_ptr<Device> open(const program::Program& program, std::int32_t rank, std::int64_t pool) override {
        if (rank == 0) return driver->open(program, rank, pool);
        while (!common.failure.raised()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        throw Stopped();
      }
      Common common;
      std::unique_ptr<Driver> driver;
    };
    return std::make_unique<Away>(common);
  };
  const JobResult result = train(program::build_program(on_two(), 2), settings, stay_away);
  CHECK(result.failures == std::vector<std::string>{"no kernel of any rank has ended for 0.5 s"});
  CHECK(machine.leaks() == std::vector<std::string>{});
}

}  // namespace
}  // namespace stepcast::real
