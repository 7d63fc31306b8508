// See process.hpp.
#include <fmt/format.h>

#include <utility>

#include "cli/train/process.hpp"
#include "hw_models/input_error.hpp"
#include "real_backend/mpi/driver.hpp"

namespace stepcast::cli {

TrainProcess open_mpi_process(const Launch& launch) {
  require_connected(launch, "train");
  auto interrupts = launch.rank == 0 ? std::make_unique<real::Interrupts>() : nullptr;  // before MPI has threads
  real::mpi::Processes started = real::mpi::start();
  if (started.peers->size() != launch.size)
    throw InputError("train", "", fmt::format("was started as {} processes, of which MPI sees {}", launch.size, started.peers->size()),
                     "use the mpirun of the MPI that stepcast was built with; srun may need --mpi=pmix");
  return {.peers = std::move(started.peers),
          .interrupts = std::move(interrupts),
          .on_this_machine = started.on_this_machine,
          .make_driver = real::mpi::make_driver};
}

}  // namespace stepcast::cli
