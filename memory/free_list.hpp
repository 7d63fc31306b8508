// Free blocks of one pool and stream, ordered by (size, address): short sorted runs, so that insertion moves little memory and a settled pattern allocates none.
// docs/caching_allocator.md, "Best fit"; test: tests/property/free_list_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/caching_allocator.hpp"

namespace stepcast::memory {

class FreeList {
 public:
  struct Entry {
    std::int64_t size = 0;
    std::uint64_t address = 0;
    BlockId block = kNoBlock;
  };
  struct Position {
    std::size_t run = 0, index = 0;
  };

  void insert(const Entry& entry);
  /// First entry at or after (size, address); `found` tells whether there is one. With address 0: the best fit, lowest address among equals.
  [[nodiscard]] Position lower_bound(std::int64_t size, std::uint64_t address) const;
  [[nodiscard]] bool found(Position at) const { return at.index < runs_[at.run].size(); }
  [[nodiscard]] const Entry& at(Position position) const { return runs_[position.run][position.index]; }
  void take(Position at);

  [[nodiscard]] std::size_t count() const { return count_; }
  /// All entries, smallest first.
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  using Run = std::vector<Entry>;
  static constexpr std::size_t kRunLimit = 96;  // 2.3 kB: a move of half a run costs about as much as one cache miss

  void halve(std::size_t run);

  std::vector<Run> runs_ = std::vector<Run>(1);  // ordered; only the last run may be empty, and only if it is the only one
  std::vector<Run> spare_;                       // emptied runs, kept for their memory
  std::size_t count_ = 0;
};

}  // namespace stepcast::memory
