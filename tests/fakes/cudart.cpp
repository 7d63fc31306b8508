// CUDA's runtime.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>

#include "tests/fakes/gpu.hpp"

using namespace stepcast::fakes;

namespace {

thread_local int current = 0;

using Running = Stream::Running;

double milliseconds_now() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

namespace stepcast::fakes {

cudaError_t sticky(Gpu& gpu) {
  const std::lock_guard lock(gpu.mutex);
  return gpu.broken ? cudaErrorIllegalAddress : cudaSuccess;
}

cudaError_t refuse(const std::string& text, cudaError_t error) {
  state().fault(text);
  return error;
}

std::vector<Stream*> streams_of(const Gpu& gpu) {
  const std::lock_guard lock(state().mutex);
  std::vector<Stream*> result;
  for (const auto& [handle, stream] : state().streams) {
    if (&stream->gpu() == &gpu) result.push_back(stream.get());
  }
  return result;
}

std::string bus_of(int gpu) { return "0000:" + std::to_string(10 + gpu) + ":00.0"; }

Gpu& current_gpu() { return *state().gpus.at(static_cast<std::size_t>(current)); }

Stream* stream_of(cudaStream_t handle) {
  Stream* found = nullptr;
  {
    const std::lock_guard lock(state().mutex);
    const auto stream = state().streams.find(handle);
    if (stream != state().streams.end()) found = stream->second.get();
  }
  if (found == nullptr) state().fault("a stream is used that is not there, or no more");
  else if (&found->gpu() != &current_gpu()) {
    state().fault("a stream of GPU " + std::to_string(found->gpu().number) + " is used while GPU " + std::to_string(current) + " is the current one");
    return nullptr;
  }
  return found;
}

std::shared_ptr<Event> event_of(cudaEvent_t handle) {
  {
    const std::lock_guard lock(state().mutex);
    const auto event = state().events.find(handle);
    if (event != state().events.end()) return event->second;
  }
  state().fault("an event is used that is not there, or no more");
  return nullptr;
}

}  // namespace stepcast::fakes

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    default: return "unknown error";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(state().gpus.size());
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= state().gpus.size()) return cudaErrorInvalidDevice;
  *properties = {};
  std::strcpy(properties->name, "fake GPU");
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= state().gpus.size()) return cudaErrorInvalidDevice;
  const std::string bus = bus_of(device);
  if (bus.size() >= static_cast<std::size_t>(length)) return cudaErrorInvalidValue;
  std::strcpy(id, bus.c_str());
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= state().gpus.size()) return cudaErrorInvalidDevice;
  current = device;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  Gpu& gpu = current_gpu();
  const std::lock_guard lock(gpu.mutex);
  *free = gpu.memory.free_bytes();
  *total = gpu.memory.bytes();
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  for (Stream* stream : streams_of(current_gpu())) stream->synchronize();
  return sticky(current_gpu());
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  if (flags != cudaStreamNonBlocking) return refuse("a stream that waits for the default one");
  Gpu& gpu = current_gpu();
  std::size_t slot = 0;
  {
    const std::lock_guard lock(gpu.mutex);
    while (slot < kSlots && gpu.slot_taken[slot]) ++slot;
    if (slot == kSlots) return refuse("more streams than the fakes can tell apart");
    gpu.slot_taken[slot] = true;
  }
  auto made = std::make_unique<Stream>(gpu, slot);
  *stream = reinterpret_cast<cudaStream_t>(made.get());
  {
    const std::lock_guard lock(state().mutex);
    state().streams[*stream] = std::move(made);
  }
  return sticky(gpu);
}

/// What is on it is done first.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  std::unique_ptr<Stream> stream;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().streams.find(handle);
    if (found != state().streams.end()) {
      stream = std::move(found->second);
      state().streams.erase(found);
    }
  }
  if (!stream) return refuse("a stream is destroyed that is not there, or no more", cudaErrorInvalidResourceHandle);
  Gpu& gpu = stream->gpu();
  const std::size_t slot = stream->slot();
  stream.reset();
  const std::lock_guard lock(gpu.mutex);
  gpu.slot_taken[slot] = false;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  stream->synchronize();
  return sticky(stream->gpu());
}

/// For the recording that is the latest now.
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned int) {
  Stream* stream = stream_of(handle);
  const std::shared_ptr<Event> event = event_of(event_handle);
  if (stream == nullptr || event == nullptr) return cudaErrorInvalidResourceHandle;
  std::uint64_t recording = 0;
  {
    const std::lock_guard lock(event->mutex);
    recording = event->recorded;
  }
  stream->push(Stream::Kind::shared, [event, recording](const Running& now) {
    std::unique_lock lock(event->mutex);
    event->changed.wait(lock, [&] { return event->completed >= recording; });
    if (recording > 0) now.clock.join(event->clocks.at(recording));
  });
  return sticky(stream->gpu());
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  std::shared_ptr<Event> made(new Event{current_gpu(), flags != cudaEventDisableTiming});
  *event = reinterpret_cast<cudaEvent_t>(made.get());
  const std::lock_guard lock(state().mutex);
  state().events[*event] = std::move(made);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const std::shared_ptr<Event> event = event_of(handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  const std::lock_guard lock(state().mutex);
  state().events.erase(handle);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t handle) {
  Stream* stream = stream_of(handle);
  const std::shared_ptr<Event> event = event_of(event_handle);
  if (stream == nullptr || event == nullptr) return cudaErrorInvalidResourceHandle;
  if (&event->gpu != &stream->gpu()) return refuse("an event of another GPU is recorded", cudaErrorInvalidResourceHandle);
  std::uint64_t recording = 0;
  {
    const std::lock_guard lock(event->mutex);
    recording = ++event->recorded;
  }
  stream->push(Stream::Kind::shared, [event, recording](const Running& now) {
    const std::lock_guard lock(event->mutex);
    event->completed = recording;
    event->clocks[recording] = now.clock;
    event->milliseconds = milliseconds_now();
    event->changed.notify_all();
  });
  return sticky(stream->gpu());
}

/// Once the host has seen it, the host knows.
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const std::shared_ptr<Event> event = event_of(handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t broken = sticky(event->gpu); broken != cudaSuccess) return broken;
  const std::lock_guard lock(event->mutex);
  if (event->completed < event->recorded) return cudaErrorNotReady;
  const std::lock_guard gpu_lock(event->gpu.mutex);
  if (event->recorded > 0) event->gpu.host.join(event->clocks.at(event->recorded));
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const std::shared_ptr<Event> from = event_of(start), to = event_of(end);
  if (from == nullptr || to == nullptr) return cudaErrorInvalidResourceHandle;
  const auto done = [](Event& event) {
    const std::lock_guard lock(event.mutex);
    return event.timed && event.recorded > 0 && event.completed == event.recorded;
  };
  if (!done(*from) || !done(*to)) return refuse("the time between events that have none, or are not done");
  *milliseconds = static_cast<float>(to->milliseconds - from->milliseconds);
  return cudaSuccess;
}

}  // extern "C"
