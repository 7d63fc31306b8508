// What the ranks of a fake communicator do together.
#include <Eigen/Core>
#include <algorithm>
#include <cstring>

#include "tests/fakes/nccl_ranks.hpp"

namespace stepcast::fakes::nccl {
namespace {

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

}  // namespace

Nccl& all() {
  static Nccl state;
  return state;
}

void take_part(const Stream::Running& now, const std::shared_ptr<Comm>& comm, std::uint64_t number, Post post) {
  std::unique_lock lock(all().mutex);
  all().changed.wait(lock, [&] { return comm->turn == number || comm->aborted; });
  Clique& clique = *comm->clique;
  now.clock.join(comm->clock);
  const Sizes sizes = sizes_of(post, clique.size);
  {
    const std::lock_guard gpu_lock(now.gpu.mutex);
    post.send = now.gpu.memory.touch(post.send, sizes.send, false, now.toucher());
    post.recv = now.gpu.memory.touch(post.recv, sizes.recv, true, now.toucher());
  }
  if (comm->aborted) return;  // with anything in its output, which what is queued behind it may read: the job has failed
  Round& round = clique.rounds[number];
  round.posts.resize(clique.size);
  const bool agreed = agree(clique, round, post);
  post.here = true;
  round.posts[static_cast<std::size_t>(comm->rank)] = post;
  if (agreed && std::all_of(round.posts.begin(), round.posts.end(), [](const Post& p) { return p.here; })) {
    do_for_all(round.posts);
    round.done = true;
    all().changed.notify_all();
  }
  all().changed.wait(lock, [&] { return round.done || comm->aborted; });
  if (!round.done) round.posts[static_cast<std::size_t>(comm->rank)].here = false;  // whoever comes later must not find memory that is given back by then
  comm->clock = now.clock;
  ++comm->turn;
  all().changed.notify_all();
  if (++round.left == clique.size) clique.rounds.erase(number);
}

}  // namespace stepcast::fakes::nccl
