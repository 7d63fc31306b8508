// See monitor.hpp.
#include "real_backend/cuda/monitor.hpp"

#include <dlfcn.h>
#include <nvml.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "real_backend/cuda/check.hpp"

namespace stepcast::real::cuda {
namespace {

using bench::Told;

/// Of a GPU at work clocks are lowered for these; that it is idle is none.
struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr std::array kReasons{Reason{nvmlClocksThrottleReasonApplicationsClocksSetting, "application clocks"},
                              Reason{nvmlClocksThrottleReasonSwPowerCap, "power cap (software)"},
                              Reason{nvmlClocksThrottleReasonHwSlowdown, "slowdown (hardware)"},
                              Reason{nvmlClocksThrottleReasonSyncBoost, "sync boost"},
                              Reason{nvmlClocksThrottleReasonSwThermalSlowdown, "thermal slowdown (software)"},
                              Reason{nvmlClocksThrottleReasonHwThermalSlowdown, "thermal slowdown (hardware)"},
                              Reason{nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "power brake (hardware)"},
                              Reason{nvmlClocksThrottleReasonDisplayClockSetting, "display clocks"}};

std::set<std::string> names_of(unsigned long long reasons) {
  std::set<std::string> names;
  reasons &= ~static_cast<unsigned long long>(nvmlClocksThrottleReasonGpuIdle);
  for (const Reason& reason : kReasons) {
    if ((reasons & reason.bit) != 0) names.insert(reason.name);
    reasons &= ~reason.bit;
  }
  if (reasons != 0) names.insert("a reason that is not known here (" + std::to_string(reasons) + ")");
  return names;
}

/// A library that is open. Throws DeviceError if there is none.
class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw DeviceError(dlerror());
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  /// Null if it is not there.
  template <class Call>
  Call find(const char* name) const {
    return reinterpret_cast<Call>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

/// A call of the library, which may be too old for it.
template <class F>
class Call {
 public:
  Call(const Library& library, const char* name) : name_(name), call_(library.find<F*>(name)) {}
  template <class... Arguments>
  nvmlReturn_t operator()(Arguments... arguments) const {
    return call_ == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : call_(arguments...);
  }
  [[nodiscard]] const char* name() const { return name_; }

 private:
  const char* name_;
  F* call_;
};

/// Of the driver that is loaded, from open to close.
class Nvml final : public bench::Monitor {
 public:
  /// Throws DeviceError where the library is missing, refuses, or does not know a GPU that CUDA has.
  Nvml(const char* library, int gpus) : library_(library) {
    if (error_text_ == nullptr) throw DeviceError("there is no nvmlErrorString");
    require(begin_, begin_());
    try {
      for (int gpu = 0; gpu < gpus; ++gpu) devices_.push_back(device_of(gpu));
    } catch (...) {
      end_();
      throw;
    }
  }
  ~Nvml() override { end_(); }

  [[nodiscard]] std::size_t gpus() const override { return devices_.size(); }
  [[nodiscard]] Told<std::string> driver_version() override {
    std::array<char, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE> text{};
    const nvmlReturn_t result = driver_version_(text.data(), static_cast<unsigned>(text.size()));
    if (result != NVML_SUCCESS) return {{}, why(driver_version_, result)};
    return {text.data(), ""};
  }
  [[nodiscard]] bench::GpuLimits limits(std::size_t gpu) override {
    return {ask(1e6, highest_clock_, devices_.at(gpu), NVML_CLOCK_SM), ask(1e6, highest_clock_, devices_.at(gpu), NVML_CLOCK_MEM),
            ask(1e-3, power_limit_, devices_.at(gpu))};
  }
  [[nodiscard]] bench::GpuState state(std::size_t gpu) override {
    return {ask(1e6, clock_, devices_.at(gpu), NVML_CLOCK_SM), ask(1e6, clock_, devices_.at(gpu), NVML_CLOCK_MEM),
            ask(1, temperature_, devices_.at(gpu), NVML_TEMPERATURE_GPU), slowed_by(devices_.at(gpu))};
  }

 private:
  template <class F>
  [[nodiscard]] std::string why(const Call<F>& call, nvmlReturn_t result) const {
    return std::string(call.name()) + ": " + error_text_(result);
  }
  template <class F>
  void require(const Call<F>& call, nvmlReturn_t result) const {
    if (result != NVML_SUCCESS) throw DeviceError(why(call, result));
  }
  /// NVML numbers the machine's GPUs otherwise than CUDA those that this process sees.
  [[nodiscard]] nvmlDevice_t device_of(int gpu) const {
    std::array<char, 32> bus{};
    check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), gpu), "cudaDeviceGetPCIBusId");
    nvmlDevice_t device = nullptr;
    require(device_by_bus_, device_by_bus_(bus.data(), &device));
    return device;
  }
  template <class F, class... Of>
  [[nodiscard]] Told<double> ask(double unit, const Call<F>& call, Of... of) const {
    unsigned number = 0;
    const nvmlReturn_t result = call(of..., &number);
    if (result != NVML_SUCCESS) return {{}, why(call, result)};
    return {number * unit, ""};
  }
  [[nodiscard]] Told<std::set<std::string>> slowed_by(nvmlDevice_t device) const {
    unsigned long long reasons = 0;
    const nvmlReturn_t result = reasons_(device, &reasons);
    if (result != NVML_SUCCESS) return {{}, why(reasons_, result)};
    return {names_of(reasons), ""};
  }

  Library library_;
  decltype(&nvmlErrorString) error_text_ = library_.find<decltype(&nvmlErrorString)>("nvmlErrorString");
  Call<decltype(nvmlInit_v2)> begin_{library_, "nvmlInit_v2"};
  Call<decltype(nvmlShutdown)> end_{library_, "nvmlShutdown"};
  Call<decltype(nvmlSystemGetDriverVersion)> driver_version_{library_, "nvmlSystemGetDriverVersion"};
  Call<decltype(nvmlDeviceGetHandleByPciBusId_v2)> device_by_bus_{library_, "nvmlDeviceGetHandleByPciBusId_v2"};
  Call<decltype(nvmlDeviceGetClockInfo)> clock_{library_, "nvmlDeviceGetClockInfo"};
  Call<decltype(nvmlDeviceGetMaxClockInfo)> highest_clock_{library_, "nvmlDeviceGetMaxClockInfo"};
  Call<decltype(nvmlDeviceGetEnforcedPowerLimit)> power_limit_{library_, "nvmlDeviceGetEnforcedPowerLimit"};
  Call<decltype(nvmlDeviceGetTemperature)> temperature_{library_, "nvmlDeviceGetTemperature"};
  Call<decltype(nvmlDeviceGetCurrentClocksThrottleReasons)> reasons_{library_, "nvmlDeviceGetCurrentClocksThrottleReasons"};
  std::vector<nvmlDevice_t> devices_;
};

}  // namespace

Told<std::unique_ptr<bench::Monitor>> monitor(int gpus, const char* library) {
  try {
    return {std::make_unique<Nvml>(library, gpus), ""};
  } catch (const DeviceError& error) { return {{}, error.what()}; }
}

}  // namespace stepcast::real::cuda
