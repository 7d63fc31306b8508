// Finds ids by the hash of their keys: open addressing over two flat arrays. The keys themselves live in the tables that the ids point into.
// Test: tests/unit/builder_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast::program {

class IdIndex {
 public:
  /// The id with this hash for which `same(id)` holds, or else `fresh`, which is then stored.
  template <typename Same>
  std::uint32_t find_or_add(std::size_t hash, std::uint32_t fresh, Same same) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    std::size_t place = hash & (slots_.size() - 1);
    for (; slots_[place].id != kEmpty; place = (place + 1) & (slots_.size() - 1)) {
      if (slots_[place].hash == hash && same(slots_[place].id)) return slots_[place].id;
    }
    slots_[place] = {hash, fresh};
    ++count_;
    return fresh;
  }

 private:
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};
  struct Slot {
    std::size_t hash = 0;
    std::uint32_t id = kEmpty;
  };

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 4 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id == kEmpty) continue;
      std::size_t place = slot.hash & (slots_.size() - 1);
      while (slots_[place].id != kEmpty) place = (place + 1) & (slots_.size() - 1);
      slots_[place] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace stepcast::program
