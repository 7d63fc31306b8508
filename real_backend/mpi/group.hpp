// Collectives over MPI: sums are formed in the order of the ranks, so that they are those of ranks that are threads, to the bit. Test: tests/golden/train_mpi_test.cpp.
#pragma once

#include <mpi.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "real_backend/host/group.hpp"

namespace stepcast::real::mpi {

/// What a rank is about to do: the others must do the same.
struct Post {
  std::int64_t bytes = 0;
  std::int32_t kind = 0, dtype = 0, ranks = 0, average = 0;
  char label[40] = {};
};

/// Nothing here waits inside of MPI: a rank whose peers don't come can be told to stop.
class MpiGroup final : public host::Group {
 public:
  /// Takes the communicator over.
  MpiGroup(const Failure& failure, MPI_Comm communicator);
  ~MpiGroup() override;
  void run(const program::CollectiveEntry& entry, std::uint32_t number, std::int32_t member, std::byte* in, std::byte* out,
           const std::function<void()>& begun) override;

 private:
  /// What MPI reads and writes until a request is done.
  struct Memory {
    Post own;
    std::vector<Post> posts;
    std::vector<std::byte> parts, sum;
    std::vector<int> counts, places, own_counts, own_places;
  };
  void meet(const program::CollectiveEntry& entry);
  void all_gather(const program::CollectiveEntry& entry, std::int32_t member, std::byte* in, std::byte* out);
  template <class T>
  void reduce(const program::CollectiveEntry& entry, std::int32_t member, std::byte* in, std::byte* out);
  void wait(MPI_Request request) const;

  const Failure& failure_;
  MPI_Comm communicator_;
  int size_ = 1;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
};

/// Those that a program communicates in, formed by all ranks together.
class MpiGroups final : public host::Groups {
 public:
  explicit MpiGroups(const Failure& failure) : failure_(failure) {}
  void form(const program::Program& program, std::int32_t ranks, std::int32_t rank);
  std::pair<host::Group*, std::int32_t> of(program::Communicator communicator, std::int32_t size, std::int32_t rank) override;
  [[nodiscard]] bool outlive_failures() const override { return true; }

 private:
  const Failure& failure_;
  std::int32_t ranks_ = 1;
  std::map<std::pair<program::Communicator, std::int32_t>, std::unique_ptr<MpiGroup>> groups_;
};

}  // namespace stepcast::real::mpi
