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
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include "real_backend/executor.hpp"
#include "real_backend/failure.hpp"
#include "real_backend/host/driver.hpp"
#include "real_backend/launch/link.hpp"
#include "real_backend/parameters.hpp"

namespace stepcast::real {
namespace {

/// What a slice refers to is in the trace.
bool is_of(const trace::Slice& slice, const trace::Trace& trace) {
  if (slice.name >= trace.names.size() || slice.step >= trace.steps.size()) return false;
  if (slice.lane < trace::kHostLane || slice.lane >= static_cast<std::int16_t>(trace.streams.size())) return false;
  if (slice.category == trace::Category::kernel) return slice.detail < trace.kernels.size();
  return slice.category != trace::Category::collective || slice.detail < trace.collectives.size();
}

/// Owned by all its threads too, so that those which never end have what they use.
class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(const program::Program& program, const JobSettings& settings, const MakeDriver& make_driver, Peers* peers)
      : program_(program),
        settings_(settings),
        driver_(make_driver({failure_, progress_, clock_, settings_.training})),
        own_begin_(peers == nullptr ? 0 : peers->rank()),
        own_end_(peers == nullptr ? static_cast<std::int32_t>(settings.training.ranks) : own_begin_ + 1) {
    for (std::int64_t rank = 0; rank < settings.training.ranks; ++rank) results_.emplace_back().steps.resize(program.steps.size());
    if (peers == nullptr) return;
    if (peers->size() != settings.training.ranks) throw std::logic_error("a job has as many processes as ranks");
    link_.emplace(*peers, LinkedJob{failure_, progress_, results_, settings_.traced_ranks, program_.parameters.size()});
  }

  JobResult run() {
    if (link_) link_->meet(settings_.identity, clock_, settings_.deadline_s);
    std::vector<std::thread> threads;
    for (std::int32_t rank = own_begin_; rank < own_end_; ++rank) {
      if (failure_.raised()) result_of(rank).back = true;  // the processes have not met
      else threads.emplace_back([job = shared_from_this(), rank] { job->run_rank(rank); });
    }
    watch();
    for (std::thread& thread : threads) {
      const std::int32_t rank = own_begin_ + static_cast<std::int32_t>(&thread - threads.data());
      if (result_of(rank).back.load(std::memory_order_acquire)) thread.join();
      else thread.detach();
    }
    if (link_ && link_->over()) throw JobEnded(*link_->over());
    return joined();
  }

 private:
  [[nodiscard]] RankResult& result_of(std::int32_t rank) { return results_[static_cast<std::size_t>(rank)]; }

  void run_rank(std::int32_t rank) {
    const std::string who = "rank " + std::to_string(rank);
    RankResult& result = result_of(rank);
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
    RankResult& result = result_of(rank);
    result.steps[static_cast<std::size_t>(step)] = metrics;
    if (settings_.on_step) settings_.on_step(rank, step);
    result.done.store(static_cast<std::uint32_t>(step) + 1, std::memory_order_release);
  }

  /// Those that are not back, by number. Of several processes the first waits for all, the others for their own.
  [[nodiscard]] std::string missing_ranks() const {
    const bool all = !link_ || link_->first();
    std::string list;
    for (std::size_t rank = 0; rank < results_.size(); ++rank) {
      const bool waited_for = all || static_cast<std::int32_t>(rank) == own_begin_;
      if (waited_for && !results_[rank].back.load(std::memory_order_acquire)) list += (list.empty() ? "" : ", ") + std::to_string(rank);
    }
    return list;
  }

  /// Waits for all ranks; ends the job when no kernel of any of them has ended for too long, and gives those up that don't end then.
  void watch() {
    Patience patience(progress_.load());
    for (std::string missing = missing_ranks(); !missing.empty(); missing = missing_ranks()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (link_) link_->turn();
      if (link_ && !link_->first()) {
        if (gives_up_first()) return;
        continue;
      }
      const double idle = patience.idle(progress_.load());
      if (idle >= settings_.deadline_s && !std::exchange(late_, true) && !failure_.raised())
        failure_.raise(fmt::format("no kernel of any rank has ended for {:g} s", settings_.deadline_s));
      if (idle >= settings_.deadline_s + kGrace) return failure_.raise("a kernel does not return; left behind: rank " + missing);
      if (is_told_to_end()) return;
    }
    if (link_) link_->turn();  // tells the first of this rank's end, or the others to stop
  }

  /// Somebody ends the job from outside, who will not wait for long.
  [[nodiscard]] bool is_told_to_end() {
    const auto now = std::chrono::steady_clock::now();
    if (told_to_end_) return std::chrono::duration<double>(now - *told_to_end_).count() > kHurry;
    const std::string cause = settings_.ended_by ? settings_.ended_by() : "";
    if (cause.empty()) return false;
    if (!failure_.raised()) failure_.raise(cause);
    told_to_end_ = now;
    return false;
  }

  /// The first process names ranks whose kernels don't return, and it knows of deadlines; here it is enough not to wait for it in vain.
  [[nodiscard]] bool gives_up_first() {
    if (link_->silence() < settings_.deadline_s + kSilence) return link_->over().has_value();
    failure_.stop();
    return true;
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
    if (failure_.raised() || (link_ && !link_->first())) return result;
    for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
      Moments all;
      for (const RankResult& rank : results_) all.sum += rank.parameters[i].sum, all.squares += rank.parameters[i].squares;
      result.parameters.push_back({program_.parameters[i].name, all.sum, std::sqrt(all.squares)});
    }
    result.memory = results_.front().memory;
    result.trace = trace();
    return result;
  }

  /// All ranks have the first one's names; of the steps its marks are kept.
  [[nodiscard]] trace::Trace trace() {
    trace::Trace all = std::move(results_.front().trace);
    all.world_size = static_cast<std::int32_t>(results_.size());
    for (std::int32_t rank = 1; rank < std::min(settings_.traced_ranks, all.world_size); ++rank) {
      trace::RankTrace& own = result_of(rank).trace.ranks.front();
      if (!std::all_of(own.slices.begin(), own.slices.end(), [&](const trace::Slice& slice) { return is_of(slice, all); }))
        throw std::runtime_error(fmt::format("rank {} has traced what rank 0 does not know", rank));
      all.ranks.push_back(std::move(own));
      all.ranks.back().rank = rank;
    }
    return all;
  }

  /// How long nothing has ended.
  class Patience {
   public:
    explicit Patience(std::uint32_t progress) : seen_(progress) {}
    double idle(std::uint32_t progress) {
      const auto now = std::chrono::steady_clock::now();
      if (progress != seen_) seen_ = progress, since_ = now;
      return std::chrono::duration<double>(now - since_).count();
    }

   private:
    std::uint32_t seen_;
    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  };
  static constexpr double kGrace = 1;    // seconds for threads to end once they are told to
  static constexpr double kHurry = 0.3;  // of a job that is ended from outside: mpirun kills what has not ended a second after it asked
  static constexpr double kSilence = 5;  // of the first process, beyond the deadline

  const program::Program program_;
  const JobSettings settings_;
  Clock clock_;
  Failure failure_;
  Counter progress_{0};
  const std::unique_ptr<Driver> driver_;
  std::deque<RankResult> results_;
  const std::int32_t own_begin_, own_end_;  // ranks of this process
  std::optional<Link> link_;
  bool late_ = false;
  std::optional<std::chrono::steady_clock::time_point> told_to_end_;
};

}  // namespace

JobResult train(const program::Program& program, const JobSettings& settings, const MakeDriver& make_driver) {
  return std::make_shared<Job>(program, settings, make_driver, nullptr)->run();
}

JobResult train(const program::Program& program, const JobSettings& settings, const MakeDriver& make_driver, Peers& peers) {
  return std::make_shared<Job>(program, settings, make_driver, &peers)->run();
}

JobResult train_on_host(const program::Program& program, const JobSettings& settings) { return train(program, settings, host::make_driver); }

}  // namespace stepcast::real
