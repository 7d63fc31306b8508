// Several processes of a job, here threads: what launchers say, how ranks meet over TCP, and a training job that is spread over them. docs/real_backend.md, "Several processes".
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hw_models/input_error.hpp"
#include "real_backend/host/device.hpp"
#include "real_backend/host/driver.hpp"
#include "real_backend/launch/link.hpp"
#include "real_backend/launch/packet.hpp"
#include "real_backend/launch/place.hpp"
#include "real_backend/launch/socket.hpp"
#include "real_backend/launch/tcp_peers.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/tiny_models.hpp"

namespace stepcast::real {
namespace {

using namespace test;
using Variables = std::map<std::string, std::string>;

std::optional<Place> place_of(const Variables& variables) {
  return place_in([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kMaster{{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
const Variables kTorchrun = with(kMaster, {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}});
const Variables kMpirun{{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
const Variables kSrun{{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "1"}};

TEST_CASE("a process's place: torchrun's, mpirun's and srun's variables; inner launchers before outer ones") {
  CHECK_FALSE(place_of({}));
  CHECK_FALSE(place_of(kMaster));
  CHECK_FALSE(place_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}));  // alone
  CHECK_FALSE(place_of({{"SLURM_PROCID", "0"}}));                                    // in sbatch's own shell
  for (const Variables& launcher : {kTorchrun, with(kMpirun, kMaster), with(kSrun, kMaster), with(kTorchrun, kMpirun)}) {
    const auto place = place_of(launcher);
    REQUIRE(place);
    CHECK(place->rank == 5);
    CHECK(place->size == 8);
    CHECK(place->local_rank == 1);
    CHECK(place->host == "node0");
    CHECK(place->port == "29500");
  }
  CHECK(place_of(with(kTorchrun, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}}))->rank == 5);  // srun torchrun
}

TEST_CASE("variables that are missing, wrong or against each other are refused by name") {
  const auto refused = [](const Variables& variables, const char* name) {
    try {
      place_of(variables);
    } catch (const InputError& error) { return std::string(error.what()).find(name) != std::string::npos; }
    return false;
  };
  CHECK(refused(kMpirun, "MASTER_ADDR is not set"));
  CHECK(refused(with(kMpirun, {{"MASTER_ADDR", "node0"}}), "MASTER_PORT is not set"));
  CHECK(refused(with(kTorchrun, {{"MASTER_PORT", "70000"}}), "MASTER_PORT"));
  CHECK(refused(with(kTorchrun, {{"RANK", "8"}}), "RANK is \"8\""));
  CHECK(refused(with(kTorchrun, {{"RANK", "-1"}}), "RANK is \"-1\""));
  CHECK(refused(with(kTorchrun, {{"WORLD_SIZE", "8x"}}), "WORLD_SIZE is \"8x\""));
  CHECK(refused(with(kTorchrun, {{"LOCAL_RANK", ""}}), "LOCAL_RANK is not set"));
  CHECK(refused(with(kMaster, {{"WORLD_SIZE", "8"}}), "RANK is not set"));
  CHECK(refused(with(kTorchrun, with(kMpirun, {{"OMPI_COMM_WORLD_RANK", "4"}})), "rank 5 of 8"));
}

std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& error) { return error.what(); }
  return "";
}

std::string contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos ? part : text; }

/// Runs f(peers) for each rank of a job on a thread of its own.
void on_processes(std::int32_t size, const std::function<void(Peers&)>& f) {
  const std::string port = stepcast::test::free_port();
  std::vector<std::future<void>> processes;
  for (std::int32_t rank = 0; rank < size; ++rank)
    processes.push_back(std::async(std::launch::async, [&, rank] { f(*meet_by_tcp({rank, size, rank, "localhost", port}, 20)); }));
  for (auto& process : processes) process.get();
}

Letter next_letter(Peers& peers) {
  for (;;) {
    if (auto letter = peers.arrived()) return *letter;
    std::this_thread::yield();
  }
}

TEST_CASE("letters arrive whole and in order, long ones too; a process that goes is noticed once") {
  on_processes(3, [](Peers& peers) {
    const std::string large(5'000'000, static_cast<char>('a' + peers.rank()));
    if (peers.rank() > 0) {
      peers.send(0, "");
      peers.send(0, large);
      CHECK(next_letter(peers).text == "to " + std::to_string(peers.rank()));
      return;
    }
    std::map<std::int32_t, std::vector<std::string>> texts;
    for (int count = 0; count < 4; ++count) {
      const Letter letter = next_letter(peers);
      texts[letter.from].push_back(letter.text);
    }
    for (const std::int32_t from : {1, 2}) {
      REQUIRE(texts[from].size() == 2);
      CHECK(texts[from][0].empty());
      CHECK(texts[from][1] == std::string(5'000'000, static_cast<char>('a' + from)));
      peers.send(from, "to " + std::to_string(from));
    }
    std::map<std::int32_t, int> lost;
    while (lost.size() < 2) {
      const Letter letter = next_letter(peers);
      CHECK(letter.lost);
      ++lost[letter.from];
    }
    CHECK_FALSE(peers.arrived());
    peers.send(1, "nobody reads this");
  });
}

TEST_CASE("a rank that never comes is named, and so is a first one that is not there") {
  const std::string port = stepcast::test::free_port();
  auto second = std::async(std::launch::async, [&] { return text_of([&] { meet_by_tcp({1, 4, 1, "localhost", port}, 20); }); });
  const std::string first = text_of([&] { meet_by_tcp({0, 4, 0, "localhost", port}, 0.5); });
  CHECK(first == "rank 2, 3 has not come to localhost:" + port + " within 0.5 s");
  CHECK(second.get() == "turned away by rank 0: it waits no longer for others");
  CHECK(contains(text_of([&] {
                   meet_by_tcp({1, 4, 1, "localhost", port}, 0.2);
                 }),
                 "rank 0 does not answer at localhost:") == "rank 0 does not answer at localhost:");
}

TEST_CASE("a MASTER_ADDR that no machine can have is bad input, and is named with its rank") {
  const std::string host(100, 'x');  // a part of a name has 63 characters at most
  const auto meet = [&] { meet_by_tcp({1, 2, 0, host, "29500"}, 20); };
  CHECK_THROWS_AS(meet(), InputError);
  CHECK(contains(text_of(meet), "rank 1: MASTER_ADDR is \"" + host + "\"") == "rank 1: MASTER_ADDR is \"" + host + "\"");
}

/// Sends bytes and keeps the connection open until the end.
Descriptor stranger(const std::string& port, const std::string& bytes) {
  std::string why;
  for (;;) {
    Descriptor made = connect_to("localhost", port, why);
    if (!made) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    if (!bytes.empty()) ::send(made.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return made;
  }
}

TEST_CASE("strangers are turned away, and don't keep the ranks from meeting") {
  const std::string port = stepcast::test::free_port();
  std::vector<std::future<std::string>> refused;
  auto first = std::async(std::launch::async, [&] { return meet_by_tcp({0, 3, 0, "localhost", port}, 20); });
  const auto come = [&](std::int32_t rank, std::int32_t size) { return meet_by_tcp({rank, size, 0, "localhost", port}, 20); };
  std::vector<Descriptor> strangers;
  strangers.push_back(stranger(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  strangers.push_back(stranger(port, ""));                                                                           // says nothing
  strangers.push_back(stranger(port, PacketWriter().put(std::uint64_t{1} << 60).put_text("much").take()));           // promises too much
  strangers.push_back(stranger(port, PacketWriter().put(std::uint64_t{25}).put_text(std::string(25, 'x')).take()));  // another greeting
  strangers.push_back(stranger(port, PacketWriter().put(std::uint64_t{25}).put_text("x").take()));                   // never whole
  CHECK(text_of([&] { come(2, 4); }) == "turned away by rank 0: a process that calls itself rank 2 of 4; the job has 3");
  CHECK(text_of([&] { come(-1, 3); }) == "turned away by rank 0: a process that calls itself rank -1 of 3");
  auto second = std::async(std::launch::async, [&] { return come(1, 3); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(text_of([&] { come(1, 3); }) == "turned away by rank 0: a process that calls itself rank 1 of 3, which is there already");
  const auto third = come(2, 3);
  CHECK(first.get()->size() == 3);
  CHECK(second.get()->rank() == 1);
}

TEST_CASE("packets that are too short are errors") {
  const std::string text = PacketWriter().put(std::vector<double>{1, 2}).put_text("rest").take();
  PacketReader packet(text);
  CHECK(packet.get_all<double>() == std::vector<double>{1, 2});
  CHECK(packet.rest() == "rest");
  CHECK_THROWS_AS(packet.get<double>(), std::runtime_error);
  CHECK_THROWS_AS(PacketReader(PacketWriter().put(std::uint64_t{1} << 61).take()).get_all<double>(), std::runtime_error);
  CHECK(PacketReader("\1").get<bool>());
  CHECK_THROWS_AS(PacketReader("\2").get<bool>(), std::runtime_error);
}

/// Ranks whose processes are threads, so that their collectives can go over shared memory.
MakeDriver over(host::Groups& groups) {
  class Shared final : public Driver {
   public:
    Shared(const Common& common, host::Groups& groups) : common_(common), groups_(groups) {}
    std::unique_ptr<Device> open(const program::Program& program, std::int32_t rank, std::int64_t pool) override {
      return std::make_unique<host::HostDevice>(common_, groups_, rank, program.events.size(), host::address_space(pool));
    }

   private:
    Common common_;
    host::Groups& groups_;
  };
  return [&groups](const Common& common) { return std::make_unique<Shared>(common, groups); };
}

/// With which the first process ends the job: after this one's part of it, or before this one has seen that it is done.
int code_of(Peers& peers, const std::function<void()>& part) {
  try {
    part();
    return wait_for_end(peers, 20);
  } catch (const JobEnded& ended) { return ended.exit_code; }
}

TEST_CASE("a job on three processes gives the first one what a job on three threads gives, and the traces of as many ranks as it is to keep") {
  program::StepSpec spec = tiny_llama();
  spec.batch.micro_batch = 6;
  spread(spec, 3);
  const program::Program program = program::build_program(spec, 4);
  JobSettings settings = closed_form(spec);
  const JobResult truth = train_on_host(program, settings);
  settings.traced_ranks = 2;
  Failure failure;
  host::SharedGroups groups(failure, 3);
  on_processes(3, [&](Peers& peers) {
    if (peers.rank() > 0) {
      std::vector<std::string> failures;  // checked outside: CHECK would keep the end of the job to itself
      CHECK(code_of(peers, [&] { failures = train(program, settings, over(groups), peers).failures; }) == 7);
      CHECK(failures.empty());
      return;
    }
    const JobResult result = train(program, settings, over(groups), peers);
    CHECK(result.failures.empty());
    end_all(peers, 7);
    REQUIRE(result.steps.size() == truth.steps.size());
    for (std::size_t k = 0; k < truth.steps.size(); ++k) CHECK(result.steps[k].loss == truth.steps[k].loss);
    for (std::size_t i = 0; i < truth.parameters.size(); ++i) CHECK(result.parameters[i].norm == truth.parameters[i].norm);
    REQUIRE(result.trace.ranks.size() == 2);
    CHECK(result.trace.ranks[1].rank == 1);
    CHECK(result.trace.ranks[1].slices.size() == result.trace.ranks[0].slices.size());
    // One clock: within a run that takes far longer than the clocks may differ, the ranks' first collectives are near each other.
    CHECK(std::abs((result.trace.ranks[1].slices.front().begin - result.trace.ranks[0].slices.front().begin).count()) < std::int64_t{2'000'000'000'000});
  });
}

TEST_CASE("a process with another program, one that fails before it begins, and one that is gone: each is named, and all end") {
  program::StepSpec spec = tiny_llama();
  spread(spec, 2);
  const program::Program program = program::build_program(spec, 4);
  for (const int way : {0, 1, 2}) {
    CAPTURE(way);
    Failure failure;
    host::SharedGroups groups(failure, 2);
    on_processes(2, [&](Peers& peers) {
      JobSettings settings = closed_form(spec);
      settings.deadline_s = 5;
      if (peers.rank() == 0) {
        settings.ended_by = [&failure] { return failure.stop(), std::string(); };  // whoever waits over shared memory stops as well
        const JobResult result = train(program, settings, over(groups), peers);
        const char* kCauses[] = {"rank 1 has another scenario, or another build of stepcast, than rank 0", "rank 1: no such file",
                                 "rank 1 is gone: its process has ended"};
        REQUIRE_FALSE(result.failures.empty());
        CHECK(result.failures.front() == kCauses[way]);
        CHECK(result.failures.size() == 1);
        return end_all(peers, 3);
      }
      if (way == 2) return;
      if (way == 1) tell_failure(peers, "rank 1: no such file");
      settings.identity = 1;
      CHECK(code_of(peers, [&] {
              if (way == 0) train(program, settings, over(groups), peers);
            }) == 3);
    });
  }
}

TEST_CASE("a process that keeps the traces of fewer ranks than the first one wants is named") {
  program::StepSpec spec = tiny_llama();
  spread(spec, 2);
  const program::Program program = program::build_program(spec, 1);
  Failure failure;
  host::SharedGroups groups(failure, 2);
  on_processes(2, [&](Peers& peers) {
    JobSettings settings = closed_form(spec);
    settings.traced_ranks = peers.rank() == 0 ? 2 : 1;
    if (peers.rank() > 0) {
      CHECK(code_of(peers, [&] { train(program, settings, over(groups), peers); }) == 3);
      return;
    }
    const JobResult result = train(program, settings, over(groups), peers);
    CHECK(result.failures == std::vector<std::string>{"rank 1: it has other parameters, or keeps traces of other ranks, than rank 0"});
    end_all(peers, 3);
  });
}

TEST_CASE("what the first process says before the job begins reaches all, unless it ends the job") {
  on_processes(3, [](Peers& peers) { CHECK(from_first(peers, peers.rank() == 0 ? "id" : "", 20) == "id"); });
  on_processes(2, [](Peers& peers) {
    if (peers.rank() == 0) return end_all(peers, 2);
    CHECK_THROWS_AS(from_first(peers, "", 20), JobEnded);
  });
}

}  // namespace
}  // namespace stepcast::real
