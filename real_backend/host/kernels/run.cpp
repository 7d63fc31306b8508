// See run.hpp.
#include "real_backend/host/kernels/run.hpp"

#include "real_backend/dispatch.hpp"
#include "real_backend/host/kernels/arguments.hpp"

namespace stepcast::real::host::kernels {

void run(const program::Call& call, std::span<std::byte* const> parts, const Environment& environment, Scratch& scratch) {
  dispatch(Arguments{{call, parts, environment}, scratch});
}

}  // namespace stepcast::real::host::kernels
