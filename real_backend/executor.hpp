// Walks a program on one rank of a device: the one executor of all drivers. Knows neither policies nor costs. docs/real_backend.md; test: tests/unit/train_test.cpp.
#pragma once

#include <cstdint>

#include "program/program.hpp"
#include "real_backend/device.hpp"
#include "real_backend/memory.hpp"
#include "real_backend/recorder.hpp"

namespace stepcast::real {

class Executor {
 public:
  /// `program` of native kernels, `rank` of all. All must outlive this object.
  Executor(const program::Program& program, Device& device, const Clock& clock, const MemoryLimits& limits, std::int32_t rank);

  void setup();
  void step(std::int32_t number);

  [[nodiscard]] DeviceMemory& memory() { return memory_; }
  [[nodiscard]] Recorder& recorder() { return recorder_; }

 private:
  void run(program::Range range);
  void call(const program::Op& op);
  void launch(const program::Op& op);
  void collective(const program::Op& op);
  void host_wait(const program::Op& op);
  void alloc(const program::Op& op);
  void free(const program::Op& op);
  [[nodiscard]] std::byte* place(const program::Part& part) const;

  const program::Program& program_;
  Device& device_;
  const Clock& clock_;
  std::int32_t rank_;
  DeviceMemory memory_;
  Recorder recorder_;
  Moment moment_;
};

}  // namespace stepcast::real
