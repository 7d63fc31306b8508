// See rates.hpp.
#include "hw_models/rates.hpp"

#include <string>

#include "hw_models/input_error.hpp"

namespace stepcast::hw {

namespace {

std::string_view peak_key(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp64: return "peak_fp64";
    case Dtype::fp32: return "peak_fp32";
    case Dtype::tf32: return "peak_tf32";
    case Dtype::bf16: return "peak_bf16";
    case Dtype::fp16: return "peak_fp16";
    case Dtype::fp8: return "peak_fp8";
  }
  return "peak_bf16";
}

/// The constant, or the end of the list. fp16 and bf16 run at one rate where there are units for both.
auto find_peak(const Profile& gpu, Dtype dtype) {
  auto found = gpu.constants.find(peak_key(dtype));
  if (found == gpu.constants.end() && dtype == Dtype::fp16) found = gpu.constants.find("peak_bf16");
  return found;
}

}  // namespace

bool has_peak(const Profile& gpu, Dtype dtype) { return find_peak(gpu, dtype) != gpu.constants.end(); }

FlopsPerSecond peak_rate(const Profile& gpu, Dtype dtype) {
  const auto found = find_peak(gpu, dtype);
  if (found == gpu.constants.end())
    throw InputError("hardware", gpu.name, std::string("no matrix units for ") + name(dtype),
                     gpu.constants.contains("peak_bf16") ? "choose bf16 or another GPU" : "choose fp16 or another GPU");
  return FlopsPerSecond(found->second.value);
}

}  // namespace stepcast::hw
