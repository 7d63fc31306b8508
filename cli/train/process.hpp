// A training job that a launcher has started as several processes: this one's place in it. docs/real_backend.md, "Several processes"; test: tests/golden/train_mpi_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cli/sweep/ranks.hpp"
#include "real_backend/driver.hpp"
#include "real_backend/launch/interrupts.hpp"
#include "real_backend/launch/peers.hpp"
#include "real_backend/launch/place.hpp"

namespace stepcast::cli {

struct TrainProcess {
  std::unique_ptr<real::Peers> peers;
  std::unique_ptr<real::Interrupts> interrupts{};  // of the first process
  double deadline_s = 60;                          // for others to say something
  std::int32_t on_this_machine = 1;                // of --device host: processes of the job
  real::MakeDriver make_driver{};                  // of --device host
  std::int32_t local_rank = 0;                     // of --device cuda
};

/// This process's place, if `environment` says that it is one of several; `host`: --device host, else cuda. Throws InputError, of which every process but the first may
/// be the only one to know where it is a NotMet, and std::runtime_error if they don't meet.
std::optional<TrainProcess> open_process(bool host, double deadline_s, const real::GetVariable& environment);

/// By MPI, where the program is built with it. Throws InputError if not, or if the launcher belongs to another MPI.
TrainProcess open_mpi_process(const Launch& launch);
/// What is wrong with the launch itself is found by all of its processes, and told by one of them.
bool speaks(const real::GetVariable& environment);

}  // namespace stepcast::cli
