// Names of kernels of PyTorch, cuBLAS, CUTLASS, cuDNN, hipBLASLt, MIOpen, Triton and our own. Test: tests/unit/profile_rates_test.cpp.
#include <algorithm>
#include <array>
#include <cctype>

#include "trace/profile/rates.hpp"

namespace stepcast::trace::profile {

std::string_view kernel_class(std::string_view kernel) {
  struct Part {
    std::string_view part, name;
  };
  // The first that fits: special kernels before the general words in their names.
  constexpr std::array kParts = {
      Part{"flash", "attention"},
      Part{"fmha", "attention"},
      Part{"attention", "attention"},
      Part{"_attn_", "attention"},
      Part{"multi_tensor_apply", "optimizer"},
      Part{"adam", "optimizer"},
      Part{"fused_optimizer", "optimizer"},
      Part{"softmax", "softmax"},
      Part{"conv", "convolution"},
      Part{"scudnn", "convolution"},
      Part{"fprop", "convolution"},
      Part{"dgrad", "convolution"},
      Part{"wgrad", "convolution"},
      Part{"winograd", "convolution"},
      Part{"igemm_", "convolution"},
      Part{"gemm", "gemm"},
      Part{"cijk_", "gemm"},
      Part{"cutlass", "gemm"},
      Part{"gemv", "gemm"},
      Part{"splitkreduce", "gemm"},
      Part{"norm", "normalisation"},
      Part{"embedding", "indexing"},
      Part{"index", "indexing"},
      Part{"gather", "indexing"},
      Part{"scatter", "indexing"},
      Part{"sort", "sort"},
      Part{"topk", "sort"},
      Part{"reduce", "reduction"},
      Part{"elementwise", "elementwise"},
      Part{"copy", "elementwise"},
      Part{"fill", "elementwise"},
      Part{"pointwise", "elementwise"},
      Part{"_poi_", "elementwise"},
      Part{"triton_red", "normalisation"},
      Part{"triton_per", "normalisation"},
  };
  std::string name(kernel);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto at = std::find_if(kParts.begin(), kParts.end(), [&](const Part& part) { return name.find(part.part) != std::string::npos; });
  return at == kParts.end() ? "other" : at->name;
}

}  // namespace stepcast::trace::profile
