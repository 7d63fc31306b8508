// See shape_json.hpp.
#include "hw_models/shape_json.hpp"

#include <fmt/format.h>

namespace stepcast::hw {
namespace {

using Ordered = nlohmann::ordered_json;
using Kernel = AttentionKernel;
constexpr std::array kKernels{EnumName<Kernel>{Kernel::flash1, "flash1"}, EnumName<Kernel>{Kernel::flash2, "flash2"},
                              EnumName<Kernel>{Kernel::flash3, "flash3"}, EnumName<Kernel>{Kernel::triton, "triton"},
                              EnumName<Kernel>{Kernel::efficient, "efficient"}};
using Memory = MemoryClass;
constexpr std::array kClasses{EnumName<Memory>{Memory::elementwise, "elementwise"},
                              EnumName<Memory>{Memory::normalization, "normalization"},
                              EnumName<Memory>{Memory::softmax, "softmax"},
                              EnumName<Memory>{Memory::indexing, "indexing"},
                              EnumName<Memory>{Memory::copy, "copy"},
                              EnumName<Memory>{Memory::optimizer, "optimizer"},
                              EnumName<Memory>{Memory::tiny, "tiny"}};
enum class Pass : std::uint8_t { forward, backward, both };
constexpr std::array kPasses{EnumName<Pass>{Pass::forward, "forward"}, EnumName<Pass>{Pass::backward, "backward"}, EnumName<Pass>{Pass::both, "both"}};
enum class Direction : std::uint8_t { inside, to_device, to_host };
constexpr std::array kDirections{EnumName<Direction>{Direction::inside, "device_to_device"}, EnumName<Direction>{Direction::to_device, "host_to_device"},
                                 EnumName<Direction>{Direction::to_host, "device_to_host"}};
using Kind = CollectiveKind;
constexpr std::array kCollectives{EnumName<Kind>{Kind::all_gather, "all_gather"}, EnumName<Kind>{Kind::reduce_scatter, "reduce_scatter"},
                                  EnumName<Kind>{Kind::all_reduce, "all_reduce"}};

constexpr Limits<std::int64_t> kCount{1, std::int64_t{1} << 40};
constexpr Limits<std::int64_t> kBytes{1, std::int64_t{1} << 53};

void gemm(Reader& shape, KernelShape& k) {
  k.kind = KernelKind::gemm;
  shape.maybe("batch", k.batch, kCount);
  k.m = shape.integer("m", kCount);
  k.n = shape.integer("n", kCount);
  k.k = shape.integer("k", kCount);
  shape.maybe("backward", k.backward);
}

void attention(Reader& shape, KernelShape& k, bool* both_passes) {
  k.attention = shape.enumeration("kernel", kKernels);
  const Pass pass = shape.enumeration("pass", kPasses);
  if (pass == Pass::both && !both_passes) shape.fail("pass", "one pass is needed here", "forward or backward");
  if (both_passes) *both_passes = pass == Pass::both;
  k.kind = pass == Pass::backward ? KernelKind::attention_backward : KernelKind::attention_forward;
  k.causal = shape.boolean("causal");
  k.batch = shape.integer("batch", kCount);
  k.m = shape.integer("seq_len", kCount);
  k.n = shape.integer("heads", kCount);
  shape.maybe("kv_heads", k.kv_heads, {1, k.n});
  k.k = shape.integer("head_dim", kCount);
  shape.maybe("window", k.window, {1, k.m});
}

void memory_bound(Reader& shape, KernelShape& k) {
  k.memory = shape.enumeration("class", kClasses);
  k.read_bytes = shape.bytes("read", {0, kBytes.max});
  k.write_bytes = shape.bytes("write", {0, kBytes.max});
  if (k.read_bytes + k.write_bytes == 0) shape.fail("read", "nothing is read or written");
}

void copy(Reader& shape, KernelShape& k) {
  k.memory = Memory::copy;
  const Direction direction = shape.enumeration("direction", kDirections);
  const std::int64_t size = shape.bytes("size", kBytes);
  if (direction != Direction::to_device) k.read_bytes = size;
  if (direction != Direction::to_host) k.write_bytes = size;
  if (direction == Direction::inside) return;
  k.kind = direction == Direction::to_device ? KernelKind::copy_to_device : KernelKind::copy_to_host;
  shape.maybe("pinned", k.pinned);
  k.memory = Memory::elementwise;
}

std::string size(std::int64_t bytes) { return fmt::format("{} B", bytes); }

Ordered row(Operation operation, Dtype dtype, Ordered shape) {
  Ordered json = {{"what", spelled(kOperations, operation)}};
  if (operation != Operation::copy) json["dtype"] = name(dtype);
  json["shape"] = std::move(shape);
  return json;
}

Ordered host_copy_row(const KernelShape& k) {
  const bool to_device = k.kind == KernelKind::copy_to_device;
  Ordered json =
      row(Operation::copy, k.dtype, {{"direction", to_device ? "host_to_device" : "device_to_host"}, {"size", size(to_device ? k.write_bytes : k.read_bytes)}});
  if (!k.pinned) json["shape"]["pinned"] = false;
  return json;
}

Ordered gemm_shape(const KernelShape& k) {
  Ordered json = {{"m", k.m}, {"n", k.n}, {"k", k.k}, {"batch", k.batch}};
  if (k.backward) json["backward"] = true;
  return json;
}

Ordered attention_shape(const KernelShape& k) {
  Ordered shape = {{"kernel", spelled(kKernels, k.attention)},
                   {"pass", k.kind == KernelKind::attention_forward ? "forward" : "backward"},
                   {"causal", k.causal},
                   {"batch", k.batch},
                   {"seq_len", k.m},
                   {"heads", k.n}};
  if (k.kv_heads > 0) shape["kv_heads"] = k.kv_heads;
  shape["head_dim"] = k.k;
  if (k.window > 0) shape["window"] = k.window;
  return shape;
}

}  // namespace

KernelShape read_kernel(Operation operation, Dtype dtype, Reader& shape, bool* both_passes) {
  KernelShape kernel;
  kernel.dtype = dtype;
  switch (operation) {
    case Operation::gemm: gemm(shape, kernel); break;
    case Operation::attention: attention(shape, kernel, both_passes); break;
    case Operation::memory_bound: memory_bound(shape, kernel); break;
    case Operation::copy: copy(shape, kernel); break;
    case Operation::collective: break;
  }
  return kernel;
}

CollectiveShape read_collective(Dtype dtype, Reader& shape) {
  CollectiveShape result;
  result.dtype = dtype;
  result.kind = shape.enumeration("collective", kCollectives);
  result.bytes = shape.bytes("size", kBytes);
  result.group.nodes = static_cast<std::int32_t>(shape.integer("nodes", {1, 1 << 17}));
  result.group.ranks_per_node = static_cast<std::int32_t>(shape.integer("ranks_per_node", {1, 4096}));
  if (result.group.ranks() < 2) shape.fail("ranks_per_node", "a collective needs two ranks");
  return result;
}

Ordered shape_row(const KernelShape& k) {
  switch (k.kind) {
    case KernelKind::gemm: return row(Operation::gemm, k.dtype, gemm_shape(k));
    case KernelKind::attention_forward:
    case KernelKind::attention_backward: return row(Operation::attention, k.dtype, attention_shape(k));
    case KernelKind::copy_to_device:
    case KernelKind::copy_to_host: return host_copy_row(k);
    case KernelKind::memory_bound:
    case KernelKind::fixed: break;
  }
  return row(Operation::memory_bound, k.dtype, {{"class", spelled(kClasses, k.memory)}, {"read", size(k.read_bytes)}, {"write", size(k.write_bytes)}});
}

Ordered shape_row(const CollectiveShape& c) {
  return row(Operation::collective, c.dtype,
             {{"collective", name(c.kind)}, {"size", size(c.bytes)}, {"nodes", c.group.nodes}, {"ranks_per_node", c.group.ranks_per_node}});
}

}  // namespace stepcast::hw
