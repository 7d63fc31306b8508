// NCCL: ranks of one process.
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "tests/fakes/nccl_ranks.hpp"

using namespace stepcast::fakes;
using namespace stepcast::fakes::nccl;

namespace {

ncclResult_t misused(const std::string& text) {
  state().fault(text);
  return ncclInvalidUsage;
}

/// Needs the lock.
std::shared_ptr<Comm> comm_of(ncclComm_t handle) {
  const auto found = all().comms.find(handle);
  if (found != all().comms.end()) return found->second;
  state().fault("a communicator is used that is not there, or no more");
  return nullptr;
}

ncclComm_t give_out(const std::shared_ptr<Comm>& comm) {
  auto* handle = reinterpret_cast<ncclComm_t>(comm.get());
  all().comms[handle] = comm;
  return handle;
}

ncclResult_t enqueue(Post post, const void* send, void* recv, ncclComm_t handle, cudaStream_t stream_handle) {
  Stream* stream = stream_of(stream_handle);
  std::shared_ptr<Comm> comm;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(all().mutex);
    comm = comm_of(handle);
    if (stream == nullptr || comm == nullptr) return ncclInvalidArgument;
    if (comm->gpu != &stream->gpu()) return misused("a communicator is used on another GPU's stream");
    if (!comm->clique || post.count == 0) return misused("a collective of nothing, or before the communicator is there");
    number = comm->issued++;
  }
  post.send = const_cast<std::byte*>(static_cast<const std::byte*>(send));
  post.recv = static_cast<std::byte*>(recv);
  stream->push(Stream::Kind::shared, [comm, number, post](const Stream::Running& now) { take_part(now, comm, number, post); });
  return ncclSuccess;
}

/// Needs the lock.
void form(std::vector<Wish> wishes) {
  std::stable_sort(wishes.begin(), wishes.end(),
                   [](const Wish& a, const Wish& b) { return std::tie(a.color, a.key, a.rank) < std::tie(b.color, b.key, b.rank); });
  for (auto begin = wishes.begin(); begin != wishes.end();) {
    const auto end = std::find_if(begin, wishes.end(), [&](const Wish& w) { return w.color != begin->color; });
    const auto clique = std::make_shared<Clique>(static_cast<std::size_t>(end - begin));
    for (auto wish = begin; wish != end; ++wish) {
      wish->comm->rank = static_cast<int>(wish - begin);
      wish->comm->clique = clique;
      clique->members.push_back(wish->comm);
    }
    begin = end;
  }
}

}  // namespace

namespace stepcast::fakes::nccl {

void reset() {
  const std::lock_guard lock(all().mutex);
  all().comms.clear();
  all().cliques.clear();
}

void fail(int gpu) {
  const std::lock_guard lock(all().mutex);
  for (const auto& [handle, comm] : all().comms) {
    if (comm->gpu->number == gpu) comm->error = ncclRemoteError;
  }
}

std::vector<std::string> leaks() {
  const std::lock_guard lock(all().mutex);
  return std::vector<std::string>(all().comms.size(), "a communicator");
}

}  // namespace stepcast::fakes::nccl

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclInvalidUsage: return "invalid usage";
    case ncclInvalidArgument: return "invalid argument";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "internal error";
  }
}

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(all().mutex);
  std::memset(id->internal, 0, sizeof id->internal);
  const int number = ++all().ids;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return misused("a communicator that blocks");
  const std::lock_guard lock(all().mutex);
  auto& clique = all().cliques[std::string(id.internal, sizeof id.internal)];
  if (!clique) clique = std::make_shared<Clique>(static_cast<std::size_t>(nranks));
  if (clique->size != static_cast<std::size_t>(nranks)) return misused("ranks disagree about their number");
  auto made = std::make_shared<Comm>();
  made->gpu = &current_gpu();
  made->rank = rank;
  clique->members.push_back(made);
  if (clique->members.size() == clique->size) {
    for (const auto& member : clique->members) {
      if (const auto other = member.lock()) other->clique = clique;
    }
  }
  *comm = give_out(made);
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  if (config->blocking != 0) return misused("a communicator that blocks");
  const std::lock_guard lock(all().mutex);
  const std::shared_ptr<Comm> parent = comm_of(handle);
  if (parent == nullptr || !parent->clique) return ncclInvalidArgument;
  auto made = std::make_shared<Comm>();
  made->gpu = parent->gpu;
  auto& wishes = parent->clique->splits[parent->splits++];
  wishes.push_back({color, key, parent->rank, made});
  if (wishes.size() == parent->clique->size) form(wishes);
  *newcomm = give_out(made);
  return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const std::lock_guard lock(all().mutex);
  return comm_of(handle) == nullptr ? ncclInvalidArgument : ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const std::lock_guard lock(all().mutex);
  if (comm_of(handle) == nullptr) return ncclInvalidArgument;
  all().comms.erase(handle);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const std::lock_guard lock(all().mutex);
  const std::shared_ptr<Comm> comm = comm_of(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  comm->aborted = true;
  all().comms.erase(handle);
  all().changed.notify_all();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  const std::lock_guard lock(all().mutex);
  const std::shared_ptr<Comm> comm = comm_of(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  *error = comm->error != ncclSuccess ? comm->error : comm->clique ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void* send, void* recv, size_t sendcount, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return enqueue({.what = "all-gather", .count = sendcount, .type = type}, send, recv, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t recvcount, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enqueue({.what = "reduce-scatter", .count = recvcount, .type = type, .reduction = op}, send, recv, comm, stream);
}

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enqueue({.what = "all-reduce", .count = count, .type = type, .reduction = op}, send, recv, comm, stream);
}

}  // extern "C"
