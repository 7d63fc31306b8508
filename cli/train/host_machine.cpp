// See host_machine.hpp.
#include "cli/train/host_machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace stepcast::cli {
namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

}  // namespace

HostMachine host_machine() {
  return {processor_name(), std::max(1U, std::thread::hardware_concurrency()), std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE)};
}

}  // namespace stepcast::cli
