// See real_device.hpp.
#include "cli/train/real_device.hpp"

#include "cli/train/host_machine.hpp"
#include "real_backend/host/driver.hpp"

namespace stepcast::cli {
namespace {

/// A rank has its share of the machine's memory.
RealDevice host_device(std::int32_t ranks) {
  const HostMachine machine = host_machine();
  return {"host",
          machine.processor,
          machine.memory_bytes / ranks,
          true,
          {{"device", "host"}, {"host", machine.processor}, {"threads", machine.threads}, {"memory_bytes", machine.memory_bytes}},
          real::host::make_driver};
}

}  // namespace

RealDevice real_device(const std::string& name, std::int32_t ranks) { return name == "cuda" ? cuda_device(ranks) : host_device(ranks); }

}  // namespace stepcast::cli
