// See process.hpp.
#include "cli/train/process.hpp"

#include <cstdlib>
#include <utility>

#include "hw_models/input_error.hpp"
#include "real_backend/launch/tcp_peers.hpp"

namespace stepcast::cli {
namespace {

/// Ranks on processors meet by MPI, so torchrun alone can't start them.
std::optional<TrainProcess> open_host_process(const real::GetVariable& environment) {
  if (const std::optional<Launch> launch = launch_in(environment)) return open_mpi_process(*launch);
  const char* size = environment("WORLD_SIZE");
  if (size != nullptr && std::atoi(size) > 1)
    throw InputError("environment", "", std::string("WORLD_SIZE is ") + size + ", and ranks of --device host meet by MPI",
                     "start them with mpirun or srun; or unset WORLD_SIZE, and ranks are threads of one process");
  return std::nullopt;
}

}  // namespace

std::optional<TrainProcess> open_process(bool host, double deadline_s, const real::GetVariable& environment) {
  std::optional<TrainProcess> process;
  if (host) process = open_host_process(environment);
  else if (const std::optional<real::Place> place = real::place_in(environment))
    process = TrainProcess{.peers = real::meet_by_tcp(*place, deadline_s),
                           .interrupts = place->rank == 0 ? std::make_unique<real::Interrupts>() : nullptr,
                           .local_rank = place->local_rank};
  if (process) process->deadline_s = deadline_s;
  return process;
}

bool speaks(const real::GetVariable& environment) {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* rank = environment(name);
    if (rank != nullptr && std::atoi(rank) > 0) return false;
  }
  return true;
}

}  // namespace stepcast::cli
