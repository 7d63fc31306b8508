// What the executor and its streams cost on the host driver: steps of training, and the same kernels and collectives back to back on one thread of each rank, without streams, events,
// allocator and trace. Both take turns, so that a machine that others use slows down both. Figures: docs/real_backend.md, "Speed".
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <ctime>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "real_backend/executor.hpp"
#include "real_backend/host/device.hpp"
#include "real_backend/host/driver.hpp"
#include "real_backend/parameters.hpp"
#include "tests/support/tiny_models.hpp"

namespace {

using namespace stepcast;
using namespace stepcast::real;

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Times {
  double wall = 0, processor = 0;
  void add(const Times& begin) {
    wall += seconds_of(CLOCK_MONOTONIC) - begin.wall;
    processor += seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin.processor;
  }
  static Times now() { return {seconds_of(CLOCK_MONOTONIC), seconds_of(CLOCK_PROCESS_CPUTIME_ID)}; }
};

/// A piece of a step's work, in the order of issue; a kernel or a collective.
struct Work {
  KernelTask kernel;
  CollectiveTask collective;
};

/// A host device, which also notes what it is given, if asked to.
class NotingDevice final : public Device {
 public:
  NotingDevice(const Common& common, host::Groups& groups, std::int32_t rank, std::size_t events, std::int64_t pool)
      : real_(common, groups, rank, events, host::address_space(pool)) {}
  void launch(program::Stream stream, KernelTask task) override {
    if (notes != nullptr) notes->push_back({task, {}});
    real_.launch(stream, std::move(task));
  }
  void collective(program::Stream stream, CollectiveTask task) override {
    if (notes != nullptr) notes->push_back({{}, task});
    real_.collective(stream, task);
  }
  void record(std::uint32_t event, program::Stream stream) override { real_.record(event, stream); }
  void wait(program::Stream stream, std::uint32_t event) override { real_.wait(stream, event); }
  void host_wait(std::uint32_t event) override { real_.host_wait(event); }
  void then(program::Stream stream, std::function<void()> task) override { real_.then(stream, std::move(task)); }
  void synchronize() override { real_.synchronize(); }
  std::uint64_t position(program::Stream stream) override { return real_.position(stream); }
  [[nodiscard]] bool reached(program::Stream stream, std::uint64_t position) const override { return real_.reached(stream, position); }
  void map(std::span<const Segment> segments) override { real_.map(segments); }
  std::byte* memory(std::uint64_t address, std::int64_t bytes) override { return real_.memory(address, bytes); }
  void read(const std::byte* from, std::span<std::byte> to) override { real_.read(from, to); }
  void write(std::byte* to, std::span<const std::byte> from) override { real_.write(to, from); }
  std::vector<trace::Slice> take_slices() override { return real_.take_slices(); }

  std::vector<Work>* notes = nullptr;

 private:
  host::HostDevice real_;
};

/// A job of `ranks` ranks.
class Job {
 public:
  Job(const program::StepSpec& spec, std::int32_t ranks, int steps)
      : program_(program::build_program(spec, steps)), settings_(real::test::closed_form(spec)), common_{failure_, progress_, clock_, settings_.training} {
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      Rank& made = ranks_.emplace_back();
      made.device = std::make_unique<NotingDevice>(common_, groups_, rank, program_.events.size(), settings_.memory.pool_bytes);
      made.executor = std::make_unique<Executor>(program_, *made.device, clock_, settings_.memory, rank);
    }
    on_all([&](Rank& rank, std::int32_t number) {
      rank.executor->setup();
      initialise(program_, rank.executor->memory(), *rank.device, settings_.training, number);
    });
  }

  /// `count` more steps, as training does them: the host of a rank runs ahead of its streams.
  void train(int count) {
    on_all([&](Rank& rank, std::int32_t) {
      const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
      for (int i = 0; i < count; ++i) rank.executor->step(next_ + i);
      rank.device->synchronize();
      rank.host_s += seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
    });
    next_ += count;
    for (Rank& rank : ranks_) rank.device->take_slices();
  }
  /// One step whose work is noted.
  void note() {
    for (Rank& rank : ranks_) rank.device->notes = &rank.work;
    train(1);
    for (Rank& rank : ranks_) rank.device->notes = nullptr;
  }
  /// The noted work, `count` times.
  void back_to_back(int count) {
    on_all([&](Rank& rank, std::int32_t number) {
      for (int i = 0; i < count; ++i)
        for (Work& work : rank.work) run(work, rank, number);
    });
  }
  /// Processor time of the hosts in `train` so far: they walk the program while the streams work.
  [[nodiscard]] double host_seconds() const {
    double sum = 0;
    for (const Rank& rank : ranks_) sum += rank.host_s;
    return sum;
  }
  [[nodiscard]] std::size_t pieces() const { return ranks_.front().work.size(); }
  [[nodiscard]] bool failed() const { return failure_.raised(); }

 private:
  struct Rank {
    std::vector<Work> work;
    double host_s = 0;
    host::kernels::Scratch scratch;
    std::array<std::uint32_t, program::kCommunicators> issued{};
    std::unique_ptr<NotingDevice> device;
    std::unique_ptr<Executor> executor;
  };

  void run(Work& work, Rank& rank, std::int32_t number) {
    if (work.kernel.call != nullptr)
      return host::kernels::run(*work.kernel.call, work.kernel.parts, {settings_.training, work.kernel.moment, number}, rank.scratch);
    const program::CollectiveEntry& entry = *work.collective.entry;
    const auto [group, member] = replayed_.of(entry.communicator, entry.shape.group.ranks(), number);
    group->run(entry, rank.issued[static_cast<std::size_t>(entry.communicator)]++, member, work.collective.in, work.collective.out, [] {});
  }
  template <class F>
  void on_all(F f) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          f(ranks_[i], static_cast<std::int32_t>(i));
        } catch (const std::exception& error) { failure_.raise(error.what()); }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  program::Program program_;
  JobSettings settings_;
  Failure failure_;
  Counter progress_{0};
  Clock clock_;
  Common common_;
  host::SharedGroups groups_{failure_, static_cast<std::int32_t>(settings_.training.ranks)},
      replayed_{failure_, static_cast<std::int32_t>(settings_.training.ranks)};
  std::deque<Rank> ranks_;
  int next_ = 0;
};

program::StepSpec llama(std::int64_t width, std::int64_t tokens, std::int32_t ranks) {
  program::StepSpec spec = real::test::tiny_llama();
  spec.precision = {hw::Dtype::fp32, hw::Dtype::fp32, hw::Dtype::fp32};
  spec.model.hidden = width, spec.model.layers = 4, spec.model.heads = spec.model.kv_heads = 4, spec.model.head_dim = width / 4;
  spec.model.ffn = 5 * width / 2, spec.model.vocab = 1024;
  spec.batch = {.micro_batch = tokens / 128, .grad_accum = 1, .seq_len = 128};
  spec.world = {ranks, 1};
  return spec;
}

/// Arguments: width of the model, tokens of a rank in a step, ranks.
void step_against_its_work(benchmark::State& state) {
  constexpr int kTogether = 4;  // steps between two looks at the clock
  const auto ranks = static_cast<std::int32_t>(state.range(2));
  Job job(llama(state.range(0), state.range(1), ranks), ranks, kTogether * (static_cast<int>(state.max_iterations) + 1) + 1);
  job.train(kTogether);
  job.note();
  job.back_to_back(1);
  Times steps, work;
  const double hosts_before = job.host_seconds();
  for (auto _ : state) {
    const Times begin = Times::now();
    job.train(kTogether);
    steps.add(begin);
    const Times middle = Times::now();
    job.back_to_back(kTogether);
    work.add(middle);
  }
  if (job.failed()) state.SkipWithError("the job has failed");
  const double hosts = job.host_seconds() - hosts_before;
  const double count = kTogether * static_cast<double>(state.iterations());
  state.counters["step_ms"] = 1e3 * steps.wall / count;
  state.counters["pieces"] = static_cast<double>(job.pieces());
  state.counters["overhead_%"] = 100 * (steps.wall / work.wall - 1);
  state.counters["processor_ms"] = 1e3 * steps.processor / count;
  state.counters["hosts_ms"] = 1e3 * hosts / count;
  state.counters["streams_overhead_%"] = 100 * ((steps.processor - hosts) / work.processor - 1);
  state.counters["all_overhead_%"] = 100 * (steps.processor / work.processor - 1);
}
BENCHMARK(step_against_its_work)
    ->ArgNames({"width", "tokens", "ranks"})
    ->Args({128, 512, 1})
    ->Args({256, 256, 1})
    ->Args({256, 1024, 1})
    ->Args({256, 256, 2})
    ->Args({256, 1024, 2})
    ->Iterations(10)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
