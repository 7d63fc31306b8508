// A kind of device, as a training job or a measurement asks for it: makes the device of each rank. Drivers: host/driver.hpp, cuda/driver.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "real_backend/device.hpp"
#include "real_backend/failure.hpp"
#include "real_backend/training.hpp"

namespace stepcast::real {

/// What all ranks of a job have in common; outlives their devices. `progress` counts the kernels and collectives that have ended on any of them.
struct Common {
  Failure& failure;
  Counter& progress;
  const Clock& clock;
  const Training& training;
};

class Driver {
 public:
  Driver() = default;
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  /// Called on the thread of the rank's host. `program`: what it is to run; outlives the device. `pool_bytes`: most that its allocator has at a time.
  virtual std::unique_ptr<Device> open(const program::Program& program, std::int32_t rank, std::int64_t pool_bytes) = 0;
};

/// Makes the driver of a job of training.ranks ranks.
using MakeDriver = std::function<std::unique_ptr<Driver>(const Common& common)>;

}  // namespace stepcast::real
