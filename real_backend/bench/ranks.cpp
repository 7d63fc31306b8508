// See ranks.hpp.
#include "real_backend/bench/ranks.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace stepcast::real::bench {
namespace {

constexpr std::int64_t kLeast = 64;                            // bytes of a part that only says where something begins
constexpr std::byte kFill{0x3c};                               // 0.0115 in fp32, bf16 and (nearly) fp64
constexpr std::int64_t kOutgrows = std::int64_t{8} << 20;      // bytes: more than the second-level cache of any processor so far
constexpr std::size_t kMostCopies = 256;                       // of tiny kernels, whose operands are in the cache wherever they run
constexpr std::int64_t kAddressSpace = std::int64_t{1} << 20;  // of a device whose memory is not used

/// Which part holds row numbers of a table, and which is the table.
struct Ids {
  std::size_t ids, table;
};
std::optional<Ids> ids_of(program::Function function) {
  switch (function) {
    case program::Function::embedding: return Ids{0, 1};
    case program::Function::embedding_backward: return Ids{0, 2};
    case program::Function::cross_entropy:
    case program::Function::cross_entropy_backward: return Ids{1, 0};
    default: return {};
  }
}

}  // namespace

Buffers::Buffers(const program::Call& call) {
  std::map<std::uint32_t, std::int64_t> bytes;
  for (const program::Part& p : call.parts) {
    const std::int64_t end = (p.begin + p.per_rank * (p.group - 1) + p.count) * hw::bytes_per_element(p.dtype);
    bytes[p.buffer] = std::max(bytes[p.buffer], end + kLeast);
  }
  for (const auto& [buffer, size] : bytes) memory_[buffer].assign(static_cast<std::size_t>(size), kFill);
  for (const program::Part& p : call.parts)
    parts_.push_back(p.buffer == program::kNoPart ? nullptr : memory_[p.buffer].data() + p.begin * hw::bytes_per_element(p.dtype));
  const auto ids = ids_of(call.function);
  if (!ids) return;
  constexpr std::int64_t kStride = 7919;  // a prime: rows of the table in no order
  const std::int64_t rows = std::max(std::int64_t{1}, call.parts[ids->table].count / std::max(std::int64_t{1}, call.attributes.columns));
  auto* numbers = reinterpret_cast<std::int64_t*>(parts_[ids->ids]);
  const bool labels = ids->ids == 1;
  for (std::int64_t i = 0; i < call.parts[ids->ids].count; ++i) numbers[i] = i * kStride % (labels ? std::max(std::int64_t{1}, call.attributes.columns) : rows);
}

std::int64_t Buffers::bytes() const {
  std::int64_t sum = 0;
  for (const auto& [buffer, memory] : memory_) sum += static_cast<std::int64_t>(memory.size());
  return sum;
}

Operands::Operands(const program::Call& call) {
  std::int64_t bytes = 0;
  do {
    copies_.emplace_back(call);
    bytes += copies_.back().bytes();
  } while (bytes < kOutgrows && copies_.size() < kMostCopies);
}

Ranks::Ranks(std::int32_t count, std::size_t events) : groups_(failure_, count) {
  for (std::int32_t rank = 0; rank < count; ++rank)
    devices_.push_back(std::make_unique<host::HostDevice>(Common{failure_, progress_, clock_, training_}, groups_, rank, events, kAddressSpace));
}

void Ranks::launch(std::size_t rank, const program::Call& call, const std::vector<std::byte*>& parts) {
  KernelTask task;
  task.call = &call;
  task.parts = parts;
  devices_[rank]->launch(program::Stream::compute, std::move(task));
}

void Ranks::synchronize() {
  try {
    for (const auto& device : devices_) device->synchronize();
  } catch (const Stopped&) { throw std::runtime_error(failure_.causes().front()); }
}

}  // namespace stepcast::real::bench
