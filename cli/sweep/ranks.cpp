// See ranks.hpp.
#include "cli/sweep/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

using Uniques = std::vector<SweepPlan::Unique>;

/// How often the first rank looks for messages: MPI's own waiting would keep a processor busy.
constexpr std::chrono::milliseconds kLook{1};

/// Those of the plan that the first rank's store lacks.
Uniques open_on_all(Ranks& ranks, const SweepPlan& plan, const SweepStore& store) {
  std::vector<std::uint64_t> keys;
  if (ranks.rank() == 0) {
    for (const SweepPlan::Unique& unique : open_in(plan, store)) keys.push_back(unique.key);
  }
  const std::vector<std::uint64_t> wanted = ranks.from_first(std::move(keys));
  const std::set<std::uint64_t> open(wanted.begin(), wanted.end());
  Uniques found;
  std::copy_if(plan.uniques.begin(), plan.uniques.end(), std::back_inserter(found), [&](const auto& unique) { return open.contains(unique.key); });
  if (found.size() != open.size()) throw InputError("sweep", "", "the ranks have read different scenarios", "give all of them the same files");
  return found;
}

/// A message without text ends a rank's part; it tells the number of programs.
std::size_t work_for_first(Ranks& ranks, const SweepWork& work, const Uniques& part) {
  std::mutex mutex;
  const std::size_t programs = simulate(work, part, [&](std::uint64_t key, const std::string& point) {
    const std::scoped_lock lock(mutex);
    ranks.send(key, point);
  });
  ranks.send(programs, "");
  return programs;
}

/// The first rank's own part, on a thread beside the one that listens to the others.
class OwnPart {
 public:
  explicit OwnPart(std::function<std::size_t()> work)
      : thread_([this, work = std::move(work)] {
          try {
            programs_ = work();
          } catch (...) {
            error_ = std::current_exception();
            failed_ = true;
          }
        }) {}
  [[nodiscard]] bool failed() const { return failed_; }
  /// Waits for its end. Throws what it threw.
  std::size_t programs() {
    thread_.join();
    if (error_) std::rethrow_exception(error_);
    return programs_;
  }

 private:
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  std::size_t programs_ = 0;
  std::jthread thread_;  // last: it uses the others
};

/// Keeps what the others send until each has said that it is done, or this rank's own part has failed. Returns the number of their programs.
std::size_t collect(Ranks& ranks, const Keep& keep, const OwnPart& own) {
  std::size_t programs = 0;
  for (int working = ranks.size() - 1; working > 0 && !own.failed();) {
    const auto message = ranks.arrived();
    if (!message) {
      std::this_thread::sleep_for(kLook);
    } else if (message->second.empty()) {
      --working;
      programs += message->first;
    } else {
      keep(message->first, message->second);
    }
  }
  return programs;
}

int whole_in(const Environment& environment, const char* name) {
  const char* text = environment(name);
  return text ? std::atoi(text) : 0;
}

/// Whether the launcher told the process how to find the others: PMIx, PMI-2, PMI-1, or Cray's.
bool has_pmi(const Environment& environment) {
  const auto names = {"PMIX_RANK", "PMI_FD", "PMI_RANK", "PMI_CONTROL_PORT"};
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return environment(name) != nullptr; });
}

}  // namespace

std::optional<Launch> launch_in(const Environment& environment) {
  for (const auto& [rank, size] : {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}}) {
    if (environment(rank) && whole_in(environment, size) > 1) return Launch{whole_in(environment, rank), whole_in(environment, size)};
  }
  if (!environment("SLURM_PROCID")) return std::nullopt;
  const int rank = whole_in(environment, "SLURM_PROCID"), size = whole_in(environment, "SLURM_STEP_NUM_TASKS");
  if (size > 1) return Launch{rank, size, has_pmi(environment)};
  // A batch script outside any step has the number 0, and the number of tasks that steps may have; any other number has been set by hand.
  if (size == 0 && rank > 0)
    throw InputError("environment", "", fmt::format("SLURM_PROCID is {}, but this is no step of srun: SLURM_STEP_NUM_TASKS is missing", rank),
                     "start it with srun, or unset SLURM_PROCID to run alone");
  return std::nullopt;
}

void require_connected(const Launch& launch, const char* command) {
  if (launch.connected) return;
  throw InputError(command, "", fmt::format("was started by srun as {} processes without PMI, by which MPI would find them", launch.size),
                   "use srun --mpi=pmix (srun --mpi=list names what there is), or mpirun");
}

SweepCounts run_sweep_on(Ranks& ranks, const SweepWork& work, SweepStore& store, const std::function<void(std::size_t)>& done) {
  const Uniques open = open_on_all(ranks, work.plan, store),
                part = part_of(open, static_cast<std::size_t>(ranks.rank()), static_cast<std::size_t>(ranks.size()));
  if (ranks.rank() > 0) return {part.size(), 0, work_for_first(ranks, work, part)};
  std::mutex mutex;  // of finished, and calls of done
  std::size_t finished = 0;
  const Keep keep = [&](std::uint64_t key, const std::string& point) {
    store.add(key, point);
    const std::scoped_lock lock(mutex);
    ++finished;
    if (done) done(finished);
  };
  OwnPart own([&] { return simulate(work, part, keep); });
  const std::size_t others = collect(ranks, keep, own);
  return {open.size(), work.plan.uniques.size() - open.size(), own.programs() + others};
}

}  // namespace stepcast::cli
