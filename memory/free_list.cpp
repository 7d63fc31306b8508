#include "memory/free_list.hpp"

#include <utility>

namespace stepcast::memory {
namespace {

bool before(const FreeList::Entry& entry, std::int64_t size, std::uint64_t address) {
  return entry.size < size || (entry.size == size && entry.address < address);
}

/// Number of leading elements for which `is_before` holds, without data-dependent branches in the loop.
template <class T, class Before>
std::size_t partition_point(const std::vector<T>& sorted, const Before& is_before) {
  std::size_t first = 0;
  std::size_t length = sorted.size();
  while (length > 0) {
    const std::size_t half = (length + 1) / 2;
    first += is_before(sorted[first + half - 1]) ? half : 0;
    length -= half;
  }
  return first;
}

}  // namespace

FreeList::Position FreeList::lower_bound(std::int64_t size, std::uint64_t address) const {
  std::size_t run = 0;
  if (runs_.size() > 1) {
    run = partition_point(runs_, [&](const Run& r) { return before(r.back(), size, address); });
    if (run == runs_.size()) return {run - 1, runs_.back().size()};
  }
  return {run, partition_point(runs_[run], [&](const Entry& e) { return before(e, size, address); })};
}

void FreeList::insert(const Entry& entry) {
  const Position at = lower_bound(entry.size, entry.address);
  Run& run = runs_[at.run];
  run.insert(run.begin() + static_cast<std::ptrdiff_t>(at.index), entry);
  ++count_;
  if (run.size() >= kRunLimit) halve(at.run);
}

void FreeList::take(Position at) {
  Run& run = runs_[at.run];
  run.erase(run.begin() + static_cast<std::ptrdiff_t>(at.index));
  --count_;
  if (run.empty() && runs_.size() > 1) {
    spare_.push_back(std::move(run));
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(at.run));
  }
}

void FreeList::halve(std::size_t run) {
  Run upper;
  if (!spare_.empty()) {
    upper = std::move(spare_.back());
    spare_.pop_back();
  }
  upper.reserve(kRunLimit);
  const auto middle = runs_[run].begin() + static_cast<std::ptrdiff_t>(kRunLimit / 2);
  upper.assign(middle, runs_[run].end());
  runs_[run].erase(middle, runs_[run].end());
  runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(run + 1), std::move(upper));
}

std::vector<FreeList::Entry> FreeList::entries() const {
  std::vector<Entry> all;
  all.reserve(count_);
  for (const Run& run : runs_) all.insert(all.end(), run.begin(), run.end());
  return all;
}

}  // namespace stepcast::memory
