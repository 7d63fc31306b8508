// What NVML says of the GPUs that are measured, on a fake of it: with and without errors, and without the library.
#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>

#include "real_backend/cuda/monitor.hpp"
#include "tests/fakes/machine.hpp"

namespace stepcast::real::cuda {
namespace {

const char* const kHere = nullptr;  // dlopen's name of the program itself

/// Runs f(machine) on one of two GPUs, which must find no fault.
template <class F>
void on_machine(F f) {
  fakes::Machine machine(2, std::size_t{1} << 20);
  f(machine);
  for (const std::string& fault : machine.faults()) FAIL_CHECK(fault);
  for (const std::string& leak : machine.leaks()) FAIL_CHECK(leak);
}

TEST_CASE("NVML: clocks, temperature, limits and the driver's version, of each GPU its own") {
  on_machine([](fakes::Machine& machine) {
    machine.nvml().gpus[1] = {.sm_mhz = 1755, .memory_mhz = 1593, .highest_sm_mhz = 1980, .highest_memory_mhz = 2619, .milliwatts = 500'000, .celsius = 71};
    const auto told = monitor(2, kHere);
    REQUIRE_MESSAGE(told.value, told.why_not);
    bench::Monitor& watched = **told.value;
    REQUIRE(watched.gpus() == 2);
    CHECK(watched.driver_version().value == "580.65.06");
    CHECK(watched.state(0).sm_clock.value == 1980e6);
    CHECK(watched.state(1).sm_clock.value == 1755e6);
    CHECK(watched.state(1).memory_clock.value == 1593e6);
    CHECK(watched.state(1).temperature.value == 71);
    CHECK(watched.limits(1).sm_clock.value == 1980e6);
    CHECK(watched.limits(1).memory_clock.value == 2619e6);
    CHECK(watched.limits(1).power.value == 500);
    machine.nvml().gpus[0].sm_mhz = 1200;
    CHECK(watched.state(0).sm_clock.value == 1200e6);
  });
}

TEST_CASE("NVML: what slows a GPU down has names; that it is idle is no such thing") {
  on_machine([](fakes::Machine& machine) {
    const auto told = monitor(1, kHere);
    REQUIRE_MESSAGE(told.value, told.why_not);
    const auto names = [&](unsigned long long reasons) {
      machine.nvml().gpus[0].reasons = reasons;
      return (*told.value)->state(0).slowed_by.value.value();
    };
    using Names = std::set<std::string>;
    CHECK(names(0).empty());
    CHECK(names(0x1).empty());
    CHECK(names(0x4) == Names{"power cap (software)"});
    CHECK(names(0x1 | 0x20 | 0x8) == Names{"slowdown (hardware)", "thermal slowdown (software)"});
    CHECK(names(0x2 | 0x10 | 0x40 | 0x80 | 0x100) ==
          Names{"application clocks", "display clocks", "power brake (hardware)", "sync boost", "thermal slowdown (hardware)"});
    CHECK(names(0x4 | 0x400) == Names{"a reason that is not known here (1024)", "power cap (software)"});
  });
}

TEST_CASE("NVML: a call that fails leaves its own number open, and says why") {
  on_machine([](fakes::Machine& machine) {
    machine.nvml().errors = {{"nvmlDeviceGetTemperature", NVML_ERROR_NOT_SUPPORTED},
                             {"nvmlDeviceGetCurrentClocksThrottleReasons", NVML_ERROR_NO_PERMISSION},
                             {"nvmlDeviceGetEnforcedPowerLimit", NVML_ERROR_NOT_SUPPORTED},
                             {"nvmlSystemGetDriverVersion", NVML_ERROR_UNKNOWN}};
    const auto told = monitor(1, kHere);
    REQUIRE_MESSAGE(told.value, told.why_not);
    const bench::GpuState state = (*told.value)->state(0);
    CHECK(state.sm_clock.value == 1980e6);
    CHECK_FALSE(state.temperature.value);
    CHECK(state.temperature.why_not == "nvmlDeviceGetTemperature: Not Supported");
    CHECK_FALSE(state.slowed_by.value);
    CHECK(state.slowed_by.why_not == "nvmlDeviceGetCurrentClocksThrottleReasons: Insufficient Permissions");
    CHECK((*told.value)->limits(0).power.why_not == "nvmlDeviceGetEnforcedPowerLimit: Not Supported");
    CHECK((*told.value)->driver_version().why_not == "nvmlSystemGetDriverVersion: Unknown Error");
    machine.nvml().errors = {{"nvmlDeviceGetClockInfo", NVML_ERROR_GPU_IS_LOST}};
    CHECK((*told.value)->state(0).sm_clock.why_not == "nvmlDeviceGetClockInfo: GPU is lost");
    CHECK((*told.value)->state(0).temperature.value == 40);
  });
}

TEST_CASE("NVML: without the library, one that is another, one that refuses, and a GPU that it doesn't know, it is said why") {
  on_machine([](fakes::Machine& machine) {
    const auto missing = monitor(1, "libnvidia-ml-that-is-not-here.so.1");
    CHECK_FALSE(missing.value);
    CHECK(missing.why_not.find("libnvidia-ml-that-is-not-here.so.1") != std::string::npos);
    CHECK(monitor(1, "libm.so.6").why_not == "there is no nvmlErrorString");
    machine.nvml().errors = {{"nvmlInit_v2", NVML_ERROR_DRIVER_NOT_LOADED}};
    CHECK(monitor(1, kHere).why_not == "nvmlInit_v2: Driver Not Loaded");
    machine.nvml().errors = {{"nvmlDeviceGetHandleByPciBusId_v2", NVML_ERROR_NOT_FOUND}};
    CHECK(monitor(1, kHere).why_not == "nvmlDeviceGetHandleByPciBusId_v2: Not Found");
    machine.nvml().errors = {};
    CHECK(monitor(3, kHere).why_not == "cudaDeviceGetPCIBusId: invalid device ordinal");
  });
}

}  // namespace
}  // namespace stepcast::real::cuda
