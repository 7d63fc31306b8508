// The program with the CUDA driver.
#include <fmt/format.h>

#include "cli/train/host_machine.hpp"
#include "cli/train/real_device.hpp"
#include "hw_models/input_error.hpp"
#include "real_backend/cuda/driver.hpp"
#include "real_backend/cuda/monitor.hpp"
#include "real_backend/launch/link.hpp"

namespace stepcast::cli {
namespace {

constexpr std::int64_t kBeside = std::int64_t{2} << 30;  // bytes of a GPU for NCCL, cuBLAS and the scratch of kernels, beside the pool

/// The first process says under which id all meet.
real::MakeDriver driver_of(const TrainProcess& process, int gpu) {
  const std::string own = process.peers->rank() == 0 ? real::cuda::new_job_id() : "";
  return real::cuda::driver_of_process(real::from_first(*process.peers, own, process.deadline_s), gpu);
}

}  // namespace

RealDevice cuda_device(std::int32_t ranks, const TrainProcess* process) {
  const real::cuda::Gpus all = real::cuda::gpus();
  if (all.count == 0)
    throw InputError("command line", "", "--device cuda: no GPU: " + all.why_none, "it needs an NVIDIA GPU and its driver; --device host runs here");
  if (process == nullptr && ranks > all.count)
    throw InputError("command line", "", fmt::format("--device cuda: {} ranks need as many GPUs, and this machine has {}", ranks, all.count),
                     "fewer ranks: --ranks N; or a process for each GPU: docs/real_backend.md, \"Several processes\"");
  const int gpu = process == nullptr ? 0 : real::cuda::gpu_of_process(process->local_rank, all.count);
  const real::cuda::Gpus gpus = real::cuda::gpus(gpu);
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
           {"nccl", fmt::format("{}.{}.{}", gpus.nccl_version / 10000, gpus.nccl_version / 100 % 100, gpus.nccl_version % 100)},
           {"host", machine.processor},
           {"threads", machine.threads}},
          process == nullptr ? real::cuda::make_driver : driver_of(*process, gpu),
          [](int count) { return real::cuda::monitor(count); },
          all.count};
}

}  // namespace stepcast::cli
