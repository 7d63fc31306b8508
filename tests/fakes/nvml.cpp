// NVIDIA's management library. The driver finds these calls in the program itself, as it finds NVML's in the library.
#include <nvml.h>

#include <cstring>

#include "tests/fakes/gpu.hpp"

using namespace stepcast::fakes;

namespace {

/// Why a call can't be done: what the test wants, or that it is not open.
nvmlReturn_t refusal_of(const char* call) {
  const Nvml& nvml = state().nvml;
  const auto error = nvml.errors.find(call);
  if (error != nvml.errors.end()) return error->second;
  return nvml.openings > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

Health* health_of(nvmlDevice_t device) {
  for (Health& health : state().nvml.gpus)
    if (reinterpret_cast<nvmlDevice_t>(&health) == device) return &health;
  state().fault("NVML is asked about a device that is not there");
  return nullptr;
}

template <class T>
nvmlReturn_t tell(const char* call, nvmlDevice_t device, T Health::*what, T* to) {
  if (const nvmlReturn_t refusal = refusal_of(call); refusal != NVML_SUCCESS) return refusal;
  const Health* health = health_of(device);
  if (health == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *to = health->*what;
  return NVML_SUCCESS;
}

}  // namespace

namespace stepcast::fakes {

Nvml& Machine::nvml() { return state().nvml; }

}  // namespace stepcast::fakes

#pragma GCC visibility push(default)  // dlsym finds what the program exports
extern "C" {

nvmlReturn_t nvmlInit_v2() {
  const auto error = state().nvml.errors.find("nvmlInit_v2");
  if (error != state().nvml.errors.end()) return error->second;
  ++state().nvml.openings;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown() {
  if (state().nvml.openings == 0) {
    state().fault("NVML is left that was not entered");
    return NVML_ERROR_UNINITIALIZED;
  }
  --state().nvml.openings;
  return NVML_SUCCESS;
}

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    default: return "Unknown Error";
  }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  if (const nvmlReturn_t refusal = refusal_of("nvmlSystemGetDriverVersion"); refusal != NVML_SUCCESS) return refusal;
  std::strncpy(version, "580.65.06", length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus, nvmlDevice_t* device) {
  if (const nvmlReturn_t refusal = refusal_of("nvmlDeviceGetHandleByPciBusId_v2"); refusal != NVML_SUCCESS) return refusal;
  for (std::size_t gpu = 0; gpu < state().nvml.gpus.size(); ++gpu) {
    if (bus_of(static_cast<int>(gpu)) != bus) continue;
    *device = reinterpret_cast<nvmlDevice_t>(&state().nvml.gpus[gpu]);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* clock) {
  return tell("nvmlDeviceGetClockInfo", device, type == NVML_CLOCK_MEM ? &Health::memory_mhz : &Health::sm_mhz, clock);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* clock) {
  return tell("nvmlDeviceGetMaxClockInfo", device, type == NVML_CLOCK_MEM ? &Health::highest_memory_mhz : &Health::highest_sm_mhz, clock);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* limit) {
  return tell("nvmlDeviceGetEnforcedPowerLimit", device, &Health::milliwatts, limit);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t, unsigned int* temp) {
  return tell("nvmlDeviceGetTemperature", device, &Health::celsius, temp);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return tell("nvmlDeviceGetCurrentClocksThrottleReasons", device, &Health::reasons, reasons);
}

}  // extern "C"
#pragma GCC visibility pop
