// A CUDA stream, what is on it, and its slices of the trace. The rank's host puts work in; whoever asks, host or watcher, sees what has ended.
// Test: tests/unit/cuda_device_test.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "real_backend/cuda/handles.hpp"
#include "real_backend/cuda/scratch.hpp"
#include "real_backend/driver.hpp"

namespace stepcast::real::cuda {

/// An instant of the device, and of the trace's clock: times are told from here on.
struct Anchor {
  Owner<cudaEvent_t> event;
  SimTime time{};
};

class Lane {
 public:
  using Task = std::function<void()>;

  /// All must outlive the lane.
  Lane(const Common& common, Timers& timers, const Anchor& anchor) : common_(common), timers_(timers), anchor_(anchor), stream_(make_stream()) {}

  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  Scratch& scratch() { return scratch_; }
  cublasHandle_t blas();
  /// Pinned memory that is copied from on this stream; free again when all that is on the stream by the next call of `mark` is done.
  std::byte* staging(std::int64_t bytes);

  /// Calls enqueue(), between two events.
  template <class Enqueue>
  void timed(const trace::Slice& slice, Enqueue enqueue) {
    Owner<cudaEvent_t> begin = record();
    enqueue();
    push({std::move(begin), record(), slice, {}});
  }
  /// What is on the stream by now. `task` is handed out by `ended` when that is done.
  std::uint64_t mark(Task task = {});
  [[nodiscard]] bool reached(std::uint64_t position);
  /// Everything is done, tasks too.
  [[nodiscard]] bool idle();
  /// Calls all tasks that have become due, on this thread.
  void run_due();
  std::vector<trace::Slice> take_slices();

 private:
  struct Entry {
    Owner<cudaEvent_t> begin, end;  // no begin: a mark
    trace::Slice slice;
    Task task;
  };
  struct Staged {
    PinnedBytes memory;
    std::int64_t bytes = 0;
    std::uint64_t position = 0;
  };
  Owner<cudaEvent_t> record();
  void push(Entry entry);
  void poll();
  void finish(Entry& entry);
  [[nodiscard]] SimTime since(const Owner<cudaEvent_t>& from, SimTime time, const Owner<cudaEvent_t>& event) const;

  Common common_;
  Timers& timers_;
  const Anchor& anchor_;
  Owner<cudaStream_t> stream_;
  Owner<cublasHandle_t> blas_;
  Scratch scratch_;
  std::vector<Staged> staged_;

  std::mutex mutex_;  // of all below
  std::uint64_t pushed_ = 0, done_ = 0;
  std::deque<Entry> pending_;
  std::deque<Task> due_;
  bool running_ = false;  // a task is
  Anchor last_;           // end of the last slice: the next one is told from here, because CUDA gives differences as floats
  std::vector<trace::Slice> slices_;
};

}  // namespace stepcast::real::cuda
