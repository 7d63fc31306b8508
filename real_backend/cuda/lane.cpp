// See lane.hpp.
#include "real_backend/cuda/lane.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepcast::real::cuda {

cublasHandle_t Lane::blas() {
  if (!blas_) blas_ = make_blas(stream());
  return blas_.get();
}

/// A copy ends with the slice it is in, which is the next to be pushed.
std::byte* Lane::staging(std::int64_t bytes) {
  const std::uint64_t position = pushed_ + 1;
  for (Staged& staged : staged_) {
    if (staged.bytes < bytes || !reached(staged.position)) continue;
    staged.position = position;
    return staged.memory.get();
  }
  staged_.push_back({make_pinned_bytes(bytes), bytes, position});
  return staged_.back().memory.get();
}

Owner<cudaEvent_t> Lane::record() {
  Owner<cudaEvent_t> event = timers_.take();
  check(cudaEventRecord(event.get(), stream()), "cudaEventRecord");
  return event;
}

void Lane::push(Entry entry) {
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(entry));
  ++pushed_;
}

std::uint64_t Lane::mark(Task task) {
  push({nullptr, record(), {}, std::move(task)});
  return pushed_;  // the host alone changes it
}

void Lane::poll() {
  while (!pending_.empty()) {
    const cudaError_t result = cudaEventQuery(pending_.front().end.get());
    if (result == cudaErrorNotReady) return;
    check(result, "cudaEventQuery");
    finish(pending_.front());
    pending_.pop_front();
    ++done_;
  }
}

SimTime Lane::since(const Owner<cudaEvent_t>& from, SimTime time, const Owner<cudaEvent_t>& event) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, from.get(), event.get()), "cudaEventElapsedTime");
  return time + SimTime(std::llround(static_cast<double>(milliseconds) * 1e9));
}

void Lane::finish(Entry& entry) {
  if (entry.task) due_.push_back(std::move(entry.task));
  if (!entry.begin) return timers_.give(std::move(entry.end));
  const Anchor& from = last_.event ? last_ : anchor_;
  entry.slice.begin = since(from.event, from.time, entry.begin);
  entry.slice.end = since(entry.begin, entry.slice.begin, entry.end);
  slices_.push_back(entry.slice);
  common_.progress.fetch_add(1, std::memory_order_relaxed);
  timers_.give(std::move(entry.begin));
  if (last_.event) timers_.give(std::move(last_.event));
  last_ = {std::move(entry.end), entry.slice.end};
}

bool Lane::reached(std::uint64_t position) {
  const std::lock_guard lock(mutex_);
  poll();
  return done_ >= position;
}

bool Lane::idle() {
  const std::lock_guard lock(mutex_);
  poll();
  return pending_.empty() && due_.empty() && !running_;
}

void Lane::run_due() {
  std::unique_lock lock(mutex_);
  poll();
  while (!due_.empty()) {
    const Task task = std::move(due_.front());
    due_.pop_front();
    running_ = true;
    lock.unlock();
    task();
    lock.lock();
    running_ = false;
  }
}

std::vector<trace::Slice> Lane::take_slices() {
  const std::lock_guard lock(mutex_);
  return std::exchange(slices_, {});
}

}  // namespace stepcast::real::cuda
