// See group.hpp.
#include "real_backend/host/group.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "real_backend/host/types.hpp"

namespace stepcast::real::host {

SharedGroup::SharedGroup(Failure& failure, std::int32_t size) : failure_(failure), size_(static_cast<std::uint32_t>(size)), posts_(size_) {
  failure_.watch(arrived_);
  failure_.watch(left_);
}

SharedGroup::~SharedGroup() {
  failure_.forget(arrived_);
  failure_.forget(left_);
}

bool SharedGroup::everybody(std::uint32_t count, std::uint32_t number) const { return count - (number + 1) * size_ < (std::uint32_t{1} << 31); }

void SharedGroup::run(const program::CollectiveEntry& entry, std::uint32_t number, std::int32_t member, std::byte* in, std::byte* out,
                      const std::function<void()>& begun) {
  meet(entry, number, member, in, out);
  begun();
  work(entry, member);
  leave(number);
}

void SharedGroup::meet(const program::CollectiveEntry& entry, std::uint32_t number, std::int32_t member, std::byte* in, std::byte* out) {
  posts_[static_cast<std::size_t>(member)] = {&entry, in, out};
  advance(arrived_);
  failure_.await(arrived_, [&](std::uint32_t count) { return everybody(count, number); });
  for (const Post& post : posts_) {
    if (post.entry->shape != entry.shape)
      throw std::runtime_error("another rank of the group does \"" + post.entry->label + "\" where this one does \"" + entry.label + "\"");
  }
}

void SharedGroup::leave(std::uint32_t number) {
  advance(left_);
  failure_.await(left_, [&](std::uint32_t count) { return everybody(count, number); });
}

void SharedGroup::work(const program::CollectiveEntry& entry, std::int32_t member) const {
  if (entry.shape.kind == hw::CollectiveKind::all_gather) return all_gather(entry.shape.bytes / size_, member);
  with_type(entry.shape.dtype, [&]<class T>(Type<T>) { reduce<T>(entry, member); });
}

/// Each copies what the others brought; its own part may be in its place already.
void SharedGroup::all_gather(std::int64_t bytes, std::int32_t member) const {
  std::byte* out = posts_[static_cast<std::size_t>(member)].out;
  for (std::size_t rank = 0; rank < posts_.size(); ++rank) {
    std::byte* place = out + static_cast<std::int64_t>(rank) * bytes;
    if (posts_[rank].in != place) std::memcpy(place, posts_[rank].in, static_cast<std::size_t>(bytes));
  }
}

/// Each member sums one part over all ranks. A reduce-scatter leaves it with its owner, an all-reduce with all: parts are then cut from the tensor as evenly as may be.
template <class T>
void SharedGroup::reduce(const program::CollectiveEntry& entry, std::int32_t member) const {
  const std::int64_t elements = entry.shape.bytes / static_cast<std::int64_t>(sizeof(T)), size = size_;
  const std::int64_t begin = elements * member / size, end = elements * (member + 1) / size;
  const bool scatter = entry.shape.kind == hw::CollectiveKind::reduce_scatter;
  const auto share = share_of<T>(entry, posts_.size());
  T* own = reinterpret_cast<T*>(posts_[static_cast<std::size_t>(member)].out);
  for (std::int64_t i = begin; i < end; ++i) {
    const T result = sum_in_order<T>(posts_.size(), share, [&](std::size_t rank) { return reinterpret_cast<const T*>(posts_[rank].in)[i]; });
    if (scatter) own[i - begin] = result;
    else
      for (const Post& post : posts_) reinterpret_cast<T*>(post.out)[i] = result;
  }
}

std::pair<Group*, std::int32_t> SharedGroups::of(program::Communicator communicator, std::int32_t size, std::int32_t rank) {
  const GroupPlace place = place_in_group(communicator, size, ranks_, rank);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<SharedGroup>& group = groups_[{communicator, size, place.color}];
  if (!group) group = std::make_unique<SharedGroup>(failure_, size);
  return {group.get(), place.member};
}

}  // namespace stepcast::real::host
