// CUDA's runtime: memory and copies.
#include <cuda_runtime_api.h>

#include <cstring>

#include "tests/fakes/gpu.hpp"

using namespace stepcast::fakes;

namespace {

using Running = Stream::Running;

void note(const void* place, const std::string& what) {
  const std::lock_guard lock(state().mutex);
  state().others[place] = what;
}

void forget(const void* place) {
  const std::lock_guard lock(state().mutex);
  state().others.erase(place);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t size) {
  Gpu& gpu = current_gpu();
  {
    const std::lock_guard lock(gpu.mutex);
    *memory = gpu.memory.take(size);
  }
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  note(*memory, std::to_string(size) + " bytes of device memory");
  return sticky(gpu);
}

/// Waits for all that is on the GPU, as CUDA's does.
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  for (const auto& gpu : state().gpus) {
    if (!gpu->memory.contains(memory)) continue;
    for (Stream* stream : streams_of(*gpu)) stream->synchronize();
    {
      const std::lock_guard lock(gpu->mutex);
      if (!gpu->memory.give(memory)) return refuse("device memory is given back where none was taken");
    }
    forget(memory);
    return sticky(*gpu);
  }
  return refuse("memory is given back that is no device's");
}

cudaError_t cudaMallocHost(void** memory, size_t size) {
  auto* made = new std::byte[size];
  *memory = made;
  Gpu& gpu = current_gpu();
  {
    const std::lock_guard lock(gpu.mutex);
    gpu.pinned[made] = size;
  }
  note(made, std::to_string(size) + " bytes of pinned memory");
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  for (const auto& gpu : state().gpus) {
    {
      const std::lock_guard lock(gpu->mutex);
      if (gpu->pinned.erase(static_cast<std::byte*>(memory)) == 0) continue;
    }
    for (Stream* stream : streams_of(*gpu)) stream->synchronize();
    forget(memory);
    delete[] static_cast<std::byte*>(memory);
    return cudaSuccess;
  }
  return refuse("pinned memory is given back where none was taken");
}

/// Ordinary host memory is copied from at once, and copied to before the call returns; pinned memory when the copy's turn comes.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, enum cudaMemcpyKind kind, cudaStream_t handle) {
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  Gpu& gpu = stream->gpu();
  const bool to_device = gpu.memory.contains(to), from_device = gpu.memory.contains(from);
  const auto asked = to_device     ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                     : from_device ? cudaMemcpyDeviceToHost
                                   : cudaMemcpyHostToHost;
  if (asked != kind || asked == cudaMemcpyHostToHost) return refuse("a copy says another direction than its addresses");
  bool pinned = false;
  {
    const std::lock_guard lock(gpu.mutex);
    const auto* host = static_cast<const std::byte*>(to_device ? from : to);
    const auto above = gpu.pinned.upper_bound(const_cast<std::byte*>(host));
    pinned = above != gpu.pinned.begin() && host < std::prev(above)->first + std::prev(above)->second;
  }
  std::vector<std::byte> kept;
  if (!from_device && !pinned) kept.assign(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + count);
  const bool take_kept = !kept.empty();
  stream->push(Stream::Kind::exclusive, [=, kept = std::move(kept)](const Running& now) {
    const void* source = from_device ? now.gpu.memory.touch(from, count, false, now.toucher()) : take_kept ? kept.data() : from;
    std::memmove(to_device ? now.gpu.memory.touch(to, count, true, now.toucher()) : to, source, count);
  });
  if (!to_device && !pinned) stream->synchronize();
  return sticky(gpu);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t count, cudaStream_t handle) {
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (count > 0)
    stream->push(Stream::Kind::exclusive, [=](const Running& now) { std::memset(now.gpu.memory.touch(memory, count, true, now.toucher()), value, count); });
  return sticky(stream->gpu());
}

}  // extern "C"
