// Memory of a fake GPU: addresses that the host can't touch, the memory behind them, and who wrote and read each place last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/fakes/clock.hpp"

namespace stepcast::fakes {

struct Fault final : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Who touches memory: a stream by its slot, with what it knows.
struct Toucher {
  std::size_t slot = 0;
  const Clock* clock = nullptr;
};

class Memory {
 public:
  explicit Memory(std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Null where there is not enough left. Addresses are never used again, so that nothing of the past is mistaken.
  void* take(std::size_t bytes);
  /// False if nothing begins there.
  bool give(void* place);
  [[nodiscard]] bool contains(const void* place) const;
  [[nodiscard]] std::size_t free_bytes() const { return bytes_ - taken_bytes_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  /// Where it really is. Throws Fault.
  std::byte* touch(const void* place, std::size_t bytes, bool write, const Toucher& who);

 private:
  static constexpr std::size_t kPage = 4096, kGranule = 2, kReaders = 3;
  /// Of two bytes.
  struct Shadow {
    Epoch written;
    Epoch read[kReaders];
  };
  void check(Shadow& shadow, bool write, const Toucher& who, const void* place) const;
  static void note_read(Shadow& shadow, const Toucher& who);
  static std::byte* reserve(std::size_t bytes, int protection, int file);

  std::size_t bytes_, next_ = 0, taken_bytes_ = 0;
  int file_;
  std::byte *shown_, *real_;
  Shadow* shadows_;
  std::map<std::size_t, std::size_t> taken_;  // by offset
};

}  // namespace stepcast::fakes
