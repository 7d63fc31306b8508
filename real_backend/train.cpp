// Threads of all ranks, their failures and what they measured.
#include "real_backend/train.hpp"

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include "real_backend/executor.hpp"
#include "real_backend/failure.hpp"
#include "real_backend/host/device.hpp"
#include "real_backend/parameters.hpp"

namespace stepcast::real {
namespace {

/// What a rank leaves behind.
struct RankResult {
  std::vector<StepMetrics> steps;
  std::vector<Moments> parameters;
  MemoryPeaks memory;
  trace::Trace trace;
  bool out_of_memory = false;
};

class HostJob {
 public:
  HostJob(const program::Program& program, const JobSettings& settings)
      : program_(program), settings_(settings), groups_(failure_, static_cast<std::int32_t>(settings.training.ranks)) {}

  JobResult run() {
    const auto ranks = static_cast<std::size_t>(settings_.training.ranks);
    results_.resize(ranks);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks; ++rank) threads.emplace_back([this, rank] { run_rank(static_cast<std::int32_t>(rank)); });
    watch();
    for (std::thread& thread : threads) thread.join();
    return joined();
  }

 private:
  void run_rank(std::int32_t rank) {
    const std::string who = "rank " + std::to_string(rank);
    RankResult& result = results_[static_cast<std::size_t>(rank)];
    try {
      work(rank, result);
    } catch (const Stopped&) {  // its cause is told elsewhere
    } catch (const OutOfMemory& error) {
      result.out_of_memory = true;
      failure_.raise(who + ": out of memory: " + error.what());
    } catch (const std::exception& error) { failure_.raise(who + ": " + error.what()); }
    advance(finished_);
  }

  void work(std::int32_t rank, RankResult& result) {
    host::HostDevice device(failure_, progress_, groups_, clock_, settings_.training, rank, program_.events.size(), 2 * settings_.memory.pool_bytes + kReserve);
    Executor executor(program_, device, clock_, settings_.memory, rank);
    executor.setup();
    initialise(program_, executor.memory(), settings_.training, rank);
    for (std::size_t step = 0; step < program_.steps.size(); ++step) executor.step(static_cast<std::int32_t>(step));
    device.synchronize();
    result.steps = metrics(executor.memory());
    result.parameters = moments(program_, executor.memory(), rank);
    result.memory = executor.memory().peaks();
    result.trace = executor.recorder().take(device.take_slices());
  }

  /// The clipping kernel alone writes a norm.
  [[nodiscard]] std::vector<StepMetrics> metrics(const DeviceMemory& memory) const {
    const auto* numbers = reinterpret_cast<const double*>(memory.at(*program_.metrics));
    std::vector<StepMetrics> result;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const double norm = numbers[program::kMetricsPerStep * static_cast<std::int64_t>(i) + 1];
      result.push_back({numbers[program::kMetricsPerStep * static_cast<std::int64_t>(i)], norm > 0 ? norm : std::numeric_limits<double>::quiet_NaN()});
    }
    return result;
  }

  /// Waits for all ranks, and ends the job when no kernel of any of them has ended for too long.
  void watch() {
    const auto ranks = static_cast<std::uint32_t>(settings_.training.ranks);
    auto since = std::chrono::steady_clock::now();
    std::uint32_t seen = progress_.load();
    while (finished_.load(std::memory_order_acquire) < ranks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const auto now = std::chrono::steady_clock::now();
      if (progress_.load() != seen) seen = progress_.load(), since = now;
      if (failure_.raised() || std::chrono::duration<double>(now - since).count() < settings_.deadline_s) continue;
      failure_.raise("no kernel of any rank has ended for " + std::to_string(static_cast<int>(settings_.deadline_s)) + " s");
    }
  }

  JobResult joined() {
    JobResult result;
    result.failures = failure_.causes();
    for (const RankResult& rank : results_) result.out_of_memory = result.out_of_memory || rank.out_of_memory;
    if (!result.failures.empty()) return result;
    result.steps.resize(program_.steps.size());
    const auto ranks = static_cast<double>(results_.size());
    for (std::size_t i = 0; i < result.steps.size(); ++i) {
      for (const RankResult& rank : results_) result.steps[i].loss += rank.steps[i].loss / ranks;
      result.steps[i].grad_norm = results_.front().steps[i].grad_norm;
    }
    for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
      Moments all;
      for (const RankResult& rank : results_) all.sum += rank.parameters[i].sum, all.squares += rank.parameters[i].squares;
      result.parameters.push_back({program_.parameters[i].name, all.sum, std::sqrt(all.squares)});
    }
    result.memory = results_.front().memory;
    result.trace = std::move(results_.front().trace);
    result.trace.world_size = static_cast<std::int32_t>(results_.size());
    return result;
  }

  static constexpr std::int64_t kReserve = std::int64_t{1} << 30;  // address space beside the pool's size: segments begin at multiples

  const program::Program& program_;
  const JobSettings& settings_;
  Clock clock_;
  Failure failure_;
  host::Groups groups_;
  Counter progress_{0}, finished_{0};
  std::vector<RankResult> results_;
};

}  // namespace

JobResult train_on_host(const program::Program& program, const JobSettings& settings) { return HostJob(program, settings).run(); }

}  // namespace stepcast::real
