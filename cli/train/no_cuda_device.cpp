// Programs without the CUDA driver.
#include "cli/train/real_device.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {

RealDevice cuda_device(std::int32_t, const TrainProcess*) {
  throw InputError("command line", "", "--device cuda: this build has no CUDA driver",
                   "it is built where nvcc, cuBLAS and NCCL are found: cmake --preset cuda says what is missing; --device host runs here");
}

}  // namespace stepcast::cli
