// Wrapping of blocks into units and the tables of each unit.
#include "program/units.hpp"

#include <algorithm>

#include "program/groups.hpp"
#include "program/host_copies.hpp"

namespace stepcast::program {

hw::KernelShape memory_bound(hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
  return {.kind = hw::KernelKind::memory_bound, .memory = memory, .read_bytes = read, .write_bytes = write};
}
namespace {

class UnitMaker {
 public:
  UnitMaker(const StepSpec& spec, Builder& builder)
      : spec_(spec),
        builder_(builder),
        groups_(groups_of(spec)),
        types_(spec),
        p_(hw::bytes_per_element(spec.precision.param)),
        r_(hw::bytes_per_element(spec.precision.reduce)),
        m_(hw::bytes_per_element(spec.precision.master)) {}

  Unit blocks(std::int64_t first, std::int64_t count) {
    Unit unit;
    unit.name.append("b").append(std::to_string(first));
    unit.index = static_cast<std::int32_t>(first);
    unit.first_block = first;
    unit.block_count = count;
    finish(unit);
    return unit;
  }

  Unit inner(std::int64_t block, const InnerUnit& of) {
    Unit unit;
    unit.name.append("b").append(std::to_string(block)).append(".").append(of.name);
    unit.index = static_cast<std::int32_t>(block);
    unit.first_block = block;
    unit.block_count = 1;
    unit.inner = of.name;
    unit.outer = of.outer;
    unit.modules = of.modules;
    finish(unit);
    return unit;
  }

  /// Everything that no other unit holds.
  Unit root(const Wrapping& wrapping) {
    Unit unit;
    unit.name = "root";
    unit.root = true;
    unit.block_count = wrapping.blocks ? 0 : spec_.model.layers;
    unit.holds_ends = !wrapping.ends;
    for (const InnerUnit& of : wrapping.inner) unit.but_for.insert(unit.but_for.end(), of.modules.begin(), of.modules.end());
    finish(unit);
    return unit;
  }

  Unit embedding() {
    Unit unit;
    unit.name = "embedding";
    unit.own_embedding = true;
    finish(unit);
    return unit;
  }

  Unit head() {
    Unit unit;
    unit.name = "head";
    unit.own_head = true;
    finish(unit);
    return unit;
  }

 private:
  void finish(Unit& unit) {
    std::vector<ParameterTensor> tensors;
    for (auto& [name, tensor] : named_tensors(spec_.model, unit)) tensors.push_back(std::move(tensor));
    unit.tensors = static_cast<std::uint32_t>(tensors.size());
    unit.flat = flatten(tensors, groups_.shard.ranks(), spec_.policy.use_orig_params, spec_.precision.param);
    for (const ParameterTensor& tensor : tensors) unit.parameters += tensor.elements;
    count_trained(unit, tensors);
    name_buffers(unit);
    if (builder_.executable()) place_tensors(unit);
    name_kernels(unit);
    name_collectives(unit);
  }

  void name_buffers(Unit& u) {
    const std::int64_t n = u.flat.elements, s = u.flat.shard, padded = u.flat.padded();
    const auto buffer = [&](const char* what, std::int64_t bytes, Owner owner) { return builder_.buffer(u.name + what, bytes, owner); };
    u.master = buffer(".master", m_ * s, Owner::parameters);
    u.exp_avg = buffer(".exp_avg", m_ * u.trained_shard, Owner::optimizer);
    u.exp_avg_sq = buffer(".exp_avg_sq", m_ * u.trained_shard, Owner::optimizer);
    if (types_.offloaded) u.fetched_shard = buffer(".fetched_shard", m_ * s, Owner::all_gather);
    u.low_shard = types_.mixed && types_.sharded ? buffer(".low_precision_shard", p_ * s, Owner::all_gather) : types_.offloaded ? u.fetched_shard : u.master;
    u.params = types_.sharded || types_.mixed ? buffer(".params", p_ * padded, Owner::all_gather) : u.master;
    u.flat_grad = buffer(".flat_grad", p_ * n, Owner::gradients);
    u.next_flat_grad = buffer(".next_flat_grad", p_ * n, Owner::gradients);
    const bool casts = types_.sharded ? types_.cast_to_reduce : types_.cast_to_master;
    u.reduce_grad = casts ? buffer(".reduce_grad", r_ * n, Owner::reduction) : u.flat_grad;
    u.padded_grad = padded != n ? buffer(".padded_grad", r_ * padded, Owner::reduction) : u.reduce_grad;
    u.sharded_grad = types_.gradient_in_place ? u.flat_grad : buffer(".sharded_grad", m_ * s, Owner::gradients);
    u.new_sharded_grad = buffer(".new_sharded_grad", m_ * s, Owner::gradients);
    u.reduced = buffer(".reduced", r_ * s, Owner::reduction);
  }

  /// One behind the other in the flat parameter; with original parameters each on a 16-byte boundary.
  void place_tensors(Unit& u) const {
    const std::int64_t alignment = spec_.policy.use_orig_params ? 16 / p_ : 1;
    std::int64_t end = 0;
    for (const auto& [name, tensor] : named_tensors(spec_.model, u)) {
      const std::int64_t begin = (end + alignment - 1) / alignment * alignment;
      u.entries.push_back({name, 0, tensor.elements, u.params, begin, u.master, spec_.precision.master, begin, u.flat.shard, 0, groups_.shard.ranks()});
      end = begin + tensor.elements;
    }
  }

  void name_kernels(Unit& u) {
    const std::int64_t n = u.flat.elements, s = u.flat.shard, padded = u.flat.padded();
    const auto kernel = [&](const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
      return builder_.kernel(memory_bound(memory, read, write), op, memory == hw::MemoryClass::copy ? "copy_kernel" : "vectorized_elementwise_kernel");
    };
    using enum hw::MemoryClass;
    u.cast_shard = kernel("FSDP cast shard to low precision", elementwise, m_ * s, p_ * s);
    u.concat = kernel("SplitWithSizesBackward cat", copy, p_ * u.parameters, p_ * n);
    u.accumulate_flat = kernel("AccumulateGrad add_", elementwise, 2 * p_ * n, p_ * n);
    u.cast_to_reduce = kernel("FSDP cast gradient to reduce type", elementwise, p_ * n, r_ * n);
    u.pad = kernel("FSDP pad gradient", copy, r_ * n, r_ * padded);
    u.pre_divide = kernel("FSDP pre-divide", elementwise, r_ * padded, r_ * padded);
    u.post_divide = kernel("FSDP post-divide", elementwise, r_ * s, r_ * s);
    u.cast_to_master = kernel("FSDP cast gradient to master type", elementwise, r_ * s, m_ * s);
    u.accumulate = kernel("FSDP accumulate sharded gradient", elementwise, 2 * m_ * s, m_ * s);
    if (types_.offloaded) u.fetch_shard = copy_to_device(builder_, m_ * s), u.send_gradient = copy_to_host(builder_, m_ * s);
    if (!types_.sharded) u.accumulate_into_master = kernel("AccumulateGrad add_", elementwise, (m_ + p_) * n, m_ * n);
    if (!types_.sharded) u.cast_master_to_reduce = kernel("FSDP cast gradient to reduce type", elementwise, m_ * n, r_ * n);
    if (!spec_.optimizer.zero_grad_set_to_none) u.zero = kernel("aten::zero_ gradient", elementwise, 0, m_ * s);
  }

  void name_collectives(Unit& u) {
    const bool end = u.own_embedding || u.own_head;
    const auto entry = [&](hw::CollectiveKind kind, hw::Dtype dtype, std::int64_t elements, hw::GroupShape group, Communicator communicator) {
      const std::string label = std::string(hw::name(kind)) + " " + (u.root || end ? u.name : "block");
      return builder_.collective({{kind, dtype, hw::bytes_per_element(dtype) * elements, group}, communicator, u.root || end, label});
    };
    if (types_.sharded) {
      u.all_gather = entry(hw::CollectiveKind::all_gather, spec_.precision.param, u.flat.padded(), groups_.shard, Communicator::shard);
      u.reduce_scatter = entry(hw::CollectiveKind::reduce_scatter, spec_.precision.reduce, u.flat.padded(), groups_.shard, Communicator::shard);
    }
    // Without shards all ranks are one process group; with them the replicas have one of their own.
    const Communicator replicas = types_.sharded ? Communicator::replica : Communicator::shard;
    if (types_.replicated) u.all_reduce = entry(hw::CollectiveKind::all_reduce, spec_.precision.reduce, u.flat.shard, groups_.replica, replicas);
  }

  const StepSpec& spec_;
  Builder& builder_;
  Groups groups_;
  UnitTypes types_;
  std::int64_t p_, r_, m_;
};

}  // namespace

std::vector<Unit> blocks_and_root(const ModelShape& model) {
  std::vector<Unit> units;
  for (std::int64_t b = 0; b <= model.layers; ++b) {
    Unit unit;
    unit.root = b == model.layers;
    unit.name = "root";
    if (!unit.root) unit.name = std::string("b").append(std::to_string(b));
    unit.index = unit.root ? -1 : static_cast<std::int32_t>(b);
    unit.first_block = b;
    unit.block_count = unit.root ? 0 : 1;
    units.push_back(std::move(unit));
  }
  return units;
}

/// With `use_orig_params` each rank's part of the adapters depends on where they lie in the flat parameter; an even share stands for all.
void count_trained(Unit& unit, const std::vector<ParameterTensor>& tensors) {
  unit.trained_tensors = 0;
  for (const ParameterTensor& tensor : tensors) unit.trained_tensors += tensor.frozen ? 0 : 1;
  unit.trained_parameters = trained_elements(tensors);
  const std::int64_t ranks = unit.flat.ranks;
  unit.trained_shard = unit.trained_parameters == unit.parameters ? unit.flat.shard : (unit.trained_parameters + ranks - 1) / ranks;
}

UnitTypes::UnitTypes(const StepSpec& spec)
    : sharded(groups_of(spec).shard.ranks() > 1),
      replicated(groups_of(spec).replica.ranks() > 1),
      mixed(spec.precision.param != spec.precision.master),
      cast_to_reduce(spec.precision.reduce != spec.precision.param),
      cast_to_master(spec.precision.reduce != spec.precision.master),
      offloaded(spec.policy.cpu_offload != CpuOffload::none),
      gradient_in_place(!sharded && !cast_to_reduce && !cast_to_master) {}

std::vector<Unit> make_units(const StepSpec& spec, Builder& builder) {
  UnitMaker maker(spec, builder);
  const Wrapping wrapping = wrapping_of(spec);
  std::vector<Unit> units;
  if (wrapping.ends) units.push_back(maker.embedding());
  const std::int64_t size = wrapping.blocks ? spec.policy.blocks_per_unit : 1;
  for (std::int64_t first = 0; first < spec.model.layers; first += size) {
    if (wrapping.blocks) units.push_back(maker.blocks(first, std::min(size, spec.model.layers - first)));
    for (const InnerUnit& inner : wrapping.inner) units.push_back(maker.inner(first, inner));
  }
  if (wrapping.ends) units.push_back(maker.head());
  const bool blocks_hold_all = wrapping.blocks || holds_norms(wrapping);
  if (!blocks_hold_all || !wrapping.ends) units.push_back(maker.root(wrapping));
  return units;
}

}  // namespace stepcast::program
