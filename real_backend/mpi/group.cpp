// See group.hpp.
#include "real_backend/mpi/group.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

#include "real_backend/host/types.hpp"

namespace stepcast::real::mpi {
namespace {

constexpr int kEager = 200;  // looks before a wait sleeps between them: others need the processor, too
constexpr std::chrono::microseconds kLook{20};

/// Of elements that MPI only carries.
MPI_Datatype carried(std::int64_t element_bytes) {
  switch (element_bytes) {
    case 8: return MPI_UINT64_T;
    case 4: return MPI_UINT32_T;
    case 2: return MPI_UINT16_T;
    default: return MPI_BYTE;
  }
}

int count_of(std::int64_t elements) {
  if (elements > std::numeric_limits<int>::max())
    throw std::runtime_error("MPI takes 2147483647 elements at a time, and there are " + std::to_string(elements));
  return static_cast<int>(elements);
}

Post post_of(const program::CollectiveEntry& entry) {
  Post post{entry.shape.bytes, static_cast<std::int32_t>(entry.shape.kind), static_cast<std::int32_t>(entry.shape.dtype), entry.shape.group.ranks(),
            entry.average ? 1 : 0};
  entry.label.copy(post.label, sizeof post.label - 1);
  return post;
}

bool agree(const Post& a, const Post& b) {
  return a.bytes == b.bytes && a.kind == b.kind && a.dtype == b.dtype && a.ranks == b.ranks && a.average == b.average;
}

}  // namespace

MpiGroup::MpiGroup(const Failure& failure, MPI_Comm communicator) : failure_(failure), communicator_(communicator) {
  MPI_Comm_size(communicator_, &size_);
  memory_->posts.resize(static_cast<std::size_t>(size_));
}

/// After a failure MPI may still be at work on it.
MpiGroup::~MpiGroup() {
  if (failure_.raised()) static_cast<void>(memory_.release());
  else MPI_Comm_free(&communicator_);
}

void MpiGroup::wait(MPI_Request request) const {
  for (int look = 0;; ++look) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    if (failure_.raised()) throw Stopped();
    if (look < kEager) std::this_thread::yield();
    else std::this_thread::sleep_for(kLook);
  }
}

void MpiGroup::run(const program::CollectiveEntry& entry, std::uint32_t, std::int32_t member, std::byte* in, std::byte* out,
                   const std::function<void()>& begun) {
  meet(entry);
  begun();
  if (entry.shape.kind == hw::CollectiveKind::all_gather) return all_gather(entry, member, in, out);
  host::with_type(entry.shape.dtype, [&]<class T>(Type<T>) { reduce<T>(entry, member, in, out); });
}

void MpiGroup::meet(const program::CollectiveEntry& entry) {
  Memory& m = *memory_;
  m.own = post_of(entry);
  constexpr int kBytes = sizeof(Post);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgather(&m.own, kBytes, MPI_BYTE, m.posts.data(), kBytes, MPI_BYTE, communicator_, &request);
  wait(request);
  const auto other = std::find_if(m.posts.begin(), m.posts.end(), [&](const Post& post) { return !agree(post, m.own); });
  if (other != m.posts.end())
    throw std::runtime_error(std::string("another rank of the group does \"") + other->label + "\" where this one does \"" + m.own.label + "\"");
}

/// A rank's own part may be in its place already.
void MpiGroup::all_gather(const program::CollectiveEntry& entry, std::int32_t member, std::byte* in, std::byte* out) {
  const std::int64_t element = hw::bytes_per_element(entry.shape.dtype), bytes = entry.shape.bytes / size_;
  const int count = count_of(bytes / element);
  const bool in_place = in == out + member * bytes;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgather(in_place ? MPI_IN_PLACE : in, count, carried(element), out, count, carried(element), communicator_, &request);
  wait(request);
}

/// Each rank gets its part from all of them and sums it; of an all-reduce all then get all parts. Parts are cut as those of threads are.
template <class T>
void MpiGroup::reduce(const program::CollectiveEntry& entry, std::int32_t member, std::byte* in, std::byte* out) {
  Memory& m = *memory_;
  const auto size = static_cast<std::size_t>(size_);
  const std::int64_t elements = entry.shape.bytes / static_cast<std::int64_t>(sizeof(T));
  const auto begin = [&](std::int64_t rank) { return elements * rank / size_; };
  const std::int64_t own = begin(member + 1) - begin(member);
  count_of(std::max(elements, own * size_));
  m.counts.clear(), m.places.clear(), m.own_places.clear();
  for (std::int64_t rank = 0; rank < size_; ++rank) {
    m.counts.push_back(static_cast<int>(begin(rank + 1) - begin(rank)));
    m.places.push_back(static_cast<int>(begin(rank)));
    m.own_places.push_back(static_cast<int>(rank * own));
  }
  m.own_counts.assign(size, static_cast<int>(own));
  const auto bytes_of = [](std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(T); };
  m.parts.resize(bytes_of(own * size_));
  m.sum.resize(bytes_of(own));
  const MPI_Datatype type = carried(sizeof(T));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoallv(in, m.counts.data(), m.places.data(), type, m.parts.data(), m.own_counts.data(), m.own_places.data(), type, communicator_, &request);
  wait(request);
  const bool scatter = entry.shape.kind == hw::CollectiveKind::reduce_scatter;
  const T* parts = reinterpret_cast<const T*>(m.parts.data());
  T* sum = reinterpret_cast<T*>(scatter ? out : m.sum.data());
  const Sum<T> share = host::share_of<T>(entry, size);
  for (std::int64_t i = 0; i < own; ++i)
    sum[i] = host::sum_in_order<T>(size, share, [&](std::size_t rank) { return parts[static_cast<std::int64_t>(rank) * own + i]; });
  if (scatter) return;
  MPI_Iallgatherv(sum, static_cast<int>(own), type, out, m.counts.data(), m.places.data(), type, communicator_, &request);
  wait(request);
}

/// All ranks run one program, so they form their groups in one order.
void MpiGroups::form(const program::Program& program, std::int32_t ranks, std::int32_t rank) {
  ranks_ = ranks;
  for (const program::CollectiveEntry& entry : program.collectives) {
    const std::int32_t size = entry.shape.group.ranks();
    std::unique_ptr<MpiGroup>& group = groups_[{entry.communicator, size}];
    if (group) continue;
    const GroupPlace place = place_in_group(entry.communicator, size, ranks, rank);
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, place.color, place.member, &made);
    group = std::make_unique<MpiGroup>(failure_, made);
  }
}

std::pair<host::Group*, std::int32_t> MpiGroups::of(program::Communicator communicator, std::int32_t size, std::int32_t rank) {
  return {groups_.at({communicator, size}).get(), place_in_group(communicator, size, ranks_, rank).member};
}

}  // namespace stepcast::real::mpi
