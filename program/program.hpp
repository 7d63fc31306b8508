// A program: the sequence of calls that one rank's host thread makes. Plain data, produced by a pure function of (policy, model, rank) and run by any executor.
// Ops hold ids, shapes and sizes; never times, handles or pointers. Text form: program/text.hpp. Decision: docs/adr/0002-program-and-executors.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hw_models/kernel.hpp"
#include "program/compute.hpp"

namespace stepcast::program {

/// CUDA-like streams of a rank. Each is a FIFO; the caching allocator keeps one pool per stream.
/// FSDP1 and DDP use the first five; FSDP2 compute, all_reduce and the three behind them;
/// nccl is c10d's own, on which early releases of PyTorch run collectives.
enum class Stream : std::uint8_t { compute, pre_unshard, unshard, post_backward, all_reduce, copy_in, all_gather, reduce_scatter, nccl, count_ };
inline constexpr std::size_t kStreams = static_cast<std::size_t>(Stream::count_);

enum class OpKind : std::uint8_t {
  launch,         // id: kernel entry; enqueues on `stream`; operands; `work` prices the host side; `count`: number of its call, from 1; 0: none
  collective,     // id: collective entry; enqueued on `stream`, runs in the FIFO of its communicator; operands
  record,         // id: event; recorded at the current tail of `stream` (an event may be recorded again: waits mean the latest record)
  wait,           // id: event; `stream` waits for its latest record; the host does not
  host_wait,      // id: event; the host blocks until its latest record is complete; `work` none, `count` holds a WaitReason
  alloc,          // id: buffer; taken from the pool of `stream` at host time
  free,           // id: buffer; given back at host time
  record_stream,  // id: buffer; it is also used on `stream`
  host_work,      // `work`, `count` units of it
  next_batch,     // the host takes the next batch from the data loader
  mark            // id: mark entry; opens or closes a named range (step, phase, unit) of the host's time line
};

enum class WaitReason : std::uint8_t { rate_limiter, synchronize };

/// 20 bytes. `operands` and `operand_count` select a range of Program::operands.
struct Op {
  OpKind kind = OpKind::mark;
  Stream stream = Stream::compute;
  hw::HostWork work = hw::HostWork::none;
  std::uint16_t operand_count = 0;
  std::uint32_t id = 0;
  std::uint32_t operands = 0;
  std::uint32_t count = 0;
  bool operator==(const Op&) const = default;
};

enum class Access : std::uint8_t { read, write, read_write };
struct Operand {
  std::uint32_t buffer = 0;
  Access access = Access::read;
  bool operator==(const Operand&) const = default;
};

/// A kernel as launched: its shape and the names that a profiler would show (the op and the kernel function).
struct KernelEntry {
  hw::KernelShape shape;
  std::string op;      // e.g. "aten::mm q_proj"
  std::string kernel;  // e.g. "ampere_bf16_s16816gemm_bf16_256x128"
};

/// `sub_shard`: consecutive ranks among whom FSDP2 reshards after the forward, if not among all of the shard group.
enum class Communicator : std::uint8_t { shard, replica, sub_shard, count_ };
inline constexpr std::size_t kCommunicators = static_cast<std::size_t>(Communicator::count_);

struct CollectiveEntry {
  hw::CollectiveShape shape;
  Communicator communicator = Communicator::shard;
  bool root_unit = false;
  std::string label;     // e.g. "all_gather block"
  bool average = false;  // reductions: NCCL divides the sum by the ranks
};

/// Who a byte of device memory is for; the report's memory split.
enum class Owner : std::uint8_t { parameters, gradients, optimizer, activations, all_gather, reduction, loss, input, workspace, count_ };
inline constexpr std::size_t kOwners = static_cast<std::size_t>(Owner::count_);
const char* name(Owner owner);
const char* name(Stream stream);
const char* name(Communicator communicator);
const char* name(OpKind kind);

struct BufferEntry {
  std::int64_t bytes = 0;
  Owner owner = Owner::activations;
  std::string label;  // e.g. "b3.gate"
};

struct EventEntry {
  std::string label;  // e.g. "F(b3)"
};

enum class MarkKind : std::uint8_t { step, forward, backward, optimizer, unit, recompute };
struct MarkEntry {
  MarkKind kind = MarkKind::step;
  bool begin = true;
  std::int32_t index = -1;  // unit or layer number, where the kind has one
  std::string label;        // e.g. "forward b3"
};

struct Range {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
};

/// `setup` runs once (persistent memory); then `steps[i]` for each training step. Steps that are alike share one range of ops.
struct Program {
  std::vector<Op> ops;
  std::vector<Operand> operands;
  std::vector<KernelEntry> kernels;
  std::vector<CollectiveEntry> collectives;
  std::vector<BufferEntry> buffers;
  std::vector<EventEntry> events;
  std::vector<MarkEntry> marks;
  std::vector<Call> calls;                 // native kernels only, and so are the next two
  std::vector<ParameterEntry> parameters;  // in the order of the model
  std::optional<std::uint32_t> metrics;    // buffer of loss and gradient norm, fp64, by step
  Range setup;
  std::vector<Range> steps;

  [[nodiscard]] std::span<const Op> slice(Range range) const { return std::span(ops).subspan(range.begin, range.end - range.begin); }
  [[nodiscard]] std::span<const Operand> operands_of(const Op& op) const { return std::span(operands).subspan(op.operands, op.operand_count); }
};

}  // namespace stepcast::program
