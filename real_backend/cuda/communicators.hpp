// NCCL: the communicators of one rank. They don't block, so that a rank whose peers are gone can be told to stop. Test: tests/unit/cuda_device_test.cpp.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "real_backend/cuda/check.hpp"
#include "real_backend/device.hpp"
#include "real_backend/failure.hpp"

namespace stepcast::real::cuda {

/// The rank's place in the job, and the id under which all ranks meet.
struct World {
  std::int32_t ranks = 1, rank = 0;
  ncclUniqueId id{};
};

class Communicators {
 public:
  /// Meets the other ranks and forms all groups that the program communicates in. Throws Stopped once the job has failed, and DeviceError.
  Communicators(const Failure& failure, const World& world, const program::Program& program);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  void enqueue(cudaStream_t stream, const CollectiveTask& task);
  /// Throws DeviceError if a peer or the network has failed. From any thread.
  void poll();
  /// Ends what runs, on this rank alone; whoever communicates afterwards is stopped. From any thread.
  void abort();

 private:
  using Group = std::pair<program::Communicator, std::int32_t>;
  void form(const Group& group);
  void settle(ncclComm_t communicator, ncclResult_t result, const char* call) const;
  void close();

  const Failure& failure_;
  World world_;
  std::mutex mutex_;  // of all below
  bool aborted_ = false;
  ncclComm_t all_ = nullptr;
  bool all_taken_ = false;  // by a group that has all ranks
  std::map<Group, ncclComm_t> groups_;
};

}  // namespace stepcast::real::cuda
