// Processes that share a sweep: each simulates its part, the first keeps what all have found and prints it as if it were alone. docs/sweep.md, "Several machines";
// test: tests/unit/sweep_ranks_test.cpp, tests/golden/sweep_mpi_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/sweep/run.hpp"

namespace stepcast::cli {

/// As std::getenv.
using Environment = std::function<const char*(const char* name)>;

/// What mpirun or srun say of this process in its environment; nothing where it is alone.
struct Launch {
  int rank = 0, size = 1;
  bool connected = true;  // false: by srun without PMI, so that MPI would not find the other processes and end the program
};
/// Throws InputError where Slurm's variables contradict each other.
std::optional<Launch> launch_in(const Environment& environment);
/// Throws InputError where MPI would not find the other processes.
void require_connected(const Launch& launch, const char* command);

class Ranks {
 public:
  virtual ~Ranks() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// The numbers of the first rank, on all; the others wait for them.
  virtual std::vector<std::uint64_t> from_first(std::vector<std::uint64_t> numbers) = 0;
  /// To the first rank, by one thread at a time.
  virtual void send(std::uint64_t key, const std::string& text) = 0;
  /// On the first rank: a message that has arrived.
  virtual std::optional<std::pair<std::uint64_t, std::string>> arrived() = 0;
  /// Ends all processes.
  virtual void abort(int exit_code) = 0;
};

/// MPI's, where the program is built with it. Throws InputError if not, if the processes are not connected, or if the launcher belongs to another MPI; on other ranks than the first an empty message, so that it is said once.
std::unique_ptr<Ranks> open_ranks(const Launch& launch);

/// run_sweep on all ranks, which have made the same plan. Only the first rank's store is looked at and filled; only its counts are whole. A rank that throws must abort the others.
SweepCounts run_sweep_on(Ranks& ranks, const SweepWork& work, SweepStore& store, const std::function<void(std::size_t)>& done = {});

}  // namespace stepcast::cli
