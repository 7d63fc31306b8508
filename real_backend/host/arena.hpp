// Address space of one rank's device memory: reserved at once, filled by the system as it is touched. Test: tests/unit/host_device_test.cpp.
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
  /// Throws std::runtime_error beyond the end.
  [[nodiscard]] std::byte* at(std::uint64_t address, std::int64_t bytes) const;

 private:
  std::byte* base_;
  std::int64_t bytes_;
};

}  // namespace stepcast::real::host
