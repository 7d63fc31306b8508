// Free blocks of one pool and stream in the order of (size, address). Bins of similar size with a bitmap lead near the best fit in constant time; in each bin
// the blocks form a treap through their own links, so that nothing is allocated and a crowd of equal sizes costs a logarithm.
// docs/caching_allocator.md, "Best fit"; test: tests/property/free_list_test.cpp.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/blocks.hpp"
#include "memory/sizes.hpp"

namespace stepcast::memory {

/// Eight bins per power of two of the size in units of 512 B: sizes in a bin differ by less than an eighth, below 8 KiB they are equal.
constexpr std::size_t size_bin(std::int64_t size) {
  constexpr std::size_t kLog = 3, kPerOctave = 1 << kLog;
  const auto units = static_cast<std::size_t>(size / kMinBlockBytes);
  if (units < kPerOctave) return units;
  const std::size_t octave = static_cast<std::size_t>(std::bit_width(units)) - 1;
  return (octave - kLog + 1) * kPerOctave + (units >> (octave - kLog)) % kPerOctave;
}

class FreeList {
 public:
  FreeList() { roots_.fill(kNoBlock); }

  void insert(Blocks& blocks, BlockId id);
  /// The block must be in the list and unchanged since its insertion.
  void erase(Blocks& blocks, BlockId id);
  /// Smallest block of at least `size` bytes, the lowest address among equals; kNoBlock if there is none.
  [[nodiscard]] BlockId best_fit(const Blocks& blocks, std::int64_t size) const;
  /// All blocks, smallest first.
  [[nodiscard]] std::vector<BlockId> sorted(const Blocks& blocks) const;

 private:
  static constexpr std::size_t kBins = size_bin(kMaxBytes) + 1, kWords = (kBins + 63) / 64;

  [[nodiscard]] std::size_t next_filled_bin(std::size_t from) const;

  std::array<BlockId, kBins> roots_;
  std::array<std::uint64_t, kWords> filled_{};  // bit b: bin b is not empty
};

}  // namespace stepcast::memory
