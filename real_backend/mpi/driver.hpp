// The host driver with ranks as processes: collectives and letters over MPI. docs/real_backend.md, "Several processes"; test: tests/golden/train_mpi_test.cpp.
#pragma once

#include <cstdint>
#include <memory>

#include "real_backend/driver.hpp"
#include "real_backend/launch/peers.hpp"

namespace stepcast::real::mpi {

struct Processes {
  std::unique_ptr<Peers> peers;
  std::int32_t on_this_machine = 1;
};
/// Starts MPI, which ends with the peers. Once in a process. Throws std::runtime_error if this MPI does not let several threads communicate at a time.
Processes start();

/// Between `start` and the end of its peers.
std::unique_ptr<Driver> make_driver(const Common& common);

}  // namespace stepcast::real::mpi
