// What the fake machine's NVML says of its GPUs, as tests set it.
#pragma once

#include <nvml.h>

#include <map>
#include <string>
#include <vector>

namespace stepcast::fakes {

struct Health {
  unsigned sm_mhz = 1980, memory_mhz = 3201, highest_sm_mhz = 1980, highest_memory_mhz = 3201, milliwatts = 700'000, celsius = 40;
  unsigned long long reasons = nvmlClocksThrottleReasonGpuIdle;
};

struct Nvml {
  std::vector<Health> gpus;
  std::map<std::string, nvmlReturn_t> errors;  // by call: what it returns instead
  int openings = 0;                            // that were begun and have not ended
};

}  // namespace stepcast::fakes
