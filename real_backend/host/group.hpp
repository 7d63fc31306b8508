// Collectives of the host driver, and those over shared memory: the members of a group meet, each does its share of the work on what all brought, and all leave together.
// Sums are formed in the order of the ranks, so that every run gives the same bits. Over MPI: real_backend/mpi. Test: tests/unit/host_device_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "program/program.hpp"
#include "real_backend/failure.hpp"
#include "real_backend/group.hpp"
#include "real_backend/numbers.hpp"

namespace stepcast::real::host {

/// Ranks that communicate. A member takes part in one collective at a time.
class Group {
 public:
  Group() = default;
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  /// The `number`-th collective of this group, by its `member`-th rank. `begun` is called when the last rank has arrived. Throws Stopped, or std::runtime_error if the
  /// ranks do not agree on what they do.
  virtual void run(const program::CollectiveEntry& entry, std::uint32_t number, std::int32_t member, std::byte* in, std::byte* out,
                   const std::function<void()>& begun) = 0;
};

/// All groups of a job.
class Groups {
 public:
  Groups() = default;
  virtual ~Groups() = default;
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  /// The group of a rank in a communicator of this many ranks, and the rank's number in it.
  virtual std::pair<Group*, std::int32_t> of(program::Communicator communicator, std::int32_t size, std::int32_t rank) = 0;
  /// Once the job has failed, somebody may still read and write what a collective was of: its memory must not go.
  [[nodiscard]] virtual bool outlive_failures() const { return false; }
};

/// The sum, times `share`, of what at(rank) gives for each of so many ranks, in their order.
template <class T, class At>
T sum_in_order(std::size_t ranks, Sum<T> share, At at) {
  Sum<T> sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) sum += static_cast<Sum<T>>(at(rank));
  return static_cast<T>(sum * share);
}
template <class T>
Sum<T> share_of(const program::CollectiveEntry& entry, std::size_t ranks) {
  return static_cast<Sum<T>>(entry.average ? 1.0 / static_cast<double>(ranks) : 1.0);
}

/// Of threads of one process.
class SharedGroup final : public Group {
 public:
  SharedGroup(Failure& failure, std::int32_t size);
  ~SharedGroup() override;
  void run(const program::CollectiveEntry& entry, std::uint32_t number, std::int32_t member, std::byte* in, std::byte* out,
           const std::function<void()>& begun) override;

 private:
  struct Post {
    const program::CollectiveEntry* entry = nullptr;
    std::byte *in = nullptr, *out = nullptr;
  };
  void meet(const program::CollectiveEntry& entry, std::uint32_t number, std::int32_t member, std::byte* in, std::byte* out);
  void work(const program::CollectiveEntry& entry, std::int32_t member) const;
  void leave(std::uint32_t number);
  void all_gather(std::int64_t bytes, std::int32_t member) const;
  template <class T>
  void reduce(const program::CollectiveEntry& entry, std::int32_t member) const;
  [[nodiscard]] bool everybody(std::uint32_t count, std::uint32_t number) const;

  Failure& failure_;
  std::uint32_t size_;
  std::vector<Post> posts_;
  Counter arrived_{0}, left_{0};
};

/// Made when first asked for.
class SharedGroups final : public Groups {
 public:
  SharedGroups(Failure& failure, std::int32_t ranks) : failure_(failure), ranks_(ranks) {}
  std::pair<Group*, std::int32_t> of(program::Communicator communicator, std::int32_t size, std::int32_t rank) override;

 private:
  Failure& failure_;
  std::int32_t ranks_;
  std::mutex mutex_;
  std::map<std::tuple<program::Communicator, std::int32_t, std::int32_t>, std::unique_ptr<SharedGroup>> groups_;
};

}  // namespace stepcast::real::host
