// Wrapping into groups and the tables of each.
#include "program/fsdp2_groups.hpp"

#include <algorithm>

#include "program/groups.hpp"
#include "program/host_copies.hpp"

namespace stepcast::program {
namespace {

/// First dimension cut into `ranks` equal parts, the last ones padded (torch/distributed/fsdp/_fully_shard/_fsdp_param.py). Elements of one part.
std::int64_t shard_elements(const ParameterTensor& tensor, std::int64_t ranks) { return (tensor.rows + ranks - 1) / ranks * (tensor.elements / tensor.rows); }

class GroupMaker {
 public:
  GroupMaker(const StepSpec& spec, Builder& builder)
      : spec_(spec),
        builder_(builder),
        ranks_(groups_of(spec)),
        p_(hw::bytes_per_element(spec.precision.param)),
        r_(hw::bytes_per_element(spec.precision.reduce)),
        m_(hw::bytes_per_element(spec.precision.master)) {}

  Fsdp2Groups make() {
    const Wrapping wrapping = wrapping_of(spec_);
    const std::int64_t layers = spec_.model.layers, size = wrapping.blocks ? spec_.policy.blocks_per_unit : 1;
    const auto positions = [](const ParameterTensor& t) { return t.name.starts_with("positions."); };
    if (wrapping.ends) {
      add(root(wrapping, positions));
      add(end(true, [](const ParameterTensor& t) { return t.name.starts_with("embedding."); }));
    }
    for (std::int64_t first = 0; first < layers; first += size) {
      if (wrapping.blocks) add(blocks(first, std::min(size, layers - first)));
      for (const InnerUnit& of : wrapping.inner) add(inner(first, of));
    }
    if (wrapping.ends) add(end(false, [](const ParameterTensor& t) { return t.name.starts_with("norm.") || t.name.starts_with("head."); }));
    else add(root(wrapping, [](const ParameterTensor&) { return true; }));
    return std::move(result_);
  }

 private:
  struct Wrapped {
    Unit unit;
    std::vector<ParameterTensor> tensors;
  };

  Wrapped blocks(std::int64_t first, std::int64_t count) const {
    Wrapped wrapped;
    wrapped.unit.name.append("b").append(std::to_string(first));
    wrapped.unit.index = static_cast<std::int32_t>(first);
    wrapped.unit.first_block = first;
    wrapped.unit.block_count = count;
    add_blocks(wrapped);
    return wrapped;
  }

  Wrapped inner(std::int64_t block, const InnerUnit& of) const {
    Wrapped wrapped;
    wrapped.unit.name.append("b").append(std::to_string(block)).append(".").append(of.name);
    wrapped.unit.index = static_cast<std::int32_t>(block);
    wrapped.unit.first_block = block;
    wrapped.unit.block_count = 1;
    wrapped.unit.inner = of.name;
    wrapped.unit.outer = of.outer;
    wrapped.unit.modules = of.modules;
    add_blocks(wrapped);
    return wrapped;
  }

  template <class Owns>
  Wrapped root(const Wrapping& wrapping, Owns owns) const {
    Wrapped wrapped;
    wrapped.unit.name = "root";
    wrapped.unit.root = true;
    wrapped.unit.block_count = wrapping.blocks ? 0 : spec_.model.layers;
    for (const InnerUnit& of : wrapping.inner) wrapped.unit.but_for.insert(wrapped.unit.but_for.end(), of.modules.begin(), of.modules.end());
    add_blocks(wrapped);
    add_outer(wrapped, owns);
    return wrapped;
  }

  void add_blocks(Wrapped& wrapped) const {
    for (std::int64_t b = wrapped.unit.first_block; b < wrapped.unit.first_block + wrapped.unit.block_count; ++b) {
      for (const ParameterTensor& tensor : block_tensors(spec_.model, b)) {
        if (holds(wrapped.unit, tensor.name)) wrapped.tensors.push_back(tensor);
      }
    }
  }

  template <class Owns>
  Wrapped end(bool embedding, Owns owns) const {
    Wrapped wrapped;
    wrapped.unit.name = embedding ? "embedding" : "head";
    (embedding ? wrapped.unit.own_embedding : wrapped.unit.own_head) = true;
    add_outer(wrapped, owns);
    return wrapped;
  }

  template <class Owns>
  void add_outer(Wrapped& wrapped, Owns owns) const {
    for (const ParameterTensor& tensor : root_tensors(spec_.model)) {
      if (owns(tensor)) wrapped.tensors.push_back(tensor);
    }
  }

  void add(Wrapped wrapped) {
    if (wrapped.tensors.empty()) return;
    Unit& unit = wrapped.unit;
    unit.tensors = static_cast<std::uint32_t>(wrapped.tensors.size());
    unit.flat.ranks = ranks_.shard.ranks();
    std::int64_t trained_shard = 0;
    for (const ParameterTensor& tensor : wrapped.tensors) {
      unit.parameters += tensor.elements;
      unit.flat.shard += shard_elements(tensor, unit.flat.ranks);
      trained_shard += tensor.frozen ? 0 : shard_elements(tensor, unit.flat.ranks);
    }
    unit.flat.elements = unit.flat.padded();
    count_trained(unit, wrapped.tensors);
    unit.trained_shard = trained_shard;
    Fsdp2Group group;
    group.reshards_after_forward = !unit.root && !unit.own_head && spec_.policy.reshard_after_forward != kKeepAfterForward;
    group.unshards_in_backward = !unit.own_embedding || spec_.policy.unshard_embedding_in_backward;
    name_buffers(unit, group, wrapped.tensors);
    if (spec_.optimizer.in_backward) group.trained = trained_shards(unit, wrapped.tensors);
    name_kernels(unit, group, wrapped.tensors);
    name_collectives(unit, group, gathered_shard(wrapped.tensors) * unit.flat.ranks);
    name_events(unit, group);
    result_.units.push_back(std::move(unit));
    result_.groups.push_back(std::move(group));
  }

  static std::vector<TrainedShard> trained_shards(const Unit& unit, const std::vector<ParameterTensor>& tensors) {
    std::vector<TrainedShard> result;
    std::int64_t begin = 0, gradient_begin = 0;
    for (const ParameterTensor& tensor : tensors) {
      const std::int64_t count = shard_elements(tensor, unit.flat.ranks);
      if (!tensor.frozen) result.push_back({tensor.name, count, begin, gradient_begin});
      begin += count;
      gradient_begin += tensor.frozen ? 0 : count;
    }
    return result;
  }

  /// Bytes per element in which a parameter is gathered.
  [[nodiscard]] std::int64_t gathered_element(const ParameterTensor& tensor) const { return gathered_in_fp8(tensor, spec_.precision) ? 1 : p_; }
  [[nodiscard]] std::int64_t gathered_shard(const std::vector<ParameterTensor>& tensors) const {
    std::int64_t bytes = 0;
    for (const ParameterTensor& tensor : tensors) bytes += gathered_element(tensor) * shard_elements(tensor, ranks_.shard.ranks());
    return bytes;
  }
  [[nodiscard]] std::int64_t sub_ranks() const { return spec_.policy.reshard_after_forward; }
  [[nodiscard]] bool uses_sub_shard(const Fsdp2Group& group) const { return group.reshards_after_forward && sub_ranks() > kReshardAfterForward; }

  void name_buffers(Unit& u, Fsdp2Group& g, const std::vector<ParameterTensor>& tensors) {
    const std::int64_t s = u.flat.shard, trained = u.trained_shard, part = gathered_shard(tensors), gathered = part * u.flat.ranks;
    const auto buffer = [&](const std::string& what, std::int64_t bytes, Owner owner) { return builder_.buffer(u.name + what, bytes, owner); };
    u.master = buffer(".master", m_ * s, Owner::parameters);
    u.exp_avg = buffer(".exp_avg", m_ * trained, Owner::optimizer);
    u.exp_avg_sq = buffer(".exp_avg_sq", m_ * trained, Owner::optimizer);
    u.sharded_grad = buffer(".sharded_grad", m_ * trained, Owner::gradients);
    u.new_sharded_grad = buffer(".new_sharded_grad", m_ * trained, Owner::gradients);
    const bool offloaded = spec_.policy.cpu_offload != CpuOffload::none;
    if (offloaded) g.fetched_shard = buffer(".fetched_shard", m_ * s, Owner::all_gather);
    g.cast_shard = spec_.precision.param != spec_.precision.master ? buffer(".cast_shard", part, Owner::all_gather) : offloaded ? g.fetched_shard : u.master;
    g.staging = buffer(".staging", gathered, Owner::all_gather);
    if (uses_sub_shard(g)) g.post_forward_shard = buffer(".post_forward_shard", gathered / sub_ranks(), Owner::all_gather);
    g.reduce_input = buffer(".reduce_input", r_ * trained * u.flat.ranks, Owner::reduction);
    g.reduce_output = buffer(".reduce_output", r_ * trained, Owner::reduction);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string number = std::to_string(i);  // a group may hold several blocks, whose tensors are named alike
      g.storages.push_back(buffer(".param" + number + "." + tensors[i].name,
                                  gathered_element(tensors[i]) * u.flat.ranks * shard_elements(tensors[i], u.flat.ranks), Owner::all_gather));
    }
    if (builder_.executable()) place_tensors(u, g, tensors);
    u.params = g.storages.front();  // stands for all of them in the model's kernels: they are taken, written and given back together
  }

  /// Each in a storage of its own; on every rank its part stands behind those of the tensors before it.
  void place_tensors(Unit& u, const Fsdp2Group& g, const std::vector<ParameterTensor>& tensors) const {
    std::int64_t place = 0;
    std::vector<std::pair<std::string, ParameterTensor>> named = named_tensors(spec_.model, u);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::int64_t part = shard_elements(tensors[i], u.flat.ranks);
      const auto own = std::find_if(named.begin(), named.end(), [&](const auto& n) { return n.second.name == tensors[i].name; });
      u.entries.push_back(
          {own->first, 0, tensors[i].elements, g.storages[i], 0, u.master, spec_.precision.master, 0, part, place, static_cast<std::int32_t>(u.flat.ranks)});
      named.erase(own);  // blocks of one group have tensors that are named alike
      place += part;
    }
  }

  KernelId kernel(const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
    const hw::KernelShape shape{.kind = hw::KernelKind::memory_bound, .memory = memory, .read_bytes = read, .write_bytes = write};
    return builder_.kernel(shape, op, memory == hw::MemoryClass::copy ? "copy_kernel" : "vectorized_elementwise_kernel");
  }

  void name_kernels(Unit& u, Fsdp2Group& g, const std::vector<ParameterTensor>& tensors) {
    using enum hw::MemoryClass;
    const std::int64_t s = u.flat.shard, trained = u.trained_shard, whole = trained * u.flat.ranks, part = gathered_shard(tensors),
                       gathered = part * u.flat.ranks;
    std::int64_t in_fp8 = 0;
    for (const ParameterTensor& tensor : tensors) {
      if (!gathered_in_fp8(tensor, spec_.precision)) continue;
      in_fp8 += shard_elements(tensor, u.flat.ranks);
      ++g.fp8_weights;
    }
    g.fp8_shard = in_fp8;
    if (g.fp8_weights > 0)
      g.cast_fp8 = kernel("float8 cast of a shard", elementwise, m_ * in_fp8 / g.fp8_weights, in_fp8 / g.fp8_weights);  // as if of one size
    g.cast = kernel("aten::_foreach_copy_ cast shards", elementwise, m_ * (s - in_fp8), part - in_fp8);
    g.copy_in = kernel("fsdp::all_gather_copy_in", copy, part, part);
    g.copy_out = kernel("fsdp::split_with_sizes_copy", copy, gathered, gathered);
    if (uses_sub_shard(g)) {
      g.copy_in_sub = kernel("fsdp::all_gather_copy_in", copy, gathered / sub_ranks(), gathered / sub_ranks());
      for (const BufferId storage : g.storages) {
        const std::int64_t kept = builder_.program().buffers[storage].bytes / sub_ranks();
        g.clones.push_back(kernel("aten::clone post-forward shard", copy, kept, kept));
      }
    }
    g.chunk_cat = kernel("fsdp::chunk_cat", copy, p_ * u.trained_parameters, r_ * whole);
    g.pre_divide = kernel("aten::div_ pre-divide", elementwise, r_ * whole, r_ * whole);
    g.post_divide = kernel("aten::div_ post-divide", elementwise, r_ * trained, r_ * trained);
    g.copy_reduced = kernel("reduce-scatter of one rank", copy, r_ * trained, r_ * trained);
    g.cast_to_master = kernel("aten::to sharded gradient", elementwise, r_ * trained, m_ * trained);
    g.accumulate = kernel("aten::add_ sharded gradient", elementwise, 2 * m_ * trained, m_ * trained);
    u.zero = kernel("aten::_foreach_zero_", elementwise, 0, m_ * trained);
    if (spec_.policy.cpu_offload == CpuOffload::none) return;
    const auto each = [](std::int64_t bytes, std::uint32_t count) { return (bytes + count - 1) / count; };  // as if of one size
    g.fetch = copy_to_device(builder_, each(m_ * s, u.tensors));
    if (u.trained_tensors > 0) g.send = copy_to_host(builder_, each(m_ * trained, u.trained_tensors));
  }

  void name_collectives(const Unit& u, Fsdp2Group& g, std::int64_t gathered) {
    const bool outer = u.root || u.own_embedding || u.own_head;
    const auto entry = [&](hw::CollectiveKind kind, hw::Dtype dtype, std::int64_t bytes, hw::GroupShape group, Communicator communicator) {
      const std::string label = std::string(hw::name(kind)) + " " + (outer ? u.name : "block");
      const bool average = kind != hw::CollectiveKind::all_gather && dtype != hw::Dtype::fp16;  // NCCL's; fp16 is divided before and after
      return builder_.collective({{kind, dtype, bytes, group}, communicator, outer, label, average});
    };
    const std::int64_t reduced = r_ * u.trained_shard;
    if (ranks_.shard.ranks() > 1) {
      g.all_gather = entry(hw::CollectiveKind::all_gather, spec_.precision.param, gathered, ranks_.shard, Communicator::shard);
      if (reduced > 0)
        g.reduce_scatter = entry(hw::CollectiveKind::reduce_scatter, spec_.precision.reduce, reduced * u.flat.ranks, ranks_.shard, Communicator::shard);
    }
    if (uses_sub_shard(g)) g.all_gather_sub = entry(hw::CollectiveKind::all_gather, spec_.precision.param, gathered, sub_group(), Communicator::sub_shard);
    if (ranks_.replica.ranks() > 1 && reduced > 0)
      g.all_reduce = entry(hw::CollectiveKind::all_reduce, spec_.precision.reduce, reduced, ranks_.replica, Communicator::replica);
  }

  /// Consecutive ranks: within a node as far as they fit.
  [[nodiscard]] hw::GroupShape sub_group() const {
    const auto ranks = static_cast<std::int32_t>(sub_ranks());
    const std::int32_t per_node = std::min(ranks, ranks_.shard.ranks_per_node);
    return {per_node, ranks / per_node};
  }

  void name_events(const Unit& u, Fsdp2Group& g) {
    const auto event = [&](const char* what) { return builder_.event(what + u.name + ")"); };
    g.gathered = event("gathered(");
    g.copied_out = event("copied out(");
    g.resharded = event("resharded(");
    g.reduced = event("reduce-scattered(");
    g.finished = event("reduced(");
  }

  const StepSpec& spec_;
  Builder& builder_;
  Groups ranks_;
  std::int64_t p_, r_, m_;
  Fsdp2Groups result_;
};

}  // namespace

Fsdp2Groups make_fsdp2_groups(const StepSpec& spec, Builder& builder) { return GroupMaker(spec, builder).make(); }

}  // namespace stepcast::program
