// Inside of the fake machine: GPUs, streams with their threads, events, and what has gone wrong. Only tests/fakes includes this.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/clock.hpp"
#include "tests/fakes/machine.hpp"
#include "tests/fakes/memory.hpp"

namespace stepcast::fakes {

struct Gpu {
  explicit Gpu(int its_number, std::size_t bytes) : number(its_number), memory(bytes) {}

  const int number;
  std::mutex mutex;  // held by whatever runs on the GPU, and for all below
  Memory memory;
  Clock host;  // what the host knows
  std::array<std::uint32_t, kSlots> times{};
  std::array<bool, kSlots> slot_taken{true};
  std::map<std::byte*, std::size_t> pinned;
  bool broken = false;  // after a fault every call says so, as CUDA's do
};

class Stream {
 public:
  /// What an operation runs with.
  struct Running {
    Gpu& gpu;
    Stream& stream;
    Clock& clock;
    [[nodiscard]] Toucher toucher() const { return {stream.slot_, &clock}; }
  };
  using Operation = std::function<void(const Running&)>;
  /// `shared`: the operation waits for others, so it takes the GPU's mutex itself.
  enum class Kind { exclusive, shared };

  Stream(Gpu& gpu, std::size_t slot);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Blocks while as much is queued as CUDA holds.
  void push(Kind kind, Operation operation);
  /// All that is on it by now is done, and the host knows.
  void synchronize();
  [[nodiscard]] Gpu& gpu() const { return gpu_; }
  [[nodiscard]] std::size_t slot() const { return slot_; }

 private:
  struct Item {
    Kind kind;
    Clock host;
    Operation operation;
  };
  static constexpr std::size_t kDepth = 1024;
  void run();
  void execute(Item& item);

  Gpu& gpu_;
  const std::size_t slot_;
  Clock clock_;  // the thread's alone, but for synchronize, when there is nothing to do
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool busy_ = false, closing_ = false;
  std::thread thread_;
};

struct Event {
  Gpu& gpu;
  const bool timed;
  std::mutex mutex{};
  std::condition_variable changed{};
  std::uint64_t recorded = 0, completed = 0;
  std::map<std::uint64_t, Clock> clocks{};  // of recordings
  double milliseconds = 0;                  // of the last one
};

/// Everything, by the handles under which it was given out. Locks are taken in one order: NCCL's, a stream's or an event's, then a GPU's, then this one.
struct State {
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::mutex mutex;  // of all below
  std::vector<std::string> faults;
  std::map<const void*, std::unique_ptr<Stream>> streams;
  std::map<const void*, std::shared_ptr<Event>> events;  // work that is on a stream holds them too
  std::map<const void*, Stream*> blas;
  std::map<const void*, std::string> others;  // memory and communicators, for the list of leaks
  Nvml nvml{};                                // of the tests' thread alone

  void fault(const std::string& text);
};

/// Of the machine that lives. Throws std::logic_error if there is none.
State& state();
Gpu& current_gpu();
/// As CUDA names the slot of a GPU.
std::string bus_of(int gpu);
/// Null, and a fault, if it is not one that lives (and, for a stream, of the current GPU).
Stream* stream_of(cudaStream_t handle);
std::shared_ptr<Event> event_of(cudaEvent_t handle);

/// What a call on the GPU returns: success, as long as there was no fault.
cudaError_t sticky(Gpu& gpu);
/// Notes a fault, and is what the call returns.
cudaError_t refuse(const std::string& text, cudaError_t error = cudaErrorInvalidValue);
std::vector<Stream*> streams_of(const Gpu& gpu);

/// What NCCL's part of the fakes keeps, is asked by the machine.
namespace nccl {
void reset();
void fail(int gpu);
std::vector<std::string> leaks();
}  // namespace nccl

}  // namespace stepcast::fakes
