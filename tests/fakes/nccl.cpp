// NCCL: ranks of one process meet, and the last to come does the work of a collective for all. Sums are formed in the order of the ranks, as the host driver's are.
#include <nccl.h>

#include <Eigen/Core>
#include <algorithm>
#include <cstring>
#include <tuple>

#include "tests/fakes/gpu.hpp"

using namespace stepcast::fakes;

namespace {

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
Nccl nccl_state;

ncclResult_t refuse(const std::string& text) {
  state().fault(text);
  return ncclInvalidUsage;
}

/// Needs the lock.
std::shared_ptr<Comm> comm_of(ncclComm_t handle) {
  const auto found = nccl_state.comms.find(handle);
  if (found != nccl_state.comms.end()) return found->second;
  state().fault("a communicator is used that is not there, or no more");
  return nullptr;
}

ncclComm_t give_out(const std::shared_ptr<Comm>& comm) {
  auto* handle = reinterpret_cast<ncclComm_t>(comm.get());
  nccl_state.comms[handle] = comm;
  return handle;
}

std::size_t bytes_of(ncclDataType_t type) { return type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : 2; }

/// Parts that a rank sends and receives: those of an all-gather and of a reduce-scatter are as many as there are ranks on one side.
struct Sizes {
  std::size_t send, recv;
};
Sizes sizes_of(const Post& post, std::size_t ranks) {
  const std::size_t part = post.count * bytes_of(post.type);
  if (post.what == std::string("all-gather")) return {part, part * ranks};
  if (post.what == std::string("reduce-scatter")) return {part * ranks, part};
  return {part, part};
}

template <class T, class S>
std::vector<std::byte> reduced(const std::vector<Post>& posts, std::size_t elements) {
  std::vector<std::byte> bytes(elements * sizeof(T));
  auto* out = reinterpret_cast<T*>(bytes.data());
  const S share = posts.front().reduction == ncclAvg ? S(1) / static_cast<S>(posts.size()) : S(1);
  for (std::size_t i = 0; i < elements; ++i) {
    S sum = 0;
    for (const Post& post : posts) sum += static_cast<S>(reinterpret_cast<const T*>(post.send)[i]);
    out[i] = static_cast<T>(sum * share);
  }
  return bytes;
}

/// What all ranks receive, or parts of.
std::vector<std::byte> result_of(const std::vector<Post>& posts) {
  const Post& first = posts.front();
  const Sizes sizes = sizes_of(first, posts.size());
  std::vector<std::byte> all;
  if (first.what == std::string("all-gather")) {
    for (const Post& post : posts) all.insert(all.end(), post.send, post.send + sizes.send);
    return all;
  }
  const std::size_t elements = sizes.send / bytes_of(first.type);
  if (first.type == ncclFloat64) return reduced<double, double>(posts, elements);
  if (first.type == ncclFloat32) return reduced<float, float>(posts, elements);
  return reduced<Eigen::bfloat16, float>(posts, elements);
}

void do_for_all(const std::vector<Post>& posts) {
  const std::vector<std::byte> all = result_of(posts);
  const std::size_t recv = sizes_of(posts.front(), posts.size()).recv;
  const bool parts = recv < all.size();
  for (std::size_t rank = 0; rank < posts.size(); ++rank) std::memcpy(posts[rank].recv, all.data() + (parts ? rank * recv : 0), recv);
}

/// False, with an error for all, if somebody else brings something else. Needs the lock.
bool agree(const Clique& clique, const Round& round, const Post& post) {
  for (const Post& other : round.posts) {
    if (!other.here || other.text() == post.text()) continue;
    state().fault("ranks disagree about a collective: " + other.text() + " and " + post.text());
    for (const auto& member : clique.members) {
      if (const auto comm = member.lock()) comm->error = ncclInvalidUsage;
    }
    return false;
  }
  return true;
}

/// On the stream's thread: waits for the communicator's turn, then for all ranks, or for the end.
void take_part(const Stream::Running& now, const std::shared_ptr<Comm>& comm, std::uint64_t number, Post post) {
  std::unique_lock lock(nccl_state.mutex);
  nccl_state.changed.wait(lock, [&] { return comm->turn == number || comm->aborted; });
  if (comm->aborted) return;
  Clique& clique = *comm->clique;
  now.clock.join(comm->clock);
  const Sizes sizes = sizes_of(post, clique.size);
  {
    const std::lock_guard gpu_lock(now.gpu.mutex);
    post.send = now.gpu.memory.touch(post.send, sizes.send, false, now.toucher());
    post.recv = now.gpu.memory.touch(post.recv, sizes.recv, true, now.toucher());
  }
  Round& round = clique.rounds[number];
  round.posts.resize(clique.size);
  const bool agreed = agree(clique, round, post);
  post.here = true;
  round.posts[static_cast<std::size_t>(comm->rank)] = post;
  if (agreed && std::all_of(round.posts.begin(), round.posts.end(), [](const Post& p) { return p.here; })) {
    do_for_all(round.posts);
    round.done = true;
    nccl_state.changed.notify_all();
  }
  nccl_state.changed.wait(lock, [&] { return round.done || comm->aborted; });
  comm->clock = now.clock;
  ++comm->turn;
  nccl_state.changed.notify_all();
  if (++round.left == clique.size) clique.rounds.erase(number);
}

ncclResult_t enqueue(Post post, const void* send, void* recv, ncclComm_t handle, cudaStream_t stream_handle) {
  Stream* stream = stream_of(stream_handle);
  std::shared_ptr<Comm> comm;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(nccl_state.mutex);
    comm = comm_of(handle);
    if (stream == nullptr || comm == nullptr) return ncclInvalidArgument;
    if (comm->gpu != &stream->gpu()) return refuse("a communicator is used on another GPU's stream");
    if (!comm->clique || post.count == 0) return refuse("a collective of nothing, or before the communicator is there");
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
  const std::lock_guard lock(nccl_state.mutex);
  nccl_state.comms.clear();
  nccl_state.cliques.clear();
}

void fail(int gpu) {
  const std::lock_guard lock(nccl_state.mutex);
  for (const auto& [handle, comm] : nccl_state.comms) {
    if (comm->gpu->number == gpu) comm->error = ncclRemoteError;
  }
}

std::vector<std::string> leaks() {
  const std::lock_guard lock(nccl_state.mutex);
  return std::vector<std::string>(nccl_state.comms.size(), "a communicator");
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

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(nccl_state.mutex);
  std::memset(id->internal, 0, sizeof id->internal);
  const int number = ++nccl_state.ids;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return refuse("a communicator that blocks");
  const std::lock_guard lock(nccl_state.mutex);
  auto& clique = nccl_state.cliques[std::string(id.internal, sizeof id.internal)];
  if (!clique) clique = std::make_shared<Clique>(static_cast<std::size_t>(nranks));
  if (clique->size != static_cast<std::size_t>(nranks)) return refuse("ranks disagree about their number");
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
  if (config->blocking != 0) return refuse("a communicator that blocks");
  const std::lock_guard lock(nccl_state.mutex);
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
  const std::lock_guard lock(nccl_state.mutex);
  return comm_of(handle) == nullptr ? ncclInvalidArgument : ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const std::lock_guard lock(nccl_state.mutex);
  if (comm_of(handle) == nullptr) return ncclInvalidArgument;
  nccl_state.comms.erase(handle);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const std::lock_guard lock(nccl_state.mutex);
  const std::shared_ptr<Comm> comm = comm_of(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  comm->aborted = true;
  nccl_state.comms.erase(handle);
  nccl_state.changed.notify_all();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  const std::lock_guard lock(nccl_state.mutex);
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
