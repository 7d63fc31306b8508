// See real_device.hpp.
#include "cli/train/real_device.hpp"

#include "cli/train/host_machine.hpp"
#include "real_backend/host/driver.hpp"

namespace stepcast::cli {
namespace {

/// A rank has its share of the machine's memory.
RealDevice host_device(std::int32_t ranks, const TrainProcess* process) {
  const HostMachine machine = host_machine();
  const std::int32_t here = process == nullptr ? ranks : process->on_this_machine;
  return {"host",
          machine.processor,
          machine.memory_bytes / here,
          true,
          {{"device", "host"}, {"host", machine.processor}, {"threads", machine.threads}, {"memory_bytes", machine.memory_bytes}},
          process == nullptr ? real::host::make_driver : process->make_driver};
}

}  // namespace

RealDevice real_device(const std::string& name, std::int32_t ranks, const TrainProcess* process) {
  return name == "cuda" ? cuda_device(ranks, process) : host_device(ranks, process);
}

}  // namespace stepcast::cli
