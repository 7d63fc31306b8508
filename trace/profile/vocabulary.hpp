// What the names and categories of profilers mean: PyTorch's Kineto on CUDA and ROCm, old and new, and what other communication libraries call their kernels.
// Document: docs/diagnose.md, "What counts as what". Test: tests/unit/profile_vocabulary_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast::trace::profile {

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

enum class EventClass : std::uint8_t {
  kernel,
  copy,
  set,
  host_call,
  host_op,
  annotation,         // a range that the user or PyTorch named, on the host
  device_annotation,  // the same, as the device ran it
  python_function,
  summary,  // "Trace": the profiler's own span
  other     // read by nobody else: synchronisations, overheads, counters of ranges
};
EventClass class_of(std::string_view category);
/// False for a category that no version of the profiler is known to write.
bool is_known_category(std::string_view category);

/// A kernel that moves data between ranks.
bool is_communication(std::string_view kernel);
/// One of NCCL or RCCL.
bool is_nccl(std::string_view kernel);
/// Which collective a communication kernel runs: "allreduce", "allgather", ..., "generic", "other".
std::string_view collective_type(std::string_view kernel);

/// What a host call does to the host's progress.
enum class CallKind : std::uint8_t { plain, allocator, synchronise, copy };
CallKind kind_of_call(std::string_view name);

bool is_step(std::string_view name);         // ProfilerStep#n
bool is_data_loader(std::string_view name);  // enumerate(DataLoader)...

bool is_full_queue(std::string_view name);       // CUPTI's name for a host that waits for a place in the launch queue
bool is_rate_limiter(std::string_view name);     // FSDP's range around its wait for a free buffer (since PyTorch 2.1)
bool is_gathering_scope(std::string_view name);  // FSDP's hooks that gather parameters: in these a wait is the limiter's
bool is_optimizer(std::string_view name);        // Optimizer.step#..., Optimizer.zero_grad#...
bool is_norm_of_gradients(std::string_view op);  // what clipping begins with
bool is_scaling(std::string_view op);            // ... and ends with

}  // namespace stepcast::trace::profile
