// Memory beside the allocator's pool that a lane's kernels use one after the other; grows to what the largest needs. Test: tests/unit/cuda_kernels_test.cpp.
#pragma once

#include <array>

#include "real_backend/cuda/handles.hpp"

namespace stepcast::real::cuda {

class Scratch {
 public:
  /// The `place`-th of a few, of `count` elements; what was there is lost. Growing waits for the device, as cudaFree does.
  template <class T>
  T* get(std::size_t place, std::int64_t count) {
    return reinterpret_cast<T*>(bytes(place, count * static_cast<std::int64_t>(sizeof(T))));
  }

 private:
  static constexpr std::size_t kPlaces = 6;
  struct Room {
    DeviceBytes memory;
    std::int64_t bytes = 0;
  };
  std::byte* bytes(std::size_t place, std::int64_t bytes) {
    Room& room = rooms_[place];
    if (room.bytes < bytes) {
      room = {};
      room = {make_device_bytes(bytes), bytes};
    }
    return room.memory.get();
  }
  std::array<Room, kPlaces> rooms_;
};

}  // namespace stepcast::real::cuda
