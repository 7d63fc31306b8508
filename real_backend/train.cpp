// Threads of all ranks, their failures and what they measured.
#include "real_backend/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>

#include "real_backend/executor.hpp"
#include "real_backend/failure.hpp"
#include "real_backend/host/driver.hpp"
#include "real_backend/parameters.hpp"

namespace stepcast::real {
namespace {

/// What a rank leaves behind. Steps are there up to `done`, whatever comes of the rest.
struct RankResult {
  std::vector<StepMetrics> steps;
  Counter done{0};
  std::atomic<bool> back{false};  // its threads have ended
  std::vector<Moments> parameters;
  MemoryPeaks memory;
  trace::Trace trace;
  bool out_of_memory = false;
};

/// Owned by all its threads too, so that those which never end have what they use.
class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(const program::Program& program, const JobSettings& settings, const MakeDriver& make_driver)
      : program_(program), settings_(settings), driver_(make_driver({failure_, progress_, clock_, settings_.training})) {
    for (std::int64_t rank = 0; rank < settings.training.ranks; ++rank) results_.emplace_back().steps.resize(program.steps.size());
  }

  JobResult run() {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < results_.size(); ++rank)
      threads.emplace_back([job = shared_from_this(), rank] { job->run_rank(static_cast<std::int32_t>(rank)); });
    watch();
    for (std::size_t rank = 0; rank < threads.size(); ++rank) {
      if (results_[rank].back.load(std::memory_order_acquire)) threads[rank].join();
      else threads[rank].detach();
    }
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
    result.back.store(true, std::memory_order_release);
  }

  void work(std::int32_t rank, RankResult& result) {
    const std::unique_ptr<Device> device = driver_->open(program_, rank, settings_.memory.pool_bytes);
    Executor executor(program_, *device, clock_, settings_.memory, rank);
    executor.setup();
    initialise(program_, executor.memory(), *device, settings_.training, rank);
    const std::byte* metrics = executor.memory().at(*program_.metrics);
    for (std::int32_t step = 0; step < static_cast<std::int32_t>(program_.steps.size()); ++step) {
      executor.step(step);
      device->then(program::Stream::compute, [this, rank, step, metrics, &device = *device] { keep(rank, step, metrics_of(device, metrics, step)); });
    }
    device->synchronize();
    result.parameters = moments(program_, executor.memory(), *device, rank);
    result.memory = executor.memory().peaks();
    result.trace = executor.recorder().take(device->take_slices());
  }

  /// The clipping kernel alone writes a norm.
  static StepMetrics metrics_of(Device& device, const std::byte* metrics, std::int32_t step) {
    std::array<double, program::kMetricsPerStep> values{};
    device.read(metrics + static_cast<std::size_t>(step) * sizeof values, std::as_writable_bytes(std::span(values)));
    return {values[0], values[1] > 0 ? values[1] : std::numeric_limits<double>::quiet_NaN()};
  }

  /// A rank has done a step.
  void keep(std::int32_t rank, std::int32_t step, const StepMetrics& metrics) {
    if (!std::isfinite(metrics.loss)) throw std::runtime_error(fmt::format("the loss is not a finite number in step {}", step));
    RankResult& result = results_[static_cast<std::size_t>(rank)];
    result.steps[static_cast<std::size_t>(step)] = metrics;
    if (settings_.on_step) settings_.on_step(rank, step);
    result.done.store(static_cast<std::uint32_t>(step) + 1, std::memory_order_release);
  }

  [[nodiscard]] std::string missing_ranks() const {
    std::string list;
    for (std::size_t rank = 0; rank < results_.size(); ++rank)
      if (!results_[rank].back.load(std::memory_order_acquire)) list += (list.empty() ? "" : ", ") + std::to_string(rank);
    return list;
  }

  /// Waits for all ranks; ends the job when no kernel of any of them has ended for too long, and gives those up that don't end then.
  void watch() {
    auto since = std::chrono::steady_clock::now();
    std::uint32_t seen = progress_.load();
    bool late = false;
    for (std::string missing = missing_ranks(); !missing.empty(); missing = missing_ranks()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const auto now = std::chrono::steady_clock::now();
      if (progress_.load() != seen) seen = progress_.load(), since = now;
      const double idle = std::chrono::duration<double>(now - since).count();
      if (!late && idle >= settings_.deadline_s) {
        late = true;
        if (!failure_.raised()) failure_.raise(fmt::format("no kernel of any rank has ended for {:g} s", settings_.deadline_s));
      }
      if (idle >= settings_.deadline_s + kGrace) return failure_.raise("a kernel does not return; left behind: rank " + missing);
    }
  }

  /// Means over the ranks of the steps that all have done.
  [[nodiscard]] std::vector<StepMetrics> steps() const {
    std::uint32_t done = static_cast<std::uint32_t>(program_.steps.size());
    for (const RankResult& rank : results_) done = std::min(done, rank.done.load(std::memory_order_acquire));
    std::vector<StepMetrics> result(done);
    for (std::size_t i = 0; i < result.size(); ++i) {
      for (const RankResult& rank : results_) result[i].loss += rank.steps[i].loss / static_cast<double>(results_.size());
      result[i].grad_norm = results_.front().steps[i].grad_norm;
    }
    return result;
  }

  JobResult joined() {
    JobResult result;
    result.failures = failure_.causes();
    result.steps = steps();
    for (const RankResult& rank : results_) result.out_of_memory = result.out_of_memory || (rank.back.load() && rank.out_of_memory);
    if (!result.failures.empty()) return result;
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

  static constexpr double kGrace = 1;  // seconds for threads to end once they are told to

  const program::Program program_;
  const JobSettings settings_;
  Clock clock_;
  Failure failure_;
  Counter progress_{0};
  const std::unique_ptr<Driver> driver_;
  std::deque<RankResult> results_;
};

}  // namespace

JobResult train(const program::Program& program, const JobSettings& settings, const MakeDriver& make_driver) {
  return std::make_shared<Job>(program, settings, make_driver)->run();
}

JobResult train_on_host(const program::Program& program, const JobSettings& settings) { return train(program, settings, host::make_driver); }

}  // namespace stepcast::real
