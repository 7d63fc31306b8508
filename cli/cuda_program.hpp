// In builds with the CUDA driver there are two programs of the same commands: `stepcast`, and beside it `stepcast-cuda`, which alone is linked with cuBLAS and NCCL: loading them
// takes 0.4 s and 220 MB, which no forecast should cost. docs/real_backend.md, "The CUDA driver". Test: tests/golden/train_cli_test.cpp.
#pragma once

namespace stepcast::cli {

/// Where the command line has --device cuda, the other program takes over this process. Returns where there is none, or this is it.
void hand_over_to_cuda(int argc, char** argv);

}  // namespace stepcast::cli
