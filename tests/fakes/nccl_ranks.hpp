// Ranks that communicate, inside of the fakes' NCCL. Only tests/fakes includes this.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fakes/gpu.hpp"

namespace stepcast::fakes::nccl {

struct Comm;

/// What one rank brings to a collective.
struct Post {
  const char* what = "";
  std::size_t count = 0;  // elements of a rank's part; of all, for an all-reduce
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t reduction = ncclSum;
  std::byte *send = nullptr, *recv = nullptr;  // where they really are
  bool here = false;

  [[nodiscard]] std::string text() const {
    return std::string(what) + " of " + std::to_string(count) + " (type " + std::to_string(type) + ", op " + std::to_string(reduction) + ")";
  }
};

struct Round {
  std::vector<Post> posts;
  std::size_t left = 0;
  bool done = false;
};

struct Wish {
  int color, key, rank;
  std::shared_ptr<Comm> comm;
};

/// Ranks that communicate.
struct Clique {
  explicit Clique(std::size_t its_size) : size(its_size) {}
  const std::size_t size;
  std::vector<std::weak_ptr<Comm>> members;
  std::map<std::uint64_t, Round> rounds;
  std::map<std::uint64_t, std::vector<Wish>> splits;
};

struct Comm {
  Gpu* gpu = nullptr;
  std::shared_ptr<Clique> clique;  // none: still being formed
  int rank = 0;
  std::uint64_t issued = 0, turn = 0, splits = 0;
  bool aborted = false;
  ncclResult_t error = ncclSuccess;
  Clock clock;
};

struct Nccl {
  std::mutex mutex;  // of everything here
  std::condition_variable changed;
  std::map<ncclComm_t, std::shared_ptr<Comm>> comms;
  std::map<std::string, std::shared_ptr<Clique>> cliques;
  int ids = 0;
};
Nccl& all();

/// On the stream's thread: waits for the communicator's turn, then for all ranks, or for the end; the last to come does the work of all. Sums are formed in the order of the ranks, as
/// the host driver's are.
void take_part(const Stream::Running& now, const std::shared_ptr<Comm>& comm, std::uint64_t number, Post post);

}  // namespace stepcast::fakes::nccl
