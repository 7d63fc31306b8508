// See communicators.hpp.
#include "real_backend/cuda/communicators.hpp"

#include <string>
#include <thread>

#include "real_backend/group.hpp"

namespace stepcast::real::cuda {
namespace {

ncclConfig_t settings() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

ncclDataType_t type_of(hw::Dtype dtype) {
  switch (dtype) {
    case hw::Dtype::fp64: return ncclFloat64;
    case hw::Dtype::fp32: return ncclFloat32;
    case hw::Dtype::bf16: return ncclBfloat16;
    default: throw DeviceError(std::string("collectives are of fp64, fp32 and bf16, not of ") + hw::name(dtype));
  }
}

}  // namespace

Communicators::Communicators(const Failure& failure, const World& world, const program::Program& program) : failure_(failure), world_(world) {
  if (program.collectives.empty()) return;
  ncclConfig_t config = settings();
  try {
    const ncclResult_t result = ncclCommInitRankConfig(&all_, world.ranks, world.id, world.rank, &config);
    settle(all_, result, "ncclCommInitRankConfig");
    for (const program::CollectiveEntry& entry : program.collectives) form({entry.communicator, entry.shape.group.ranks()});
  } catch (...) {
    abort();
    throw;
  }
}

Communicators::~Communicators() {
  if (!aborted_) close();
}

/// All ranks run one program, so they form their groups in one order.
void Communicators::form(const Group& group) {
  if (groups_.contains(group)) return;
  if (group.second == world_.ranks && !all_taken_) {
    all_taken_ = true;
    groups_[group] = all_;
    return;
  }
  ncclConfig_t config = settings();
  const GroupPlace place = place_in_group(group.first, group.second, world_.ranks, world_.rank);
  ncclComm_t& made = groups_[group];
  const ncclResult_t result = ncclCommSplit(all_, place.color, world_.rank, &made, &config);
  settle(all_, result, "ncclCommSplit");
  settle(made, ncclSuccess, "ncclCommSplit");
}

/// Waits until the library has done what was asked of it, which needs the other ranks when a group is formed.
void Communicators::settle(ncclComm_t communicator, ncclResult_t result, const char* call) const {
  if (result != ncclInProgress) check(result, call);
  for (ncclResult_t state = ncclInProgress;;) {
    check(ncclCommGetAsyncError(communicator, &state), call);
    if (state == ncclSuccess) return;
    if (state != ncclInProgress) check(state, call);
    if (failure_.raised()) throw Stopped();
    std::this_thread::yield();
  }
}

void Communicators::enqueue(cudaStream_t stream, const CollectiveTask& task) {
  const hw::CollectiveShape& shape = task.entry->shape;
  const auto ranks = static_cast<std::int64_t>(shape.group.ranks());
  const std::int64_t elements = shape.bytes / hw::bytes_per_element(shape.dtype);
  const auto all = static_cast<std::size_t>(elements), part = static_cast<std::size_t>(elements / ranks);
  const ncclDataType_t type = type_of(shape.dtype);
  const ncclRedOp_t reduction = task.entry->average ? ncclAvg : ncclSum;
  const std::lock_guard lock(mutex_);
  if (aborted_) throw Stopped();
  ncclComm_t communicator = groups_.at({task.entry->communicator, shape.group.ranks()});
  switch (shape.kind) {
    case hw::CollectiveKind::all_gather: return settle(communicator, ncclAllGather(task.in, task.out, part, type, communicator, stream), "ncclAllGather");
    case hw::CollectiveKind::reduce_scatter:
      return settle(communicator, ncclReduceScatter(task.in, task.out, part, type, reduction, communicator, stream), "ncclReduceScatter");
    case hw::CollectiveKind::all_reduce:
      return settle(communicator, ncclAllReduce(task.in, task.out, all, type, reduction, communicator, stream), "ncclAllReduce");
  }
}

void Communicators::poll() {
  const std::lock_guard lock(mutex_);
  if (aborted_) return;
  for (const auto& [group, communicator] : groups_) {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(communicator, &state), "ncclCommGetAsyncError");
    if (state != ncclSuccess && state != ncclInProgress) throw DeviceError(std::string("NCCL: ") + ncclGetErrorString(state));
  }
}

void Communicators::abort() {
  const std::lock_guard lock(mutex_);
  if (aborted_) return;
  aborted_ = true;
  for (const auto& [group, communicator] : groups_) {
    if (communicator != nullptr && communicator != all_) ncclCommAbort(communicator);
  }
  if (all_ != nullptr) ncclCommAbort(all_);
}

/// The ranks leave together: a communicator is finalized, which waits for the peers, and then given back.
void Communicators::close() {
  const auto leave = [&](ncclComm_t communicator) {
    try {
      settle(communicator, ncclCommFinalize(communicator), "ncclCommFinalize");
      ncclCommDestroy(communicator);
    } catch (const std::exception&) { ncclCommAbort(communicator); }  // the cause is told elsewhere
  };
  for (const auto& [group, communicator] : groups_) {
    if (communicator != all_) leave(communicator);
  }
  if (all_ != nullptr) leave(all_);
}

}  // namespace stepcast::real::cuda
