// Free blocks of one pool and stream in the order of (size, address). A bitmap over bins of similar size leads near the best fit in constant time. A bin is an array
// with its smallest block last: training takes and returns blocks of few sizes like a stack, lowest address first, and touches the ends of the arrays only.
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
  const auto units = static_cast<std::size_t>(static_cast<std::uint64_t>(size) / kMinBlockBytes);
  if (units < kPerOctave) return units;
  const std::size_t octave = static_cast<std::size_t>(std::bit_width(units)) - 1;
  return (octave - kLog + 1) * kPerOctave + (units >> (octave - kLog)) % kPerOctave;
}

class FreeList {
 public:
  void insert(const Block& block, BlockId id);
  /// The block must be in the list and unchanged since its insertion.
  void erase(const Block& block, BlockId id);
  struct Fit {
    BlockId block = kNoBlock;
    std::uint32_t bin = 0, place = 0;  // where it stands until the list changes
  };
  /// Smallest block of at least `size` bytes, the lowest address among equals; kNoBlock if there is none.
  [[nodiscard]] Fit best_fit(std::int64_t size) const;
  void erase(const Fit& fit) { take_out(fit.bin, fit.place); }
  /// All blocks, smallest first.
  [[nodiscard]] std::vector<BlockId> sorted() const;

 private:
  static constexpr std::size_t kBins = size_bin(kMaxBytes) + 1, kWords = (kBins + 63) / 64;
  /// Size, address and id in one number, the former two in units of kMinBlockBytes: compares as (size, address).
  __extension__ using Key = unsigned __int128;
  using Bin = std::vector<Key>;  // falling

  static Key key_of(const Block& block, BlockId id);
  static std::size_t place_of(const Bin& bin, Key key);
  [[nodiscard]] const Bin& bin(std::size_t index) const { return bins_[slots_[index]]; }
  Bin& open(std::size_t index);
  void take_out(std::size_t index, std::size_t place);
  [[nodiscard]] std::size_t next_filled_bin(std::size_t from) const;

  std::array<std::uint16_t, kBins> slots_{};    // bin -> its array; bins that were never used share the first, which stays empty
  std::array<std::uint64_t, kWords> filled_{};  // bit b: bin b is not empty
  std::vector<Bin> bins_{1};
};

}  // namespace stepcast::memory
