// See ranks.hpp.
#include "real_backend/bench/ranks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "real_backend/host/driver.hpp"

namespace stepcast::real::bench {
namespace {

constexpr std::int64_t kLeast = 64;       // bytes of a part that only says where something begins
constexpr std::int64_t kAlignment = 256;  // as cudaMalloc's
constexpr std::byte kFill{0x3c};          // 0.0115 in fp32, bf16 and (nearly) fp64
constexpr std::size_t kMostCopies = 256;  // of tiny kernels, whose operands are in the cache wherever they run

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

std::map<std::uint32_t, std::int64_t> sizes_of(const program::Call& call) {
  std::map<std::uint32_t, std::int64_t> bytes;
  for (const program::Part& p : call.parts) {
    if (p.buffer == program::kNoPart) continue;
    const std::int64_t end = (p.begin + p.per_rank * (p.group - 1) + p.count) * hw::bytes_per_element(p.dtype);
    bytes[p.buffer] = std::max(bytes[p.buffer], end + kLeast);
  }
  return bytes;
}

void write_ids(const program::Call& call, const Ids& ids, Device& device, std::byte* to) {
  constexpr std::int64_t kStride = 7919;  // a prime: rows of the table in no order
  const std::int64_t columns = std::max(std::int64_t{1}, call.attributes.columns), rows = std::max(std::int64_t{1}, call.parts[ids.table].count / columns);
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(call.parts[ids.ids].count));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i) * kStride % (ids.ids == 1 ? columns : rows);  // labels are columns
  device.write(to, std::as_bytes(std::span(numbers)));
}

std::size_t copies_of(const program::Call& call, std::int64_t outgrows) {
  const std::int64_t one = std::max(std::int64_t{1}, Buffers::bytes(call));
  return std::min(kMostCopies, static_cast<std::size_t>((outgrows + one - 1) / one));
}

}  // namespace

Pool::Pool(Device& device, std::int64_t bytes) : device_(device) {
  const Segment all{0, bytes + kAlignment};
  device_.map(std::span(&all, 1));
  next_ = device_.memory(0, all.bytes);
}

std::int64_t Pool::rounded(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::byte* Pool::take(std::int64_t bytes) { return std::exchange(next_, next_ + rounded(bytes)); }

std::int64_t Buffers::bytes(const program::Call& call) {
  std::int64_t sum = 0;
  for (const auto& [buffer, bytes] : sizes_of(call)) sum += Pool::rounded(bytes);
  return sum;
}

Buffers::Buffers(const program::Call& call, Pool& pool) {
  std::map<std::uint32_t, std::byte*> places;
  for (const auto& [buffer, bytes] : sizes_of(call)) {
    places[buffer] = pool.take(bytes);
    pool.device().write(places[buffer], std::vector<std::byte>(static_cast<std::size_t>(bytes), kFill));
  }
  for (const program::Part& p : call.parts)
    parts_.push_back(p.buffer == program::kNoPart ? nullptr : places[p.buffer] + p.begin * hw::bytes_per_element(p.dtype));
  if (const auto ids = ids_of(call.function)) write_ids(call, *ids, pool.device(), parts_[ids->ids]);
}

Operands::Operands(const program::Call& call, std::int64_t outgrows, Pool& pool) {
  for (std::size_t i = 0; i < copies_of(call, outgrows); ++i) copies_.emplace_back(call, pool);
}

std::int64_t Operands::bytes(const program::Call& call, std::int64_t outgrows) {
  return static_cast<std::int64_t>(copies_of(call, outgrows)) * Buffers::bytes(call);
}

Ranks::Ranks(const Target& target, std::int32_t count, std::size_t events, std::vector<program::CollectiveEntry> collectives, std::int64_t bytes)
    : target_(target), training_{.vocab = 2, .ranks = count} {
  program_.events.resize(events);
  program_.collectives = std::move(collectives);
  driver_ = target_.make_driver({failure_, progress_, clock_, training_});
  for (std::int32_t rank = 0; rank < count; ++rank) ranks_.emplace_back().host = std::make_unique<host::Stream>(failure_, "rank " + std::to_string(rank));
  for (std::int32_t number = 0; number < count; ++number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    rank.host->push([this, &rank, number, bytes] {
      rank.device = driver_->open(program_, number, bytes);
      rank.pool = std::make_unique<Pool>(*rank.device, bytes);
    });
  }
  on_all([](std::size_t, Pool&) {});
}

/// Devices end on the threads of their hosts, all together.
Ranks::~Ranks() {
  try {
    for (Rank& rank : ranks_) rank.host->push([&rank] { rank.device.reset(); });
    for (Rank& rank : ranks_) rank.host->drain();
  } catch (const Stopped&) {  // then they end here
  }
}

void Ranks::on_all(const std::function<void(std::size_t, Pool&)>& f) {
  try {
    for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i].host->push([&rank = ranks_[i], &f, i] { f(i, *rank.pool); });
    for (Rank& rank : ranks_) rank.host->drain();
  } catch (const Stopped&) { throw std::runtime_error(failure_.causes().front()); }
}

void launch(Device& device, const program::Call& call, const std::vector<std::byte*>& parts) {
  KernelTask task;
  task.call = &call;
  task.parts = parts;
  device.launch(program::Stream::compute, std::move(task));
}

Target host_target() { return {.make_driver = host::make_driver}; }

}  // namespace stepcast::real::bench
