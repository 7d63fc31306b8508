// Wrapping of blocks into units and the tables of each unit.
#include "program/units.hpp"

#include <algorithm>

namespace stepcast::program {
namespace {

hw::KernelShape memory_bound(hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
  return {.kind = hw::KernelKind::memory_bound, .memory = memory, .read_bytes = read, .write_bytes = write};
}

class UnitMaker {
 public:
  UnitMaker(const StepSpec& spec, Builder& builder)
      : spec_(spec),
        builder_(builder),
        types_(spec),
        p_(hw::bytes_per_element(spec.precision.param)),
        r_(hw::bytes_per_element(spec.precision.reduce)),
        m_(hw::bytes_per_element(spec.precision.master)) {}

  Unit blocks(std::int64_t first, std::int64_t count) {
    std::vector<ParameterTensor> tensors, one = block_tensors(spec_.model);
    for (std::int64_t i = 0; i < count; ++i) tensors.insert(tensors.end(), one.begin(), one.end());
    Unit unit;
    unit.name.append("b").append(std::to_string(first));
    unit.index = static_cast<std::int32_t>(first);
    unit.first_block = first;
    unit.block_count = count;
    finish(unit, tensors);
    return unit;
  }

  Unit root() {
    Unit unit;
    unit.name = "root";
    unit.root = true;
    finish(unit, root_tensors(spec_.model));
    return unit;
  }

 private:
  void finish(Unit& unit, const std::vector<ParameterTensor>& tensors) {
    unit.tensors = static_cast<std::uint32_t>(tensors.size());
    unit.flat = flatten(tensors, spec_.world.ranks(), spec_.policy.use_orig_params, spec_.precision.param);
    std::int64_t parameter_elements = 0;
    for (const ParameterTensor& tensor : tensors) parameter_elements += tensor.elements;
    name_buffers(unit);
    name_kernels(unit, parameter_elements);
    name_collectives(unit);
  }

  void name_buffers(Unit& u) {
    const std::int64_t n = u.flat.elements, s = u.flat.shard, padded = u.flat.padded();
    const auto buffer = [&](const char* what, std::int64_t bytes, Owner owner) { return builder_.buffer(u.name + what, bytes, owner); };
    u.master = buffer(".master", m_ * s, Owner::parameters);
    u.exp_avg = buffer(".exp_avg", m_ * s, Owner::optimizer);
    u.exp_avg_sq = buffer(".exp_avg_sq", m_ * s, Owner::optimizer);
    u.low_shard = types_.mixed && types_.sharded ? buffer(".low_precision_shard", p_ * s, Owner::all_gather) : u.master;
    u.params = types_.sharded || types_.mixed ? buffer(".params", p_ * padded, Owner::all_gather) : u.master;
    u.flat_grad = buffer(".flat_grad", p_ * n, Owner::gradients);
    u.next_flat_grad = buffer(".next_flat_grad", p_ * n, Owner::gradients);
    u.reduce_grad = types_.cast_to_reduce ? buffer(".reduce_grad", r_ * n, Owner::reduction) : u.flat_grad;
    u.padded_grad = padded != n ? buffer(".padded_grad", r_ * padded, Owner::reduction) : u.reduce_grad;
    u.sharded_grad = types_.gradient_in_place ? u.flat_grad : buffer(".sharded_grad", m_ * s, Owner::gradients);
    u.new_sharded_grad = buffer(".new_sharded_grad", m_ * s, Owner::gradients);
    u.reduced = buffer(".reduced", r_ * s, Owner::reduction);
  }

  void name_kernels(Unit& u, std::int64_t parameter_elements) {
    const std::int64_t n = u.flat.elements, s = u.flat.shard, padded = u.flat.padded();
    const auto kernel = [&](const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
      return builder_.kernel(memory_bound(memory, read, write), op, memory == hw::MemoryClass::copy ? "copy_kernel" : "vectorized_elementwise_kernel");
    };
    using enum hw::MemoryClass;
    u.cast_shard = kernel("FSDP cast shard to low precision", elementwise, m_ * s, p_ * s);
    u.concat = kernel("SplitWithSizesBackward cat", copy, p_ * parameter_elements, p_ * n);
    u.accumulate_flat = kernel("AccumulateGrad add_", elementwise, 2 * p_ * n, p_ * n);
    u.cast_to_reduce = kernel("FSDP cast gradient to reduce type", elementwise, p_ * n, r_ * n);
    u.pad = kernel("FSDP pad gradient", copy, r_ * n, r_ * padded);
    u.pre_divide = kernel("FSDP pre-divide", elementwise, r_ * padded, r_ * padded);
    u.post_divide = kernel("FSDP post-divide", elementwise, r_ * s, r_ * s);
    u.cast_to_master = kernel("FSDP cast gradient to master type", elementwise, (types_.sharded ? r_ : p_) * s, m_ * s);
    u.accumulate = kernel("FSDP accumulate sharded gradient", elementwise, 2 * m_ * s, m_ * s);
  }

  void name_collectives(Unit& u) {
    const auto entry = [&](hw::CollectiveKind kind, hw::Dtype dtype) {
      const std::int64_t bytes = hw::bytes_per_element(dtype) * u.flat.padded();
      return builder_.collective({{kind, dtype, bytes, spec_.world}, Communicator::shard, u.root, std::string(hw::name(kind)) + (u.root ? " root" : " block")});
    };
    u.all_gather = entry(hw::CollectiveKind::all_gather, spec_.precision.param);
    u.reduce_scatter = entry(hw::CollectiveKind::reduce_scatter, spec_.precision.reduce);
  }

  const StepSpec& spec_;
  Builder& builder_;
  UnitTypes types_;
  std::int64_t p_, r_, m_;
};

}  // namespace

UnitTypes::UnitTypes(const StepSpec& spec)
    : sharded(spec.world.ranks() > 1),
      mixed(spec.precision.param != spec.precision.master),
      cast_to_reduce(sharded && spec.precision.reduce != spec.precision.param),
      cast_to_master(sharded ? spec.precision.reduce != spec.precision.master : mixed),
      gradient_in_place(!sharded && !mixed) {}

std::vector<Unit> make_units(const StepSpec& spec, Builder& builder) {
  UnitMaker maker(spec, builder);
  std::vector<Unit> units;
  for (std::int64_t first = 0; first < spec.model.layers; first += spec.policy.blocks_per_unit) {
    units.push_back(maker.blocks(first, std::min(spec.policy.blocks_per_unit, spec.model.layers - first)));
  }
  units.push_back(maker.root());
  return units;
}

}  // namespace stepcast::program
