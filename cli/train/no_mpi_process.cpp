// See process.hpp: a build without MPI.
#include <fmt/format.h>

#include "cli/train/process.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {

TrainProcess open_mpi_process(const Launch& launch) {
  throw InputError("train", "", fmt::format("was started as {} processes, but this build of stepcast has no MPI", launch.size),
                   "install MPI and build again, or start it once, with --ranks: ranks are threads then");
}

}  // namespace stepcast::cli
