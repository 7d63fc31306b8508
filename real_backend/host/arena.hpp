// Address space of one rank's device memory, reserved at once; the pages behind a part of it are taken from the system and given back when the allocator says so, as a GPU's are.
// Test: tests/unit/host_device_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepcast::real::host {

class Arena {
 public:
  /// Throws std::runtime_error if the system refuses.
  explicit Arena(std::int64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// The memory stays for as long as the process does.
  void leave() { base_ = nullptr; }
  /// Takes the pages of [address, address + bytes) from the system, so that no kernel waits for one. Throws OutOfMemory where there are none, std::runtime_error beyond the end.
  void populate(std::uint64_t address, std::int64_t bytes) const;
  /// Gives back the pages that lie in it as a whole.
  void release(std::uint64_t address, std::int64_t bytes) const;
  /// Throws std::runtime_error beyond the end.
  [[nodiscard]] std::byte* at(std::uint64_t address, std::int64_t bytes) const;

 private:
  std::byte* base_;
  std::int64_t bytes_;
};

}  // namespace stepcast::real::host
