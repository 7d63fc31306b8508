// Collectives over shared memory: the members of a group meet, each does its share of the work on what all brought, and all leave together.
// Sums are formed in the order of the ranks, so that every run gives the same bits. Test: tests/unit/host_device_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "program/program.hpp"
#include "real_backend/failure.hpp"
#include "real_backend/group.hpp"

namespace stepcast::real::host {

/// Ranks that communicate. A member takes part in one collective at a time.
class Group {
 public:
  Group(Failure& failure, std::int32_t size);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// The `number`-th collective of this group, by its `member`-th rank. `begun` is called when the last rank has arrived. Throws Stopped, or std::runtime_error if the
  /// ranks do not agree on what they do.
  template <class Begun>
  void run(const program::CollectiveEntry& entry, std::uint32_t number, std::int32_t member, std::byte* in, std::byte* out, Begun begun) {
    meet(entry, number, member, in, out);
    begun();
    work(entry, member);
    leave(number);
  }

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

/// All groups of a job, made when first asked for.
class Groups {
 public:
  Groups(Failure& failure, std::int32_t ranks) : failure_(failure), ranks_(ranks) {}
  /// The group of a rank in a communicator of this many ranks, and the rank's number in it.
  std::pair<Group*, std::int32_t> of(program::Communicator communicator, std::int32_t size, std::int32_t rank);

 private:
  Failure& failure_;
  std::int32_t ranks_;
  std::mutex mutex_;
  std::map<std::tuple<program::Communicator, std::int32_t, std::int32_t>, std::unique_ptr<Group>> groups_;
};

}  // namespace stepcast::real::host
