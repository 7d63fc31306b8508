// One process per GPU through the CUDA driver, on fakes: threads stand for the processes, which meet over TCP. docs/real_backend.md, "Several processes".
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "real_backend/cuda/driver.hpp"
#include "real_backend/launch/link.hpp"
#include "real_backend/launch/tcp_peers.hpp"
#include "tests/fakes/machine.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/text.hpp"
#include "tests/support/tiny_models.hpp"

namespace stepcast::real {
namespace {

using namespace test;

/// Runs f(peers, driver) for each rank of a job on a thread of its own; returns what the first one leaves.
JobResult on_processes(std::int32_t size, const std::function<JobResult(Peers&, const MakeDriver&)>& f) {
  const std::string port = stepcast::test::free_port();
  std::vector<std::future<JobResult>> processes;
  for (std::int32_t rank = 0; rank < size; ++rank)
    processes.push_back(std::async(std::launch::async, [&, rank] {
      const auto peers = meet_by_tcp({rank, size, rank, "localhost", port}, 20);
      const std::string id = from_first(*peers, rank == 0 ? cuda::new_job_id() : "", 20);
      JobResult result;
      try {
        result = f(*peers, cuda::driver_of_process(id, cuda::gpu_of_process(rank, size)));
        if (rank > 0) wait_for_end(*peers, 20);
      } catch (const JobEnded&) {  // by the first
      }
      if (rank == 0) end_all(*peers, 0);
      return result;
    }));
  for (std::size_t rank = 1; rank < processes.size(); ++rank) processes[rank].get();
  return processes[0].get();
}

using stepcast::test::any_has;

TEST_CASE("a process for each of four GPUs gives the host driver's losses, norms and parameters") {
  for (const auto framework : {program::Framework::fsdp1, program::Framework::fsdp2, program::Framework::ddp}) {
    program::StepSpec spec = tiny_gpt();
    spread(spec, 4);
    spec.policy.framework = framework;
    const program::Program program = program::build_program(spec, 3);
    JobSettings settings = closed_form(spec);
    const JobResult truth = train_on_host(program, settings);
    settings.traced_ranks = 4;
    const fakes::Machine machine(4);
    const JobResult result = on_processes(4, [&](Peers& peers, const MakeDriver& make_driver) { return train(program, settings, make_driver, peers); });
    for (const std::string& fault : machine.faults()) FAIL_CHECK(fault);
    for (const std::string& leak : machine.leaks()) FAIL_CHECK(leak);
    REQUIRE_MESSAGE(result.failures.empty(), result.failures.front());
    REQUIRE(result.steps.size() == 3);
    for (std::size_t k = 0; k < 3; ++k) CHECK(close(result.steps[k].loss, truth.steps[k].loss));
    for (std::size_t i = 0; i < truth.parameters.size(); ++i) CHECK(close(result.parameters[i].norm, truth.parameters[i].norm));
    REQUIRE(result.trace.ranks.size() == 4);
    for (const trace::RankTrace& rank : result.trace.ranks) CHECK(rank.slices.size() == result.trace.ranks[0].slices.size());
  }
}

TEST_CASE("a rank of another process that runs out of memory ends the job on all, by its name") {
  program::StepSpec spec = tiny_llama();
  spread(spec, 2);
  const program::Program program = program::build_program(spec, 3);
  const fakes::Machine machine(2);
  const JobResult result = on_processes(2, [&](Peers& peers, const MakeDriver& make_driver) {
    JobSettings settings = closed_form(spec);
    if (peers.rank() == 1) settings.memory.pool_bytes = 3 << 20;
    return train(program, settings, make_driver, peers);
  });
  CHECK(result.out_of_memory);
  CHECK(any_has(result.failures, "rank 1: out of memory: "));
  for (const std::string& fault : machine.faults()) FAIL_CHECK(fault);
  for (const std::string& leak : machine.leaks()) FAIL_CHECK(leak);
}

TEST_CASE("a process that goes while others wait for it in a collective ends the job; the steps that all ranks had done are kept") {
  program::StepSpec spec = tiny_llama();
  spread(spec, 2);
  const program::Program program = program::build_program(spec, 200);
  fakes::Machine machine(2);
  const JobResult result = on_processes(2, [&](Peers& peers, const MakeDriver& make_driver) {
    JobSettings settings = closed_form(spec);
    const bool leaves = peers.rank() == 1;
    settings.on_step = [leaves](std::int32_t, std::int32_t step) {
      if (leaves && step == 3) throw std::runtime_error("broken on purpose");
    };
    return train(program, settings, make_driver, peers);
  });
  CHECK(result.failures == std::vector<std::string>{"rank 1: broken on purpose"});
  CHECK(result.steps.size() >= 3);
  CHECK(result.steps.size() < 200);
  for (const std::string& leak : machine.leaks()) FAIL_CHECK(leak);
}

TEST_CASE("a process takes the GPU that it sees alone, or that of its number on the machine") {
  CHECK(cuda::gpu_of_process(3, 1) == 0);
  CHECK(cuda::gpu_of_process(3, 8) == 3);
  CHECK_THROWS_WITH(cuda::gpu_of_process(8, 8), "process 8 of this machine has no GPU: there are 8");
  CHECK_THROWS_WITH(cuda::driver_of_process("short", 0), "the job's id has 5 bytes: another NCCL than here");
}

}  // namespace
}  // namespace stepcast::real
