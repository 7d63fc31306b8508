#include "memory/free_list.hpp"

namespace stepcast::memory {
namespace {

bool before(const Block& a, const Block& b) { return a.size != b.size ? a.size < b.size : a.address < b.address; }

/// Heap order of the treap: a fixed mixing of the id serves as its random draw, so that runs repeat exactly.
bool above(BlockId a, BlockId b) {
  constexpr std::uint32_t kGolden = 0x9e3779b9;  // 2^32 / golden ratio
  return a * kGolden > b * kGolden;
}

void append_sorted(const Blocks& blocks, BlockId root, std::vector<BlockId>& into) {
  if (root == kNoBlock) return;
  append_sorted(blocks, blocks[root].left, into);
  into.push_back(root);
  append_sorted(blocks, blocks[root].right, into);
}

}  // namespace

void FreeList::insert(Blocks& blocks, BlockId id) {
  const std::size_t bin = size_bin(blocks[id].size);
  filled_[bin / 64] |= std::uint64_t{1} << bin % 64;
  BlockId* link = &roots_[bin];
  while (*link != kNoBlock && above(*link, id)) link = before(blocks[id], blocks[*link]) ? &blocks[*link].left : &blocks[*link].right;
  // The subtree found there is split into what comes before and after the new block.
  BlockId rest = *link;
  *link = id;
  BlockId* left = &blocks[id].left;
  BlockId* right = &blocks[id].right;
  while (rest != kNoBlock) {
    const bool goes_left = before(blocks[rest], blocks[id]);
    BlockId*& side = goes_left ? left : right;
    *side = rest;
    side = goes_left ? &blocks[rest].right : &blocks[rest].left;
    rest = *side;
  }
  *left = *right = kNoBlock;
}

void FreeList::erase(Blocks& blocks, BlockId id) {
  const std::size_t bin = size_bin(blocks[id].size);
  BlockId* link = &roots_[bin];
  while (*link != id) link = before(blocks[id], blocks[*link]) ? &blocks[*link].left : &blocks[*link].right;
  BlockId left = blocks[id].left;
  BlockId right = blocks[id].right;
  while (left != kNoBlock && right != kNoBlock) {
    if (above(left, right)) {
      *link = left;
      link = &blocks[left].right;
      left = *link;
    } else {
      *link = right;
      link = &blocks[right].left;
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
    id = fits ? blocks[id].left : blocks[id].right;
  }
  if (best != kNoBlock) return best;
  const std::size_t next = next_filled_bin(bin + 1);
  if (next >= kBins) return kNoBlock;
  for (BlockId id = roots_[next]; id != kNoBlock; id = blocks[id].left) best = id;
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
