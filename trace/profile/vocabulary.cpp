// Sources: names in public traces of PyTorch 1.8 to 2.x, NCCL, RCCL, NVSHMEM, DeepEP. Test: tests/unit/profile_vocabulary_test.cpp.
#include "trace/profile/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace stepcast::trace::profile {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

template <class List>
bool contains_any(std::string_view text, const List& parts) {
  return std::any_of(parts.begin(), parts.end(), [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

struct Category {
  std::string_view name;
  EventClass meaning;
};
constexpr std::array kCategories = {
    Category{"kernel", EventClass::kernel},
    Category{"gpu_memcpy", EventClass::copy},
    Category{"memcpy", EventClass::copy},
    Category{"gpu_memset", EventClass::set},
    Category{"memset", EventClass::set},
    Category{"cuda_runtime", EventClass::host_call},
    Category{"cuda_driver", EventClass::host_call},
    Category{"runtime", EventClass::host_call},
    Category{"cpu_op", EventClass::host_op},
    Category{"operator", EventClass::host_op},
    Category{"user_annotation", EventClass::annotation},
    Category{"gpu_user_annotation", EventClass::device_annotation},
    Category{"python_function", EventClass::python_function},
    Category{"trace", EventClass::summary},
    Category{"cuda_sync", EventClass::other},
    Category{"overhead", EventClass::other},
    Category{"cuda_profiler_range", EventClass::other},
};

const Category* find(std::string_view category) {
  const std::string wanted = lower(category);
  const auto at = std::find_if(kCategories.begin(), kCategories.end(), [&](const Category& c) { return c.name == wanted; });
  return at == kCategories.end() ? nullptr : &*at;
}

/// After "cuda", "hip" or "cu", and without what tells variants of a call apart ("_ptsz": of a thread's own default stream; "_v2").
std::string_view without_api(std::string_view name) {
  name = name.substr(0, name.find('_'));
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

}  // namespace

EventClass class_of(std::string_view category) {
  const Category* known = find(category);
  return known ? known->meaning : EventClass::other;
}

bool is_known_category(std::string_view category) { return find(category) != nullptr; }

bool is_communication(std::string_view kernel) {
  constexpr std::array<std::string_view, 11> kParts = {"nccl",         "rccl",         "nvshmem",         "deep_ep::",           "dpsk::ep::", "multimem_all",
                                                       "multimem_one", "multimem_two", "multimem_reduce", "cross_device_reduce", "symm_mem"};
  return contains_any(lower(kernel), kParts);
}

bool is_nccl(std::string_view kernel) {
  constexpr std::array<std::string_view, 2> kParts = {"nccl", "rccl"};
  return contains_any(lower(kernel), kParts);
}

std::string_view collective_type(std::string_view kernel) {
  struct Type {
    std::string_view part, name;
  };
  // The first that fits; "reduce" alone comes after those that contain it.
  constexpr std::array kTypes = {
      Type{"allreduce", "allreduce"},
      Type{"all_reduce", "allreduce"},
      Type{"cross_device_reduce", "allreduce"},
      Type{"allgather", "allgather"},
      Type{"all_gather", "allgather"},
      Type{"reducescatter", "reducescatter"},
      Type{"reduce_scatter", "reducescatter"},
      Type{"alltoall", "alltoall"},
      Type{"all_to_all", "alltoall"},
      Type{"sendrecv", "sendrecv"},
      Type{"broadcast", "broadcast"},
      Type{"cached_notify", "cached_notify"},
      Type{"dispatch", "dispatch"},
      Type{"combine", "combine"},
      Type{"generic", "generic"},
      Type{"reduce", "reduce"},
  };
  const std::string name = lower(kernel);
  const auto at = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& type) { return name.find(type.part) != std::string::npos; });
  return at == kTypes.end() ? "other" : at->name;
}

CallKind kind_of_call(std::string_view name) {
  const std::string_view call = without_api(name);
  if (call.empty()) return CallKind::plain;
  if (call.ends_with("StreamSynchronize") || call.ends_with("EventSynchronize") || call.ends_with("DeviceSynchronize")) return CallKind::synchronise;
  if (call.starts_with("Memcpy")) return CallKind::copy;
  const bool driver = name.starts_with("cuMem") && !name.starts_with("cuMemset");
  for (const std::string_view prefix : {"Malloc", "Free", "Host"}) {
    if (call.starts_with(prefix)) return CallKind::allocator;
  }
  return driver ? CallKind::allocator : CallKind::plain;
}

bool is_step(std::string_view name) { return name.starts_with("ProfilerStep"); }

bool is_data_loader(std::string_view name) { return name.find("DataLoader") != std::string_view::npos; }

bool is_full_queue(std::string_view name) { return name == "Command Buffer Full"; }

bool is_rate_limiter(std::string_view name) { return name.find("rate_limiter") != std::string_view::npos; }

bool is_gathering_scope(std::string_view name) {
  constexpr std::array<std::string_view, 4> kParts = {"pre_forward", "pre_backward", "unshard", "prefetch"};
  return name.starts_with("FullyShardedDataParallel") && contains_any(name, kParts);  // fully_shard has no limiter
}

bool is_optimizer(std::string_view name) { return name.starts_with("Optimizer.") || name == "optimizer"; }

bool is_norm_of_gradients(std::string_view op) { return op.starts_with("aten::linalg_vector_norm") || op.starts_with("aten::_foreach_norm"); }

bool is_scaling(std::string_view op) { return op.starts_with("aten::mul_") || op == "aten::_foreach_mul_"; }

}  // namespace stepcast::trace::profile
