// Search and moves in the bins. Rules: docs/caching_allocator.md, "Best fit". Test: tests/property/free_list_test.cpp.
#include "memory/free_list.hpp"

#include <algorithm>
#include <iterator>

namespace stepcast::memory {
namespace {

constexpr unsigned kAddressBits = 54, kIdBits = 32;
static_assert((kMaxBytes / kMinBlockBytes) >> (128 - kAddressBits - kIdBits) == 0, "the largest size fits above address and id");

}  // namespace

FreeList::Key FreeList::key_of(const Block& block, BlockId id) {
  const Key size = static_cast<std::uint64_t>(block.size) / kMinBlockBytes, address = block.address / kMinBlockBytes;
  return size << (kAddressBits + kIdBits) | address << kIdBits | id;
}

/// How many keys of the bin are at least `key`: it comes behind them. Looks at the end of the array first.
std::size_t FreeList::place_of(const Bin& bin, Key key) {
  constexpr std::size_t kNear = 8;
  std::size_t place = bin.size();
  for (const std::size_t stop = place - std::min(place, kNear); place > stop; --place)
    if (bin[place - 1] >= key) return place;
  const auto at_least = [key](Key other) { return other >= key; };
  return static_cast<std::size_t>(std::partition_point(bin.begin(), bin.begin() + static_cast<std::ptrdiff_t>(place), at_least) - bin.begin());
}

FreeList::Bin& FreeList::open(std::size_t index) {
  constexpr std::size_t kFirstRoom = 8;
  if (slots_[index] == 0) {
    slots_[index] = static_cast<std::uint16_t>(bins_.size());
    bins_.emplace_back().reserve(kFirstRoom);
  }
  return bins_[slots_[index]];
}

void FreeList::insert(const Block& block, BlockId id) {
  const Key key = key_of(block, id);
  const std::size_t index = size_bin(block.size);
  filled_[index / 64] |= std::uint64_t{1} << index % 64;
  Bin& bin = open(index);
  if (bin.empty() || bin.back() >= key) bin.push_back(key);
  else bin.insert(bin.begin() + static_cast<std::ptrdiff_t>(place_of(bin, key)), key);
}

void FreeList::erase(const Block& block, BlockId id) {
  const Key key = key_of(block, id);
  const std::size_t index = size_bin(block.size);
  take_out(index, place_of(bin(index), key) - 1);
}

void FreeList::take_out(std::size_t index, std::size_t place) {
  Bin& bin = bins_[slots_[index]];
  if (place + 1 == bin.size()) bin.pop_back();
  else bin.erase(bin.begin() + static_cast<std::ptrdiff_t>(place));
  if (bin.empty()) filled_[index / 64] &= ~(std::uint64_t{1} << index % 64);
}

FreeList::Fit FreeList::best_fit(std::int64_t size) const {
  if (size > kMaxBytes) return {};
  const std::int64_t rounded = round_up(size, kMinBlockBytes);
  const std::size_t index = size_bin(rounded);
  const Bin& near = bin(index);
  const Key key = key_of({.size = rounded}, 0);
  const auto fit = [](const Bin& in, std::size_t i, std::size_t place) {
    return Fit{static_cast<BlockId>(in[place]), static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(place)};
  };
  if (!near.empty() && near.back() >= key) return fit(near, index, near.size() - 1);
  if (!near.empty() && near.front() >= key) return fit(near, index, place_of(near, key) - 1);
  const std::size_t next = next_filled_bin(index + 1);
  return next < kBins ? fit(bin(next), next, bin(next).size() - 1) : Fit{};
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

std::vector<BlockId> FreeList::sorted() const {
  std::vector<BlockId> all;
  for (std::size_t index = next_filled_bin(0); index < kBins; index = next_filled_bin(index + 1))
    std::transform(bin(index).rbegin(), bin(index).rend(), std::back_inserter(all), [](Key key) { return static_cast<BlockId>(key); });
  return all;
}

}  // namespace stepcast::memory
