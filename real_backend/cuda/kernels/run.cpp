// See run.hpp.
#include "real_backend/cuda/kernels/run.hpp"

#include "real_backend/cuda/kernels/arguments.hpp"
#include "real_backend/dispatch.hpp"

namespace stepcast::real::cuda::kernels {

void run(const program::Call& call, std::span<std::byte* const> parts, const Environment& environment, Lane& lane) {
  dispatch(Arguments{{call, parts, environment}, lane});
}

}  // namespace stepcast::real::cuda::kernels
