// Puts the parts together: units, the work that they wrap, the policy; then the steps.
#include "program/build.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "program/fixed_work.hpp"
#include "program/fsdp1.hpp"
#include "program/kernel_work.hpp"
#include "program/units.hpp"
#include "program/validate.hpp"

namespace stepcast::program {
namespace {

struct BuiltStep {
  Fsdp1::Carried before, after;
  Range ops;
};

/// Builds each step that begins in a new state and points the others at it. A step's end depends on its beginning alone, so known states lead to known states.
std::vector<Range> build_steps(Builder& builder, Fsdp1& fsdp, int steps) {
  std::vector<BuiltStep> built;
  std::vector<Range> ranges;
  Fsdp1::Carried state = fsdp.carried();
  for (int i = 0; i < steps; ++i) {
    auto step = std::find_if(built.begin(), built.end(), [&](const BuiltStep& known) { return known.before == state; });
    if (step == built.end()) {
      const std::uint32_t begin = builder.position();
      fsdp.step();
      if (built.empty())
        builder.reserve(2 * builder.program().ops.size(), 2 * builder.program().operands.size());  // the steady step is about as long as the first
      step = built.insert(built.end(), {state, fsdp.carried(), {begin, builder.position()}});
    }
    ranges.push_back(step->ops);
    state = step->after;
  }
  return ranges;
}

}  // namespace

Program build_program(const StepSpec& spec, int steps) {
  validate(spec, steps);
  Builder builder(spec.kernels.set == KernelSet::fixed ? Detail::schedule : Detail::full);
  std::vector<Unit> units = make_units(spec, builder);
  std::unique_ptr<Work> work;
  if (spec.kernels.set == KernelSet::fixed) work = std::make_unique<FixedWork>(builder);
  else work = std::make_unique<KernelWork>(spec, builder, units);
  for (const Unit& unit : units) builder.alloc(unit.master, Stream::compute);
  builder.program().setup = {0, builder.position()};
  Fsdp1 fsdp(spec, builder, units, *work);
  builder.program().steps = build_steps(builder, fsdp, steps);
  return std::move(builder.program());
}

}  // namespace stepcast::program
