// See allocator_sets.hpp.
#include "scenarios/allocator_sets.hpp"

#include "hw_models/input_error.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/layers.hpp"
#include "scenarios/sections.hpp"

namespace stepcast::scenarios {

Allocator allocator_with(const Allocator& base, Sets sets) {
  Layers layers{"allocator", {{"--set", Json::object()}}, Json::object()};
  for (const std::string& set : sets) apply_set(layers, set);
  Reader root(layers.merged, "--set");
  Allocator allocator = base;
  if (auto section = root.maybe_object("allocator")) {
    FieldReader fields(std::move(*section));
    describe(fields, allocator);
    fields.finish();
  }
  root.finish();
  if (allocator.memory_outside_pool)
    throw InputError("--set", "/allocator/memory_outside_pool", "has no effect on a replay", "/allocator/device_memory is what the pool may reserve");
  return allocator;
}

}  // namespace stepcast::scenarios
