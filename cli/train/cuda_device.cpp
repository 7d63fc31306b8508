// A build with the CUDA driver.
#include <fmt/format.h>

#include "cli/train/host_machine.hpp"
#include "cli/train/real_device.hpp"
#include "hw_models/input_error.hpp"
#include "real_backend/cuda/driver.hpp"

namespace stepcast::cli {
namespace {

constexpr std::int64_t kBeside = std::int64_t{2} << 30;  // bytes of a GPU for NCCL, cuBLAS and the scratch of kernels, beside the pool

}  // namespace

RealDevice cuda_device(std::int32_t ranks) {
  const real::cuda::Gpus gpus = real::cuda::gpus();
  if (gpus.count == 0)
    throw InputError("command line", "", "--device cuda: no GPU: " + gpus.why_none, "it needs an NVIDIA GPU and its driver; --device host runs here");
  if (ranks > gpus.count)
    throw InputError("command line", "", fmt::format("--device cuda: {} ranks need as many GPUs, and this machine has {}", ranks, gpus.count),
                     "fewer ranks: --ranks N");
  const HostMachine machine = host_machine();
  return {"cuda",
          gpus.name,
          gpus.free_bytes - kBeside,
          false,
          {{"device", "cuda"},
           {"gpu", gpus.name},
           {"gpus", gpus.count},
           {"gpu_memory_bytes", gpus.total_bytes},
           {"cuda", fmt::format("{}.{}", gpus.cuda_version / 1000, gpus.cuda_version % 1000 / 10)},
           {"host", machine.processor},
           {"threads", machine.threads}},
          real::cuda::make_driver};
}

}  // namespace stepcast::cli
