// The same where the program was built without MPI. docs/sweep.md, "Several machines".
#include <fmt/format.h>

#include "cli/sweep/ranks.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {

std::unique_ptr<Ranks> open_ranks(const Launch& launch) {
  if (launch.rank > 0) return nullptr;  // the first rank says it
  throw InputError("sweep", "", fmt::format("was started as {} processes, but this build of stepcast has no MPI", launch.size),
                   "install MPI and build again, or start it once: it uses all cores of a machine");
}

}  // namespace stepcast::cli
