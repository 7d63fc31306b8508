// --set values for a command without a scenario: only what a scenario's allocator section takes.
#include "scenarios/allocator_sets.hpp"

#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"

using namespace stepcast;
using scenarios::Allocator;

namespace {

Allocator settings_with(const std::vector<std::string>& sets, const Allocator& base = {}) { return scenarios::allocator_with(base, sets); }

}  // namespace

TEST_CASE("sets change what they name and keep the rest of the base") {
  Allocator base;
  base.roundup_power2_divisions = 8;
  base.memory_fraction = 1e-6;  // below what a scenario takes, and not touched here
  CHECK(settings_with({}, base) == base);
  const Allocator changed =
      settings_with({"/allocator/max_split_size=512 MiB", "/allocator/expandable_segments=true", "/allocator/device_memory=40 GiB"}, base);
  CHECK(changed.max_split_size == std::int64_t{512} << 20);
  CHECK(changed.expandable_segments);
  CHECK(changed.device_memory == std::int64_t{40} << 30);
  CHECK(changed.roundup_power2_divisions == 8);
  CHECK(changed.memory_fraction == base.memory_fraction);
  CHECK(!settings_with({"/allocator/max_split_size=none"}, changed).max_split_size);
}

TEST_CASE("anything else is refused") {
  CHECK_THROWS_WITH_AS(settings_with({"/allocator/expandable_segment=true"}),
                       "--set: /allocator/expandable_segment: unknown key; did you mean \"expandable_segments\"?", InputError);
  CHECK_THROWS_WITH_AS(settings_with({"/batch/micro_batch=2"}), "--set: /batch: unknown key", InputError);
  CHECK_THROWS_AS(settings_with({"/allocator/device_memory=40"}), InputError);
  CHECK_THROWS_AS(settings_with({"/allocator/memory_outside_pool=1 GiB"}), InputError);  // a replay knows only the pool
  CHECK_THROWS_AS(settings_with({"/allocator=5"}), InputError);
  CHECK_THROWS_AS(settings_with({"nonsense"}), InputError);
}
