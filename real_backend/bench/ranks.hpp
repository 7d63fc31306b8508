// Devices of the host driver for measurements, and memory for what runs on them. Test: tests/unit/host_bench_test.cpp.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "real_backend/host/device.hpp"

namespace stepcast::real::bench {

/// Memory for all buffers of a call, filled with a small number in every type, so that pages are there and no kernel meets a special value; ids differ from row to row.
class Buffers {
 public:
  explicit Buffers(const program::Call& call);
  [[nodiscard]] const std::vector<std::byte*>& parts() const { return parts_; }
  [[nodiscard]] std::int64_t bytes() const;

 private:
  std::map<std::uint32_t, std::vector<std::byte>> memory_;
  std::vector<std::byte*> parts_;
};

/// As many copies of a call's buffers as outgrow the caches that a processor has for itself: they take turns.
class Operands {
 public:
  explicit Operands(const program::Call& call);
  [[nodiscard]] const std::vector<std::byte*>& parts(std::size_t turn) const { return copies_[turn % copies_.size()].parts(); }

 private:
  std::vector<Buffers> copies_;
};

/// Ranks of one job, each with streams of its own.
class Ranks {
 public:
  Ranks(std::int32_t count, std::size_t events);
  [[nodiscard]] std::size_t size() const { return devices_.size(); }
  Device& operator[](std::size_t rank) { return *devices_[rank]; }
  void launch(std::size_t rank, const program::Call& call, const std::vector<std::byte*>& parts);
  /// All are idle. Throws std::runtime_error with the cause if one has failed.
  void synchronize();

 private:
  Failure failure_;
  Counter progress_{0};
  host::SharedGroups groups_;
  Clock clock_;
  Training training_{.vocab = 2};
  std::vector<std::unique_ptr<host::HostDevice>> devices_;
};

}  // namespace stepcast::real::bench
