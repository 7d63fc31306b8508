// Treap operations on the blocks' own links. Rules: docs/caching_allocator.md, "Best fit". Test: tests/property/free_list_test.cpp.
#include "memory/free_list.hpp"

namespace stepcast::memory {
namespace {

/// Place in the order, copied out of the block: the links are written while it is compared.
struct Key {
  std::int64_t size;
  std::uint64_t address;
  explicit Key(const Block& block) : size(block.size), address(block.address) {}
  [[nodiscard]] bool before(const Block& other) const { return size != other.size ? size < other.size : address < other.address; }
};

/// Heap order of the treap: a fixed mixing of the id serves as its random draw, so that runs repeat exactly.
bool above(BlockId a, BlockId b) {
  constexpr std::uint32_t kGolden = 0x9e3779b9;  // 2^32 / golden ratio
  return a * kGolden > b * kGolden;
}

void append_sorted(const Blocks& blocks, BlockId root, std::vector<BlockId>& into) {
  if (root == kNoBlock) return;
  append_sorted(blocks, blocks[root].children[0], into);
  into.push_back(root);
  append_sorted(blocks, blocks[root].children[1], into);
}

}  // namespace

void FreeList::insert(Blocks& blocks, BlockId id) {
  const Key key(blocks[id]);
  const std::size_t bin = size_bin(key.size);
  filled_[bin / 64] |= std::uint64_t{1} << bin % 64;
  BlockId* link = &roots_[bin];
  while (*link != kNoBlock && above(*link, id)) link = blocks[*link].child(!key.before(blocks[*link]));
  // The subtree found there is split into what comes before and after the new block.
  BlockId rest = *link;
  *link = id;
  BlockId* left = blocks[id].child(false);
  BlockId* right = blocks[id].child(true);
  while (rest != kNoBlock) {
    if (key.before(blocks[rest])) {
      *right = rest;
      right = blocks[rest].child(false);
      rest = *right;
    } else {
      *left = rest;
      left = blocks[rest].child(true);
      rest = *left;
    }
  }
  *left = *right = kNoBlock;
}

void FreeList::erase(Blocks& blocks, BlockId id) {
  const Key key(blocks[id]);
  const std::size_t bin = size_bin(key.size);
  BlockId* link = &roots_[bin];
  while (*link != id) link = blocks[*link].child(!key.before(blocks[*link]));
  BlockId left = blocks[id].children[0];
  BlockId right = blocks[id].children[1];
  while (left != kNoBlock && right != kNoBlock) {
    if (above(left, right)) {
      *link = left;
      link = blocks[left].child(true);
      left = *link;
    } else {
      *link = right;
      link = blocks[right].child(false);
      right = *link;
    }
  }
  *link = left != kNoBlock ? left : right;
  if (roots_[bin] == kNoBlock) filled_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
}

BlockId FreeList::best_fit(const Blocks& blocks, std::int64_t size) const {
  const std::size_t bin = size <= kMaxBytes ? size_bin(size) : kBins;
  BlockId best = kNoBlock;
  for (BlockId id = bin < kBins ? roots_[bin] : kNoBlock; id != kNoBlock;) {
    const bool fits = blocks[id].size >= size;
    if (fits) best = id;
    id = blocks[id].children[fits ? 0 : 1];
  }
  if (best != kNoBlock) return best;
  const std::size_t next = next_filled_bin(bin + 1);
  if (next >= kBins) return kNoBlock;
  for (BlockId id = roots_[next]; id != kNoBlock; id = blocks[id].children[0]) best = id;
  return best;
}

std::size_t FreeList::next_filled_bin(std::size_t from) const {
  if (from >= kBins) return kBins;
  std::size_t word = from / 64;
  std::uint64_t bits = filled_[word] & (~std::uint64_t{0} << from % 64);
  while (bits == 0) {
    if (++word == kWords) return kBins;
    bits = filled_[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

std::vector<BlockId> FreeList::sorted(const Blocks& blocks) const {
  std::vector<BlockId> all;
  for (const BlockId root : roots_) append_sorted(blocks, root, all);
  return all;
}

}  // namespace stepcast::memory
