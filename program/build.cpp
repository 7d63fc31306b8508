// Puts the parts together: units, the work that they wrap, the policy; then the steps.
#include "program/build.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "program/ddp.hpp"
#include "program/fixed_work.hpp"
#include "program/fsdp1.hpp"
#include "program/fsdp2.hpp"
#include "program/kernel_work.hpp"
#include "program/units.hpp"
#include "program/validate.hpp"
#include "program/zero_stage12.hpp"
#include "program/zero_stage3.hpp"

namespace stepcast::program {
namespace {

/// Builds each step that begins in a new state and points the others at it. A step's end depends on its beginning alone, so known states lead to known states.
template <class Framework>
std::vector<Range> build_steps(Builder& builder, Framework& framework, int steps) {
  struct BuiltStep {
    typename Framework::Carried before, after;
    Range ops;
  };
  std::vector<BuiltStep> built;
  std::vector<Range> ranges;
  auto state = framework.carried();
  constexpr std::size_t kRoom = std::size_t{1} << 17;  // ops of nearly every program; growing would copy, and memory that is not touched costs nothing
  builder.reserve(kRoom, kRoom);
  for (int i = 0; i < steps; ++i) {
    auto step = std::find_if(built.begin(), built.end(), [&](const BuiltStep& known) { return known.before == state; });
    if (step == built.end()) {
      const std::uint32_t begin = builder.position();
      framework.step();
      if (built.empty())
        builder.reserve(2 * builder.program().ops.size(), 2 * builder.program().operands.size());  // the steady step is about as long as the first
      step = built.insert(built.end(), {state, framework.carried(), {begin, builder.position()}});
    }
    ranges.push_back(step->ops);
    state = step->after;
  }
  return ranges;
}

std::unique_ptr<Work> make_work(const StepSpec& spec, Builder& builder, const std::vector<Unit>& units) {
  if (spec.kernels.set == KernelSet::fixed) return std::make_unique<FixedWork>(spec.recompute, builder);
  return std::make_unique<KernelWork>(spec, builder, units);
}

/// Persistent memory: the shards of the parameters, unless the host holds them.
void set_up(const StepSpec& spec, Builder& builder, const std::vector<Unit>& units) {
  if (const auto metrics = builder.program().metrics) {
    builder.alloc(*metrics, Stream::compute);
    builder.program().parameters = all_parameters(spec.model, units);
  }
  for (const Unit& unit : units) {
    if (spec.policy.cpu_offload == CpuOffload::none) builder.alloc(unit.master, Stream::compute);
  }
  builder.program().setup = {0, builder.position()};
}

void build_fsdp1(const StepSpec& spec, Builder& builder, int steps) {
  std::vector<Unit> units = make_units(spec, builder);
  const std::unique_ptr<Work> work = make_work(spec, builder, units);
  set_up(spec, builder, units);
  Fsdp1 fsdp(spec, builder, units, *work);
  builder.program().steps = build_steps(builder, fsdp, steps);
}

void build_fsdp2(const StepSpec& spec, Builder& builder, int steps) {
  Fsdp2Groups wrapped = make_fsdp2_groups(spec, builder);
  const std::unique_ptr<Work> work = make_work(spec, builder, wrapped.units);
  set_up(spec, builder, wrapped.units);
  Fsdp2 fsdp(spec, builder, wrapped, *work);
  builder.program().steps = build_steps(builder, fsdp, steps);
}

void build_ddp(const StepSpec& spec, Builder& builder, int steps) {
  std::vector<Unit> units = make_ddp_units(spec, builder);
  const std::unique_ptr<Work> work = make_work(spec, builder, units);
  Ddp ddp(spec, builder, units, *work);
  ddp.setup();
  set_up(spec, builder, units);
  builder.program().steps = build_steps(builder, ddp, steps);
}

void build_zero12(const StepSpec& spec, Builder& builder, int steps) {
  const std::vector<Unit> units = make_zero_units(spec, ZeroStage12::parameters_of(spec, builder));
  const std::unique_ptr<Work> work = make_work(spec, builder, units);
  ZeroStage12 zero(spec, builder, units, *work);
  zero.setup();
  builder.program().setup = {0, builder.position()};
  builder.program().steps = build_steps(builder, zero, steps);
}

void build_zero3(const StepSpec& spec, Builder& builder, int steps) {
  const std::vector<Unit> units = make_zero_units(spec, ZeroStage3::persistent_of(spec, builder));
  const std::unique_ptr<Work> work = make_work(spec, builder, units);
  ZeroStage3 zero(spec, builder, units, *work);
  zero.setup();
  builder.program().setup = {0, builder.position()};
  builder.program().steps = build_steps(builder, zero, steps);
}

}  // namespace

Program build_program(const StepSpec& spec, int steps) {
  validate(spec, steps);
  const bool native = spec.kernels.set == KernelSet::native;
  Builder builder(spec.kernels.set == KernelSet::fixed ? Detail::schedule : Detail::full, native);
  if (native) builder.program().metrics = builder.buffer("metrics", kMetricsPerStep * 8 * steps, Owner::loss);
  switch (spec.policy.framework) {
    case Framework::fsdp2: build_fsdp2(spec, builder, steps); break;
    case Framework::ddp: build_ddp(spec, builder, steps); break;
    case Framework::zero1:
    case Framework::zero2: build_zero12(spec, builder, steps); break;
    case Framework::zero3: build_zero3(spec, builder, steps); break;
    case Framework::fsdp1: build_fsdp1(spec, builder, steps); break;
  }
  return std::move(builder.program());
}

}  // namespace stepcast::program
