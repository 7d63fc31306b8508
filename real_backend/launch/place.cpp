// See place.hpp.
#include "real_backend/launch/place.hpp"

#include <charconv>
#include <cstring>
#include <system_error>

#include "hw_models/input_error.hpp"

namespace stepcast::real {
namespace {

/// Names of one launcher's variables.
struct Launcher {
  const char *rank, *size, *local_rank;
};

// Inner ones first: torchrun may itself be started by srun, and mpirun's daemons are.
constexpr Launcher kTorchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr Launcher kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"};
constexpr Launcher kPmi{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"};
constexpr Launcher kSlurm{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"};

InputError wrong(const std::string& what, const std::string& hint) { return {"environment", "", what, hint}; }

const char* required(const GetVariable& environment, const char* name, const char* beside) {
  const char* value = environment(name);
  if (value == nullptr || *value == '\0') throw wrong(std::string(name) + " is not set, although " + beside + " is", "start all processes with one launcher");
  return value;
}

std::int32_t number(const GetVariable& environment, const char* name, const char* beside, std::int32_t least, std::int32_t below) {
  const std::string text = required(environment, name, beside);
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value >= below)
    throw wrong(std::string(name) + " is \"" + text + "\"", "a number from " + std::to_string(least) + " to " + std::to_string(below - 1));
  return value;
}

/// Nothing if the launcher has not started this process.
std::optional<Place> place_by(const Launcher& launcher, const GetVariable& environment) {
  constexpr std::int32_t kMost = 1 << 20;
  if (environment(launcher.rank) == nullptr && environment(launcher.size) == nullptr) return std::nullopt;
  Place place;
  place.size = number(environment, launcher.size, launcher.rank, 1, kMost);
  place.rank = number(environment, launcher.rank, launcher.size, 0, place.size);
  place.local_rank = number(environment, launcher.local_rank, launcher.rank, 0, place.size);
  return place;
}

std::optional<Place> innermost(const GetVariable& environment) {
  std::optional<Place> torchrun = place_by(kTorchrun, environment);
  for (const Launcher& mpirun : {kOpenMpi, kPmi}) {
    std::optional<Place> place = place_by(mpirun, environment);
    if (!place) continue;
    if (torchrun && (torchrun->rank != place->rank || torchrun->size != place->size))
      throw wrong(std::string("RANK and WORLD_SIZE say rank ") + std::to_string(torchrun->rank) + " of " + std::to_string(torchrun->size) + ", " + mpirun.rank +
                      " and " + mpirun.size + " rank " + std::to_string(place->rank) + " of " + std::to_string(place->size),
                  "unset those that are left over from another launch");
    return place;
  }
  if (torchrun) return torchrun;
  return environment(kSlurm.size) == nullptr ? std::nullopt : place_by(kSlurm, environment);
}

}  // namespace

std::optional<Place> place_in(const GetVariable& environment) {
  std::optional<Place> place = innermost(environment);
  if (!place || place->size == 1) return std::nullopt;
  const char* host = environment("MASTER_ADDR");
  if (host == nullptr || *host == '\0')
    throw wrong("MASTER_ADDR is not set", "the host of rank 0, as all machines name it: torchrun sets it, mpirun passes it on by -x MASTER_ADDR");
  place->host = host;
  place->port = std::to_string(number(environment, "MASTER_PORT", "MASTER_ADDR", 1, 65536));
  return place;
}

}  // namespace stepcast::real
