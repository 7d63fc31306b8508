// See device.hpp.
#include "real_backend/cuda/device.hpp"

#include <chrono>
#include <exception>
#include <iterator>
#include <string>
#include <utility>

#include "real_backend/cuda/kernels/run.hpp"

namespace stepcast::real::cuda {
namespace {

constexpr std::chrono::microseconds kLook{50};  // between two looks of the watcher

int chosen(int gpu) {
  check(cudaSetDevice(gpu), "cudaSetDevice");
  return gpu;
}

}  // namespace

CudaDevice::CudaDevice(const Common& common, const World& world, int gpu, const program::Program& program)
    : common_(common), world_(world), gpu_(chosen(gpu)), exceptions_(std::uncaught_exceptions()), copies_(make_stream()) {
  anchor_.event = timers_.take();
  check(cudaEventRecord(anchor_.event.get(), copies_.get()), "cudaEventRecord");
  check(cudaStreamSynchronize(copies_.get()), "cudaStreamSynchronize");
  anchor_.time = common_.clock.now();
  for (std::size_t i = 0; i < program.events.size(); ++i) events_.push_back(make_event(false));
  for (auto& lane : lanes_) lane = std::make_unique<Lane>(common_, timers_, anchor_);
  communicators_ = std::make_unique<Communicators>(common_.failure, world_, program);
  watcher_ = std::thread([this] { watch(); });
}

/// A rank that fails by itself ends its own collectives; nobody would come to them.
CudaDevice::~CudaDevice() {
  closing_.store(true, std::memory_order_release);
  watcher_.join();
  if (common_.failure.raised() || std::uncaught_exceptions() > exceptions_) communicators_->abort();
  cudaDeviceSynchronize();  // nothing may be on a stream when its memory goes
}

void CudaDevice::launch(program::Stream stream, KernelTask task) {
  Lane& own = lane(stream);
  own.timed(task.slice, [&] { kernels::run(*task.call, task.parts, {common_.training, task.moment, world_.rank}, own); });
}

void CudaDevice::collective(program::Stream stream, CollectiveTask task) {
  Lane& own = lane(stream);
  own.timed(task.slice, [&] { communicators_->enqueue(own.stream(), task); });
}

void CudaDevice::record(std::uint32_t event, program::Stream stream) { check(cudaEventRecord(events_[event].get(), lane(stream).stream()), "cudaEventRecord"); }

void CudaDevice::wait(program::Stream stream, std::uint32_t event) {
  check(cudaStreamWaitEvent(lane(stream).stream(), events_[event].get(), 0), "cudaStreamWaitEvent");
}

/// Asks again and again, as cudaEventSynchronize does, but lets go when the job has failed.
template <class Done>
void CudaDevice::await(Done done) const {
  for (;;) {
    if (common_.failure.raised()) throw Stopped();
    if (done()) return;
    std::this_thread::yield();
  }
}

void CudaDevice::host_wait(std::uint32_t event) {
  await([&] {
    const cudaError_t result = cudaEventQuery(events_[event].get());
    if (result != cudaErrorNotReady) check(result, "cudaEventQuery");
    return result == cudaSuccess;
  });
}

void CudaDevice::synchronize() {
  for (const auto& lane : lanes_) await([&] { return lane->idle(); });
}

bool CudaDevice::reached(program::Stream stream, std::uint64_t position) const { return lane(stream).reached(position); }

void CudaDevice::copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  check(cudaMemcpyAsync(to, from, bytes, kind, copies_.get()), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(copies_.get()), "cudaStreamSynchronize");
}

std::vector<trace::Slice> CudaDevice::take_slices() {
  std::vector<trace::Slice> result;
  for (const auto& lane : lanes_) {
    std::vector<trace::Slice> slices = lane->take_slices();
    result.insert(result.end(), std::make_move_iterator(slices.begin()), std::make_move_iterator(slices.end()));
  }
  return result;
}

/// Sees what has ended, calls the tasks behind it, asks NCCL for errors; once the job has failed, ends this rank's collectives, so that its streams can run empty.
void CudaDevice::watch() {
  try {
    chosen(gpu_);
    while (!closing_.load(std::memory_order_acquire) && !common_.failure.raised()) {
      for (const auto& lane : lanes_) lane->run_due();
      communicators_->poll();
      std::this_thread::sleep_for(kLook);
    }
  } catch (const Stopped&) {  // its cause is told elsewhere
  } catch (const std::exception& error) { common_.failure.raise("rank " + std::to_string(world_.rank) + ": " + error.what()); }
  if (common_.failure.raised()) communicators_->abort();
}

}  // namespace stepcast::real::cuda
