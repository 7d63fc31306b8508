// What a launcher says in the environment of each process that it starts: torchrun's variables, or those of mpirun and srun. docs/real_backend.md, "Several processes";
// test: tests/unit/launch_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace stepcast::real {

using GetVariable = std::function<const char*(const char* name)>;

/// Of a process in its job, and where the first one is met.
struct Place {
  std::int32_t rank = 0, size = 1;
  std::int32_t local_rank = 0;  // among those of its machine
  std::string host, port;
};

/// Nothing where the process is alone. Throws InputError where variables are missing, are no numbers or contradict each other.
std::optional<Place> place_in(const GetVariable& environment);

}  // namespace stepcast::real
